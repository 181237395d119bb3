"""Whatever a program hands to a stand-in, its own work goes on, and so does the recording."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rollscope.integrations import areal, rl_insight, xtuner
from rollscope.integrations.xtuner.regions import current_region
from rollscope.store.fold import read_run
from tests.hostile import Hostile, Proxy

ODD: list[Any] = [
    Hostile(),
    Proxy(),
    None,
    5,
    math.nan,
    "",
    "\ud800",
    "x" * 100_000,
    "</script>",
    b"bytes",
    object(),
    [Hostile()],
    {Hostile: 1},
    {"self": 1, "name": 2, "rank": Hostile()},
    10**5000,
]


def enter(block: Any) -> None:
    with block:
        pass


@pytest.fixture(autouse=True)
def as_in_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLSCOPE_RAISE")


@pytest.fixture
def tracer(tmp_path: Path) -> Iterator[Path]:
    config = {
        "experiment_name": "e",
        "trial_name": "t",
        "fileroot": tmp_path,
        "enabled": True,
        "session_tracer": {"enabled": True},
    }
    areal.configure(config, rank=0)
    yield tmp_path
    areal.reset()
    areal.set_session_id(None)


AREAL: dict[str, Callable[[Any], object]] = {
    "scope": lambda odd: enter(areal.trace_scope(odd)),
    "category": lambda odd: enter(areal.trace_scope("n", category=odd)),
    "args": lambda odd: enter(areal.trace_scope("n", args=odd)),
    "step": lambda odd: enter(areal.trace_scope("train.x", args={"global_step": odd})),
    "profiler": lambda odd: enter(areal.trace_scope("n", enable_profiler=True, args={"a": odd})),
    "instant": lambda odd: areal.instant(odd, category=odd, args=odd),
    "task": areal.register_task,
    "session": areal.register_session,
    "phase": lambda odd: enter(areal.trace_session_phase(odd, start_payload=odd, end_payload=odd)),
    "event": lambda odd: areal.trace_session_event(odd, session_id=0),
    "whose": lambda odd: areal.trace_session_event("mark_finalized", session_id=odd, task_id=odd),
    "verdict": lambda odd: areal.trace_session_event(
        "mark_finalized", task_id=1, status=odd, reason=odd, method=odd
    ),
    "counter": lambda odd: areal.trace_session_event(
        "increment_counter", session_id=0, name=odd, value=odd
    ),
    "perf": lambda odd: areal.trace_perf(odd, category=odd)(lambda: None)(),
}


@pytest.mark.parametrize("call", AREAL)
def test_areals_calls_take_anything(tracer: Path, call: str) -> None:
    areal.set_session_id(areal.register_session(1))
    for odd in ODD:
        AREAL[call](odd)
    with areal.trace_scope("still there"):
        pass
    areal.reset()
    (run,) = tracer.rglob("rollscope/e-t")
    found = [span.name for span in read_run(run).spans.values()]
    assert found.count("still there") == 1
    (file,) = tracer.rglob("traces-r0.jsonl")
    assert file.read_text().count('"still there"') == 1


def state(**odd: Any) -> Any:
    given = {"uid": 1, "status": "init", "task_name": "t", "extra_fields": {}, **odd}
    return SimpleNamespace(**given)


XTUNER: dict[str, Callable[[Any], object]] = {
    "name": lambda odd: enter(xtuner.trace_span("n", odd)),
    "first": lambda odd: enter(xtuner.trace_span(odd)),
    "both": lambda odd: enter(xtuner.trace_span(odd, odd)),
    "attribute": lambda odd: enter(xtuner.trace_span("n", {"a": odd, "b": [odd, 1]})),
    "carrier": lambda odd: enter(xtuner.trace_span("n", parent_carrier=odd)),
    "uid": lambda odd: enter(xtuner.trace_span(state(uid=odd), "n")),
    "status": lambda odd: enter(xtuner.trace_span(state(status=odd), "n")),
    "extra": lambda odd: enter(xtuner.trace_span(state(extra_fields=odd), "n")),
    "reward": lambda odd: enter(xtuner.trace_span(state(reward=odd, status="completed"), "n")),
    "members": lambda odd: enter(xtuner.trace_span([state(), odd], "n")),
    "field": lambda odd: enter(xtuner.trace_span(state(), "n", worker_rank=odd, train_step=odd)),
    "event": lambda odd: xtuner.trace_event(odd, odd),
    "event fields": lambda odd: xtuner.trace_event(state(), "e", status=odd, uid=odd),
    "set": xtuner.set_trace_attributes,
    "extract": lambda odd: enter(xtuner.extract_trace_context(odd)),
    "function": lambda odd: xtuner.trace_function("f")(lambda value: None)(odd),
    "getter": lambda odd: xtuner.trace_function("f", trace_kwargs_getter=lambda v: odd)(
        lambda value: None
    )(1),
}


@pytest.mark.parametrize("call", XTUNER)
@pytest.mark.parametrize("classic", ["otlp", "producer"])
def test_xtuners_calls_take_anything(tmp_path: Path, call: str, classic: str) -> None:
    runtime = xtuner.configure_trace(
        {"enabled": True, "output_dir": tmp_path, "viewer_enabled": False, "classic": classic}
    )
    run = runtime.run_dir
    try:
        for odd in ODD:
            XTUNER[call](odd)
            assert current_region() is None
        with xtuner.trace_span(state(uid=77), "still there"):
            pass
    finally:
        xtuner.close_trace()
    spans = list(read_run(run).spans.values())
    assert [span.name for span in spans].count("still there") == 1
    assert all(span.end_ns is not None for span in spans)
    files = [*tmp_path.glob("producer*.jsonl"), *tmp_path.rglob("traces.jsonl")]
    text = "".join(file.read_text() for file in files)
    if classic == "otlp":
        assert text.count('"name":"still there"') == 1
    else:
        assert text.count('"stage":"still there.') == 2


RL_INSIGHT: dict[str, Callable[[Any], object]] = {
    "state": lambda odd: enter(rl_insight.trace_state(odd, odd, label=odd)),
    "op": lambda odd: rl_insight.trace_op("o", static=odd)(lambda value: None)(odd),
    "span": lambda odd: rl_insight.trace_span(
        name="n", start_time_ns=odd, end_time_ns=odd, attributes=odd
    ),
    "lane": lambda odd: rl_insight.trace_span(
        name=odd, start_time_ns=1, end_time_ns=2, attributes={"state_lane_id": odd, "sample": odd}
    ),
    "count": lambda odd: rl_insight.metric_count("c", odd, label=odd),
    "gauge": lambda odd: rl_insight.metric_gauge(odd, odd, odd),
    "histogram": lambda odd: rl_insight.metric_histogram("h", odd, documentation=odd),
}


@pytest.mark.parametrize("call", RL_INSIGHT)
def test_rl_insights_calls_take_anything(tmp_path: Path, call: str) -> None:
    own = {"dir": str(tmp_path), "run": "r"}
    report = {"metrics_report_port": None}
    rl_insight.init(config={"backend": "local", "prometheus": report, "rollscope": own})
    try:
        for odd in ODD:
            RL_INSIGHT[call](odd)
        with rl_insight.trace_state("still there"):
            pass
    finally:
        rl_insight.finish()
    found = [span.name for span in read_run(tmp_path / "r").spans.values()]
    assert found.count("still there") == 1
