"""Metrics and steps, as verl's `Tracking` tells of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import rollscope as rs
from rollscope.errors import MissingExtra
from rollscope.integrations import verl
from rollscope.integrations.verl import TrackingBackend
from rollscope.model.records import MetricRecord
from rollscope.testing.capture import Capture, capture

from .conftest import Tracking

TIMES = {
    "timing_s/start_profile": 9.0,
    "timing_s/generate_sequences": 2.9,
    "timing_s/agent_loop/generate_sequences/max": 2.8,
    "timing_s/gen": 3.0,
    "timing_s/reward": 0.5,
    "timing_s/update_actor": 1.0,
    "timing_s/update_weights": 0.25,
    "timing_s/step": 5.0,
}


def metrics(captured: Capture) -> dict[str, tuple[int | None, float]]:
    return {
        record.name: (record.step, record.value)
        for record in captured.records()
        if isinstance(record, MetricRecord)
    }


def test_a_step_is_recorded_with_its_stages_and_metrics() -> None:
    with capture() as captured:
        backend = TrackingBackend("gsm8k", "ppo")
        backend.log(data={"actor/pg_loss": 0.25, **TIMES}, step=12)
        spans = captured.spans()
        told = metrics(captured)

    step, *stages = sorted(spans, key=lambda span: span.kind != "step")
    assert (step.kind, step.step, step.status) == ("step", 12, "ok")
    assert step.end_ns is not None
    assert 5.0 <= (step.end_ns - step.start_ns) / 1e9 < 5.5
    lengths = [(s.name, s.category, ((s.end_ns or 0) - s.start_ns) / 1e9) for s in stages]
    assert lengths == [
        ("batch.wait", "sync", 3.0),
        ("reward", "compute", 0.5),
        ("trainer.update", "compute", 1.0),
        ("update_weights", "sync", 0.25),
    ]
    starts = [(span.start_ns - step.start_ns) / 1e9 for span in stages]
    assert starts == [0.0, 3.0, 3.5, 4.5]
    assert all(span.parent_id == step.span_id and span.step == 12 for span in stages)
    assert [span.attrs.get("source_name") for span in stages] == ["gen", None, "update_actor", None]
    assert all(span.attrs["placed"] is True for span in stages)
    assert told["actor/pg_loss"] == (12, 0.25)
    assert told["timing_s/gen"] == (12, 3.0)
    assert len(told) == 1 + len(TIMES)


def test_metrics_without_times_belong_to_their_step_and_make_none() -> None:
    with capture() as captured:
        backend = TrackingBackend()
        backend.log(data={"val-core/acc/mean@1": 0.5}, step=0)
        backend.log(data={"val-core/acc/mean@2": 0.75}, step=10)
        assert captured.spans() == []
        assert metrics(captured) == {
            "val-core/acc/mean@1": (0, 0.5),
            "val-core/acc/mean@2": (10, 0.75),
        }


def test_a_step_that_the_host_has_open_is_not_made_again() -> None:
    with capture() as captured:
        with rs.step(4):
            TrackingBackend().log(data={"loss": 1.0, "timing_s/step": 3.0}, step=4)
        assert [span.kind for span in captured.spans()] == ["step"]
        assert metrics(captured)["loss"] == (4, 1.0)


@pytest.mark.parametrize("step", [None, True, "x", float("nan"), 2**70, object()])
def test_odd_steps_keep_their_metrics(step: Any) -> None:
    with capture() as captured:
        TrackingBackend().log(data={"loss": 1.0, "timing_s/step": 3.0}, step=step)
        assert captured.spans() == []
        assert metrics(captured) == {"loss": (None, 1.0), "timing_s/step": (None, 3.0)}


def test_odd_values_are_left_out_and_the_rest_is_kept() -> None:
    class Tensor:
        def __float__(self) -> float:
            return 2.0

    class Broken:
        def __float__(self) -> float:
            raise RuntimeError("on another device")

    data = {
        "tensor": Tensor(),
        "broken": Broken(),
        "text": "1.0",
        "none": None,
        "nan": float("nan"),
        "table": [1, 2],
        "huge": 10**400,
        7: 1.5,
        "timing_s/step": 2.0,
        "timing_s/gen": -1.0,
        "timing_s/reward": float("inf"),
        "timing_s/late": 2.5,
    }
    with capture() as captured:
        TrackingBackend().log(data=data, step="3")  # type: ignore[arg-type]
        assert [(span.kind, span.step) for span in captured.spans()] == [("step", 3)]
        assert metrics(captured) == {
            "tensor": (3, 2.0),
            "7": (3, 1.5),
            "timing_s/step": (3, 2.0),
            "timing_s/gen": (3, -1.0),
            "timing_s/late": (3, 2.5),
        }


def test_what_is_no_mapping_does_not_stop_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLSCOPE_RAISE")
    with capture() as captured:
        TrackingBackend().log(data=None, step=1)  # type: ignore[arg-type]
        assert captured.spans() == []


def test_installed_it_is_a_backend_of_tracking(
    tracking: type[Tracking], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    verl.install()
    verl.install()
    made = tracking("my project", "ppo/1", ["console", "rollscope"])
    made.log({"loss": 1.0, "timing_s/step": 0.5}, 1)
    made.log({"loss": 0.5, "timing_s/step": 0.5}, 2)
    made.logger["rollscope"].finish()

    assert not rs.enabled()
    with rs.open(tmp_path / "runs" / "my_project-ppo_1") as run:
        assert [row["step"] for row in run.steps().to_pylist()] == [1, 2]
    assert "rollscope" not in tracking("p", "e").logger


def test_uninstalled_tracking_is_as_it_was(tracking: type[Tracking]) -> None:
    before = tracking.__init__
    verl.install()
    verl.uninstall()

    assert tracking.__init__ is before
    with pytest.raises(AssertionError, match="rollscope is not supported"):
        tracking("p", "e", "rollscope")


def test_without_verl_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "verl", None)

    with pytest.raises(MissingExtra, match="pip install verl"):
        verl.install()


def test_it_refuses_once_agent_loops_use_the_original(tracking: type[Tracking]) -> None:
    sys.modules["verl.utils.rollout_trace"] = ModuleType("verl.utils.rollout_trace")

    with pytest.raises(RuntimeError, match=r"install\(\) goes before"):
        verl.install()


def test_importing_loads_nothing_of_verl_and_installing_by_import_does_not_raise() -> None:
    code = (
        "import json, sys; import rollscope.integrations.verl;"
        "found = [n for n in sys.modules if n.split('.')[0] in ('verl', 'ray', 'torch', 'duckdb')];"
        "import rollscope.integrations.verl.installed; print(json.dumps(found))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert json.loads(shown.stdout) == []
    assert b"Rollscope does not trace verl: verl cannot be imported (" in shown.stderr
    assert b"pip install verl" in shown.stderr


def test_nothing_is_recorded_when_switched_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ROLLSCOPE", "off")
    monkeypatch.chdir(tmp_path)
    backend = TrackingBackend("p", "e")
    backend.log(data={"loss": 1.0}, step=1)
    backend.finish()

    assert list(tmp_path.iterdir()) == []
