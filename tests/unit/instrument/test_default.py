from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import threading
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

import rollscope as rs
from rollscope.errors import SettingError
from rollscope.instrument.sinks.memory import MemorySink
from rollscope.instrument.spans import NOOP
from rollscope.testing import FakeClock, SequentialIds, capture
from tests.hostile import Hostile, Proxy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SPANS: dict[str, Callable[[], rs.Span]] = {
    "step": lambda: rs.step(1, version=2, a=1),
    "task": lambda: rs.task("t", group="g", step=1, a=1),
    "session": lambda: rs.session(sample=1, version=2, group="g", step=1, a=1),
    "phase": lambda: rs.phase("p", a=1),
    "span": lambda: rs.span("s", category="io", a=1),
    "state": lambda: rs.state("s", lane="l", a=1),
}
OTHERS: dict[str, Callable[[], object]] = {
    "event": lambda: rs.event("e", a=1),
    "annotate": lambda: rs.annotate(NOOP, a=1),
    "payload": lambda: rs.payload("p", [1]),
    "count": lambda: rs.count("n", 2, a=1),
    "gauge": lambda: rs.gauge("n", 2, a=1),
    "observe": lambda: rs.observe("n", 2, a=1),
}


# Without init


def test_nothing_is_recorded_before_init() -> None:
    assert not rs.enabled()
    assert rs.flush()
    assert rs.shutdown()
    assert rs.stacks() == []
    assert rs.inject() == {}


@pytest.mark.parametrize("kind", SPANS)
def test_a_disabled_span_is_false_and_bears_everything(kind: str) -> None:
    span = SPANS[kind]()
    assert span is NOOP
    assert not span
    with span as entered:
        assert entered is NOOP
        assert entered.set(a=1) is NOOP
        assert entered.ref is None
        assert not rs.current()

    async def main() -> None:
        async with span as entered:
            assert entered is NOOP

    asyncio.run(main())


def test_a_disabled_session_takes_a_verdict() -> None:
    with rs.session() as session:
        assert session.finish("accepted", reason="r", version=1, reward=1.0) is session


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError, KeyboardInterrupt])
def test_a_disabled_span_lets_errors_pass(error: type[BaseException]) -> None:
    with pytest.raises(error), rs.span("x"):
        raise error

    async def main() -> None:
        async with rs.span("x"):
            raise error

    with pytest.raises(error):
        asyncio.run(main())


@pytest.mark.parametrize("name", OTHERS)
def test_other_disabled_calls_do_nothing(name: str) -> None:
    assert OTHERS[name]() is None


def test_whatever_can_be_read_off_a_span_can_be_read_off_the_one_that_is_not_there() -> None:
    public = [name for name in inspect.get_annotations(rs.Span) if name != "own_scope"]
    with capture(), rs.session() as real:
        for name in public:
            assert isinstance(getattr(NOOP, name), type(getattr(real, name)).__mro__[-2:][0])


def test_disabled_calls_leave_no_memory_behind() -> None:
    calls = [*SPANS.values(), *OTHERS.values()]

    def work() -> None:
        for call in calls:
            call()
        with rs.span("x", a=1, b="t") as span:
            span.set(c=2)

    tracemalloc.start()
    try:
        for _ in range(200):  # what Python keeps of freed maps for the next ones is kept by now
            work()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(1000):
            work()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 2000
    assert not [thread for thread in threading.enumerate() if "rollscope" in thread.name]


def test_disabled_calls_look_at_none_of_their_arguments() -> None:
    nonsense: Any = object()
    rs.span(nonsense, category=nonsense)
    rs.task(nonsense, group=nonsense)
    rs.session(sample=nonsense)
    rs.count(nonsense, nonsense)
    rs.annotate(nonsense)
    rs.payload(nonsense, nonsense)
    rs.attach(nonsense)


@pytest.mark.parametrize("value", ["on", "off"])
def test_blocks_can_be_entered_one_by_one_whether_recorded_or_not(
    value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ROLLSCOPE", value)
    rs.init(dir=tmp_path)

    with contextlib.ExitStack() as stack:
        stack.enter_context(rs.step(1))
        stack.enter_context(rs.task("a"))
        session = stack.enter_context(rs.session(sample=0))
        stack.enter_context(rs.phase("generate")).set(tokens=3)
        session.finish("accepted")

    async def asynchronous() -> None:
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(rs.span("a"))
            stack.enter_context(rs.span("b")).set(x=1)

    asyncio.run(asynchronous())
    stack = contextlib.ExitStack()
    stack.enter_context(rs.span("c"))
    assert not stack.__exit__(ValueError, ValueError("kept"), None)


def test_the_variable_turns_everything_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROLLSCOPE", "off")
    tracer = rs.init(dir=tmp_path, enabled=True)
    assert not rs.enabled()
    assert not tracer.enabled()
    with rs.span("x") as span:
        assert span is NOOP
    assert rs.shutdown()
    assert list(tmp_path.iterdir()) == []


# Init and shutdown


def test_recording_starts_with_init_and_ends_with_shutdown() -> None:
    sink = MemorySink()
    tracer = rs.init(run="r", role="reward", rank=3, sink=sink, tags={"a": "b"})
    assert rs.enabled()
    assert tracer.enabled()
    with rs.span("x"):
        pass
    assert rs.shutdown()
    assert not rs.enabled()
    (opening,) = sink.openings
    assert (opening.run, opening.tags) == ("r", {"a": "b"})
    assert opening.directory == os.path.abspath("runs")
    assert (opening.header.role, opening.header.rank) == ("reward", 3)
    assert sink.closed


def test_an_unnamed_run_is_named_after_the_time_and_the_process() -> None:
    import os
    import re

    sink = MemorySink()
    tracer = rs.init(sink=sink)
    assert re.fullmatch(rf"\d{{8}}-\d{{6}}-{os.getpid()}", tracer.run)


def test_a_second_init_ends_the_first_run_and_starts_another() -> None:
    first, second = MemorySink(), MemorySink()
    rs.init(sink=first, run="first")
    rs.event("one")
    rs.init(sink=second, run="second")
    assert first.closed
    rs.event("two")
    rs.shutdown()
    assert len(first.openings) == len(second.openings) == 1


def test_a_bad_setting_is_refused_at_init() -> None:
    with pytest.raises(SettingError, match="did you mean 'drain_s'"):
        rs.init(drain_seconds=1)
    with pytest.raises(SettingError, match="setting 'rank' is -1"):
        rs.init(rank=-1)
    assert not rs.enabled()


def test_spans_that_outlive_the_recording_harm_nothing() -> None:
    with capture():
        span = rs.span("outlives")
        span.__enter__()
    span.set(a=1)
    span.__exit__(None, None, None)
    assert not rs.current()
    with capture() as run:
        with rs.span("fresh"):
            pass
        assert run.named("fresh").parent_id is None


def test_a_span_made_by_one_recording_can_be_left_in_the_next() -> None:
    with capture():
        old = rs.span("old")
        old.__enter__()
    with capture() as run:
        with rs.span("new"):
            old.__exit__(None, None, None)
        assert [span.name for span in run.spans()] == ["new"]


def test_starting_and_stopping_again_and_again_leaves_nothing_running() -> None:
    for _ in range(20):
        rs.init(sink="none")
        rs.event("x")
        assert rs.shutdown()
    assert not [thread for thread in threading.enumerate() if "rollscope" in thread.name]


def test_a_sink_that_cannot_be_made_is_told_and_nothing_is_recorded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from rollscope.instrument.sinks import choosing

    def fail(settings: object) -> MemorySink:
        raise OSError("out of descriptors")

    monkeypatch.delenv("ROLLSCOPE_RAISE")
    monkeypatch.setattr(choosing, "make_sink", fail)
    rs.init()
    assert not rs.enabled()
    assert "starting to record" in caplog.messages[0]


def test_flush_brings_everything_to_the_sink() -> None:
    with capture(drain_s=60) as run:
        for number in range(100):
            with rs.span(f"s{number}"):
                pass
        assert rs.flush()
        frames = len(run.sink.frames)
        assert len(run.spans()) == 100
        assert len(run.sink.frames) == frames


def test_many_rows_are_written_before_the_drain_is_due() -> None:
    with capture(drain_s=60, clock=FakeClock()) as run:
        rs.flush()
        for _ in range(15_000):
            rs.event("e")
        deadline = threading.Event()
        for _ in range(1000):
            if sum(len(frame.data) for frame in run.sink.frames) > 100_000:
                break
            deadline.wait(0.01)
        assert sum(len(frame.data) for frame in run.sink.frames) > 100_000


def test_two_tracers_record_apart() -> None:
    sinks = MemorySink(), MemorySink()
    with rs.Tracer(sink=sinks[0], run="a") as a, rs.Tracer(sink=sinks[1], run="b") as b:
        with a.span("in a") as outer, b.span("in b") as inner:
            assert a.current() is outer
            assert b.current() is inner
            assert outer.ref is not None
            assert inner.ref is not None
            assert outer.ref.trace_id != inner.ref.trace_id
        assert not rs.enabled()
    assert [sink.closed for sink in sinks] == [True, True]


def test_a_tracer_works_without_the_default_one() -> None:
    sink = MemorySink()
    with rs.Tracer(sink=sink, clock=FakeClock(), ids=SequentialIds(), payloads=True) as tracer:

        @tracer.trace("traced")
        def traced() -> str:
            return str(tracer.current().ref)

        with (
            tracer.step(1),
            tracer.task("t"),
            tracer.session() as session,
            tracer.phase("p"),
            tracer.state("s", lane="l"),
            tracer.span("x"),
        ):
            assert traced().startswith("00-")
            tracer.event("e")
            tracer.payload("p", [1])
            headers = tracer.inject()
        session.finish("accepted")
        tracer.annotate(session, a=1)
        tracer.count("c")
        tracer.gauge("g", 1)
        tracer.observe("h", 1)
        with tracer.attach(headers), tracer.span("y"):
            pass
        assert tracer.carry(traced)()
        assert tracer.child_env({})["ROLLSCOPE_RUN"] == tracer.run
        assert tracer.stacks() == []
        assert tracer.flush()
        assert tracer.enabled()
    assert not tracer.enabled()
    assert sink.closed


# Metrics and payloads


def test_metrics_are_added_up_between_drains() -> None:
    with capture() as run:
        for number in range(10):
            rs.count("steps_total", worker=number % 2)
            rs.observe("seconds", number)
        rs.gauge("reward_mean", 1.5)
        rs.gauge("reward_mean", 2.5)
        metrics = run.fold().metrics
    totals: dict[tuple[str, str], float] = {}
    for metric in metrics:
        key = metric.name, metric.labels.get("worker", "")
        totals[key] = totals.get(key, 0) + metric.value
    assert totals["steps_total", "0"] == totals["steps_total", "1"] == 5
    assert totals["seconds", ""] == 45
    assert [metric for metric in metrics if metric.name == "reward_mean"][-1].value == 2.5


def test_payloads_are_kept_only_when_asked_for() -> None:
    with capture() as run:
        with rs.session():
            rs.payload("messages", ["hi"])
        assert run.fold().payloads == []
    with capture(payloads=True) as run:
        with rs.session() as session:
            rs.payload("messages", ["hi"])
        (payload,) = run.fold().payloads
    assert (payload.name, payload.text, payload.cut) == ("messages", '["hi"]', False)
    assert payload.span_id == f"{session.id:016x}"


def test_a_conversation_that_grows_is_kept_as_it_was() -> None:
    with capture(payloads=True, drain_s=60, clock=FakeClock()) as run:
        with rs.session():
            messages = ["first"]
            headers = {"a": 1}
            rs.payload("list", messages)
            rs.payload("map", headers)
            messages.append("second")
            headers["b"] = 2
        texts = [payload.text for payload in run.fold().payloads]
    assert texts == ['["first"]', '{"a":1}']


def test_a_payload_is_cut_at_its_limit() -> None:
    with capture(payloads=True, payload_max_bytes=64) as run:
        with rs.session():
            rs.payload("text", "x" * 1000)
        (payload,) = run.fold().payloads
    assert (len(payload.text), payload.cut) == (64, True)


def test_a_payload_outside_of_any_span_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with capture(payloads=True) as run:
        rs.payload("messages", [])
        rs.payload("messages", [])
        assert run.fold().payloads == []
    assert len(caplog.messages) == 1
    assert "'messages'" in caplog.messages[0]


def test_a_payload_of_a_container_with_code_of_its_own_runs_none_of_it() -> None:
    class Sly(list[int]):
        def copy(self) -> list[int]:
            raise AssertionError("the host's code was run")

    class SlyMap(dict[str, int]):
        def copy(self) -> dict[str, int]:
            raise AssertionError("the host's code was run")

    with capture(payloads=True) as run:
        with rs.session():
            rs.payload("list", Sly([1]))
            rs.payload("map", SlyMap(a=1))
        assert [payload.text for payload in run.fold().payloads] == ["[1]", '{"a":1}']


# Whatever is handed over


@pytest.mark.parametrize("make", [Proxy, Hostile, lambda: "\ud800", lambda: None, lambda: 10**5000])
def test_no_call_raises_whatever_it_is_given(make: Callable[[], Any]) -> None:
    with capture(payloads=True) as run:
        spans: list[rs.Span] = [
            rs.span(make(), category=make(), a=make()),
            rs.phase(make(), a=make()),
            rs.state(make(), lane=make(), a=make()),
            rs.step(make(), version=make(), a=make()),
            rs.task(make(), group=make(), step=make(), a=make()),
            rs.session(sample=make(), version=make(), group=make(), step=make(), a=make()),
        ]
        for span in spans:
            with span:
                span.set(b=make())
                rs.event(make(), a=make())
                rs.payload(make(), make())
                rs.payload("nested", [make(), {"a": make()}])
                rs.inject()
                rs.carry(len)
                rs.child_env({})
            span.set(c=make())
            rs.annotate(span, d=make())
        session = spans[-1]
        assert isinstance(session, rs.Session)
        session.finish(make(), reason=make(), version=make(), e=make())
        rs.annotate(make(), a=make())
        rs.count(make(), make(), a=make())
        rs.gauge(make(), make(), a=make())
        rs.observe(make(), make(), a=make())
        rs.count("fine")
        rs.payload(make(), 1)
        folded = run.fold()
        assert len(folded.spans) == len(folded.events) == len(spans)
        assert len(folded.payloads) == 2 * len(spans)
        assert "fine" in [metric.name for metric in folded.metrics]


@pytest.mark.parametrize("make", [Proxy, lambda: 7, lambda: [("traceparent", "x")]])
def test_a_carrier_that_is_no_mapping_is_told_and_the_program_goes_on(
    make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("ROLLSCOPE_RAISE")
    with capture(), rs.span("x") as span:
        with rs.attach(make()):
            assert rs.current() is span
        rs.inject(make())
    assert len(caplog.messages) == 2


def test_a_mistake_in_a_second_init_leaves_the_first_recording_alone() -> None:
    with capture() as captured:
        with pytest.raises(SettingError):
            rs.init(drain_s="soon")
        with rs.span("still recorded"):
            pass
        assert captured.named("still recorded").status == "ok"


def test_a_misspelt_variable_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ROLLSCOPE_DRAINS", "1")
    for _ in range(2):
        rs.init(sink="none")

    (told,) = caplog.messages
    assert told == "Rollscope ignores ROLLSCOPE_DRAINS; did you mean 'ROLLSCOPE_DRAIN_S'?"
