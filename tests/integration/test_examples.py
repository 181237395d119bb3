"""The examples, run as a reader would run them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import rollscope

_EXAMPLES = Path(__file__).parents[2] / "examples"
_CHAINS = """
SELECT session.trace_id, [trainer.role, actor.role, engine.role] AS roles
FROM spans AS session
JOIN spans AS phase ON phase.parent_id = session.span_id AND phase.trace_id = session.trace_id
JOIN spans AS request ON request.parent_id = phase.span_id AND request.trace_id = session.trace_id
JOIN processes AS trainer ON trainer.process = session.process
JOIN processes AS actor ON actor.process = phase.process
JOIN processes AS engine ON engine.process = request.process
WHERE session.kind = 'session' AND phase.name = 'generate' AND request.name = 'engine.request'
"""
_SYNCS = """
SELECT [trainer.role, engine.role] AS roles
FROM spans AS step
JOIN spans AS sync ON sync.parent_id = step.span_id AND sync.trace_id = step.trace_id
JOIN spans AS load ON load.parent_id = sync.span_id AND load.trace_id = step.trace_id
JOIN processes AS trainer ON trainer.process = sync.process
JOIN processes AS engine ON engine.process = load.process
WHERE step.kind = 'step' AND sync.name = 'weights.sync' AND load.name = 'weights.load'
"""


def run_example(name: str, *args: object, said: str = "") -> str:
    command = [sys.executable, str(_EXAMPLES / name), *map(str, args)]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    assert re.fullmatch(said, shown.stderr)
    return shown.stdout


def test_asynchronous_rollouts_give_fresh_batches_and_a_trace(tmp_path: Path) -> None:
    shown = run_example("async_rollout.py", tmp_path).splitlines()

    assert [line.split(",")[0] for line in shown[:5]] == [
        f"step {step}: 4 groups" for step in range(5)
    ]
    assert shown[5].startswith("not finished: ")
    with rollscope.open("async-rollout", dir=str(tmp_path)) as run:
        sessions = run.sessions().to_pylist()
        assert run.problems == []
        assert {row["name"] for row in run.phases().to_pylist()} == {"generate"}
    consumed = [row["consumed_step"] for row in sessions if row["consumed_step"] is not None]
    assert sorted(consumed) == sorted([*range(5)] * 16)


def test_rollouts_on_ray_are_one_trace_from_the_trainer_to_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)  # else it would join another's cluster
    monkeypatch.delenv("ROLLSCOPE_RAISE")  # Ray's workers are killed when it ends
    shown = run_example("ray_rollout.py", tmp_path, said=r"(\S+ \S+\t(INFO|WARNING) .*\n)*")

    assert re.fullmatch(r"(step \d: mean reward \d\.\d\d\n){4}", shown)
    with rollscope.open("ray-rollout", dir=str(tmp_path)) as run:
        assert run.problems == []
        rewards = run.sessions()["reward"].to_pylist()
        chains = run.sql(_CHAINS).to_pylist()
        syncs = run.sql(_SYNCS).to_pylist()
    assert (len(rewards), {*rewards}) == (64, {0.0, 1.0})
    roles = ["main", "rollout", "Engine"]
    assert [one["roles"] for one in chains] == [roles] * 64
    assert len({one["trace_id"] for one in chains}) == 64
    # The last one too, though Ray kills the engine right after it.
    assert [one["roles"] for one in syncs] == [["main", "Engine"]] * 4


def test_programs_for_other_tracers_show_the_same_sessions(tmp_path: Path) -> None:
    run_example("from_areal.py", tmp_path)
    (runs,) = tmp_path.glob("logs/*/example/first/rollscope")
    assert outcomes("example-first", runs) == ["accepted"] * 2 + ["rejected"] * 2
    name = run_example("from_xtuner.py", tmp_path / "xtuner").strip()
    assert outcomes(name, tmp_path / "xtuner") == ["None"] * 3 + ["rejected"]
    run_example("from_rl_insight.py", tmp_path / "rl")
    assert outcomes("examples-ppo", tmp_path / "rl") == ["None"] * 6


def outcomes(name: str, folder: Path) -> list[str]:
    with rollscope.open(name, dir=str(folder)) as run:
        assert run.problems == []
        return sorted(str(row["outcome"]) for row in run.sessions().to_pylist())


def test_examples_are_short() -> None:
    for example in _EXAMPLES.glob("*.py"):
        lines = example.read_text().splitlines()
        # A whole training is longer than what shows one thing.
        assert len(lines) < (160 if example.stem == "torch_grpo" else 60), example.name
