"""Training as `transformers` calls a callback, with stand-ins for it and for TRL's profiling."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import rollscope as rs
from rollscope.errors import MissingExtra
from rollscope.integrations.trl import RollscopeCallback, callback, traced_reward
from rollscope.model.records import MetricRecord
from rollscope.testing.capture import Capture, capture


class TrainerCallback:
    """The base, which takes every event."""

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        pass


class ProfilingContext:
    """What TRL puts around its work."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.log: list[str] = []

    def __enter__(self) -> ProfilingContext:
        self.log.append("entered")
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.log.append("left")


class Trainer:
    """Trains as far as its callbacks can see."""

    def __init__(self, one: Any, **args: Any) -> None:
        self.callback = one
        self.state = SimpleNamespace(global_step=0, is_world_process_zero=True)
        self.args = SimpleNamespace(run_name=None, output_dir="out/grpo-qwen/", process_index=0)
        vars(self.args).update(args)

    def tell(self, event: str, **kwargs: Any) -> None:
        method = getattr(self.callback, event)
        assert method(self.args, self.state, object(), model=None, **kwargs) is None

    def train(self, steps: int = 2, reward: Any = None) -> None:
        self.tell("on_train_begin")
        self.tell("on_epoch_begin")
        for _ in range(steps):
            self.tell("on_step_begin")
            with ProfilingContext("GRPOTrainer._prepare_inputs"):
                with ProfilingContext("GRPOTrainer.sync_weights"):
                    pass
                with ProfilingContext("GRPOTrainer.vLLM.generate"):
                    pass
                with ProfilingContext("GRPOTrainer._calculate_rewards"):
                    if reward is not None:
                        reward(prompts=["p"] * 2, completions=["c"] * 2, completion_ids=[[1]] * 2)
            self.tell("on_pre_optimizer_step")
            self.tell("on_optimizer_step")
            self.state.global_step += 1
            self.tell("on_step_end")
            self.tell("on_log", logs={"loss": 0.5, "reward": 1, "note": "x", "nan": float("nan")})
        self.tell("on_evaluate", metrics={"eval_loss": 0.1, "eval_runtime": 2.0})
        self.tell("on_save")
        self.tell("on_train_end")


@pytest.fixture(autouse=True)
def frameworks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    transformers, profiling = ModuleType("transformers"), ModuleType("trl.extras.profiling")
    transformers.TrainerCallback = TrainerCallback  # type: ignore[attr-defined]
    profiling.ProfilingContext = ProfilingContext  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    monkeypatch.setitem(sys.modules, "trl.extras.profiling", profiling)
    monkeypatch.setattr(callback, "_kinds", {})
    before = (ProfilingContext.__enter__, ProfilingContext.__exit__)
    yield
    assert (ProfilingContext.__enter__, ProfilingContext.__exit__) == before


def metrics(captured: Capture) -> list[tuple[str, int | None, float]]:
    found = [record for record in captured.records() if isinstance(record, MetricRecord)]
    return [(record.name, record.step, record.value) for record in found]


def test_steps_stages_and_logs_are_recorded() -> None:
    with capture() as captured:
        Trainer(RollscopeCallback()).train()
        spans = captured.spans()
        logged = metrics(captured)
        events = [event.name for event in captured.fold().events]

    steps = [span for span in spans if span.kind == "step"]
    assert [(span.step, span.status) for span in steps] == [(1, "ok"), (2, "ok")]
    first = [span for span in spans if span.step == 1 and span.kind != "step"]
    assert [(span.kind, span.name, span.category) for span in first] == [
        ("span", "prepare_inputs", "misc"),
        ("span", "sync_weights", "sync"),
        ("phase", "generate", None),
        ("phase", "reward", None),
        ("span", "optimizer.step", "compute"),
    ]
    assert first[4].parent_id == steps[0].span_id
    assert first[2].attrs == {"engine": "vLLM"}
    assert first[2].parent_id == first[0].span_id
    assert sorted(logged) == [
        ("loss", 1, 0.5),
        ("loss", 2, 0.5),
        ("reward", 1, 1.0),
        ("reward", 2, 1.0),
    ]
    (evaluated,) = [span for span in spans if span.name == "evaluate"]
    assert evaluated.attrs == {"metric": "eval_runtime", "after_step": 2}
    assert (evaluated.end_ns or 0) - evaluated.start_ns == 2_000_000_000
    assert events == ["checkpoint"]


def test_the_callback_is_one_of_transformers_and_of_ours() -> None:
    made = RollscopeCallback()

    assert isinstance(made, TrainerCallback)
    assert isinstance(made, RollscopeCallback)
    assert type(made) is type(RollscopeCallback(run="x"))
    assert type(made).__name__ == "RollscopeCallback"


def test_a_class_of_the_host_may_go_on_from_it() -> None:
    class Own(RollscopeCallback):
        def __init__(self, word: str) -> None:
            super().__init__(run="own")
            self.word = word

    made = Own("x")
    assert (made.word, type(made).__name__) == ("x", "Own")
    assert isinstance(made, TrainerCallback)


def test_recording_begins_and_ends_with_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Trainer(RollscopeCallback()).train()
    Trainer(RollscopeCallback(run="mine", role="learner"), run_name="theirs").train()

    assert not rs.enabled()
    for name in ("grpo-qwen", "mine"):
        with rs.open(tmp_path / "runs" / name) as run:
            assert [row["step"] for row in run.steps().to_pylist()] == [1, 2]


def test_the_environment_names_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROLLSCOPE_RUN", "named")
    Trainer(RollscopeCallback(), run_name="other").train()

    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["named"]


def test_other_ranks_record_steps_and_no_metrics() -> None:
    with capture() as captured:
        trainer = Trainer(RollscopeCallback())
        trainer.state.is_world_process_zero = False
        trainer.train(1)
        assert metrics(captured) == []
        assert [span.step for span in captured.spans() if span.kind == "step"] == [1]


def test_a_step_that_an_error_has_left_ends_with_the_next() -> None:
    with capture() as captured:
        trainer = Trainer(RollscopeCallback())
        trainer.tell("on_train_begin")
        trainer.tell("on_optimizer_step")
        trainer.tell("on_step_begin")
        trainer.tell("on_pre_optimizer_step")
        trainer.tell("on_step_begin")
        trainer.tell("on_train_end")
        assert [(span.name, span.status) for span in captured.spans()] == [
            ("step", "ok"),
            ("optimizer.step", "ok"),
            ("step", "ok"),
        ]
        assert not rs.current()


def test_a_failing_context_is_an_error_and_passes_on() -> None:
    with capture() as captured:
        trainer = Trainer(RollscopeCallback())
        trainer.tell("on_train_begin")
        context = ProfilingContext("GRPOTrainer.transformers.generate")
        with pytest.raises(RuntimeError, match="out of memory"), context:
            raise RuntimeError("out of memory")
        trainer.tell("on_train_end")
        span = captured.named("generate")
    assert (span.status, span.attrs) == ("error", {"engine": "transformers"})
    assert context.log == ["entered", "left"]


def test_odd_arguments_do_not_stop_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLSCOPE_RAISE")
    with capture() as captured:
        trainer = Trainer(RollscopeCallback(), run_name=7, output_dir=None)
        trainer.state = SimpleNamespace(global_step="many")
        trainer.tell("on_train_begin")
        trainer.tell("on_step_begin")
        trainer.tell("on_log", logs={"huge": 10**400, 3: 2.0, "t": object()})
        trainer.tell("on_log", logs=None)
        trainer.tell("on_evaluate", metrics=[1])
        trainer.tell("on_step_end")
        trainer.tell("on_train_end")
        assert metrics(captured) == [("3", 1, 2.0)]


def test_a_training_without_trl_has_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "trl.extras.profiling")
    with capture() as captured:
        Trainer(RollscopeCallback()).train(1)
        assert [span.name for span in captured.spans()].count("generate") == 0
        assert len([span for span in captured.spans() if span.kind == "step"]) == 1


def test_off_it_does_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROLLSCOPE", "off")
    monkeypatch.chdir(tmp_path)
    Trainer(RollscopeCallback()).train(1, traced_reward(lambda **_: [1.0, 0.0]))

    assert list(tmp_path.iterdir()) == []


def test_a_reward_function_is_a_part_of_rewarding() -> None:
    def accuracy(prompts: Any, completions: Any, **kwargs: Any) -> list[float | None]:
        return [1.0, None]

    reward = traced_reward(accuracy)
    assert reward.__name__ == "accuracy"
    with capture() as captured:
        Trainer(RollscopeCallback()).train(1, reward)
        span = captured.named("accuracy")
        assert span.parent_id == captured.named("reward").span_id
    assert span.kind == "span"
    assert span.attrs == {
        "function": "accuracy",
        "samples": 2,
        "reward_mean": 1.0,
        "unscored": 1,
    }


def test_without_transformers_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)

    with pytest.raises(MissingExtra, match="pip install transformers trl"):
        RollscopeCallback()


def test_importing_loads_neither_framework() -> None:
    code = (
        "import json, sys; import rollscope.integrations.trl; names = sys.modules;"
        "print(json.dumps([n in names for n in ('transformers', 'trl', 'torch', 'duckdb')]))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert json.loads(shown.stdout) == [False] * 4
