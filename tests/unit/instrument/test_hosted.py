from __future__ import annotations

import weakref
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.instrument.binding import bind_span_types
from rollscope.instrument.buffers import Buffers
from rollscope.instrument.spans import NOOP, Span
from rollscope.model.refs import SpanRef
from rollscope.testing import FakeClock, SequentialIds

if TYPE_CHECKING:
    from rollscope.instrument.hosted import HostedSession

CURRENT: ContextVar[Span] = ContextVar("hosted", default=NOOP)


class Bench:
    def __init__(self) -> None:
        self.buffers = Buffers()
        self.types = bind_span_types(self.buffers, CURRENT, SequentialIds(), FakeClock())
        self.asked: list[int] = []

    def begin(self, number: int = 1, before: Span | None = None) -> HostedSession:
        return self.types.hosted.begin("fn", number, None, 7, 1000, self._describe, before)

    def _describe(self, span: HostedSession) -> Any:
        self.asked.append(span.number)
        return f"{span.label}/{span.number}", 2, None, {"replica": "r"}, 5

    def claim(self, *spans: HostedSession) -> list[bool]:
        return [describe is not None for describe in self.types.hosted.claim(spans)]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_nothing_is_asked_of_a_session_that_nobody_reads(bench: Bench) -> None:
    span = copy_context().run(bench.begin)
    assert bench.asked == []
    assert bench.buffers.open == {}
    assert span.start_ns == 1000


def test_reading_any_part_opens_the_session_once(bench: Bench) -> None:
    span = copy_context().run(bench.begin)
    assert span.attrs == {"replica": "r"}
    assert (span.scope.task_key, span.scope.sample, span.scope.session_id) == ("fn/1", 2, span.id)
    assert (span.fields, span.thread, span.name) == ({"version_start": 7}, 5, "session")
    assert bench.asked == [1]
    assert bench.buffers.open == {span.id: span}


def test_a_phase_inside_belongs_to_the_session(bench: Bench) -> None:
    def run() -> tuple[HostedSession, Span]:
        session = bench.begin()
        with bench.types.new_phase("generate", {}) as phase:
            return session, phase

    session, phase = copy_context().run(run)
    assert phase.parent_id == session.id
    assert phase.scope is session.scope


def test_what_lives_until_the_next_look_is_open_then(bench: Bench) -> None:
    living, over = copy_context().run(bench.begin, 1), copy_context().run(bench.begin, 2)
    over.is_over = True
    assert bench.buffers.opened_since(lambda _: False) == [living]
    assert bench.buffers.opened_since(lambda _: False) == [living]
    assert bench.buffers.open == {living.id: living}
    assert bench.asked == []


def test_a_session_that_was_found_open_keeps_its_ids_whatever_is_asked_of_it(bench: Bench) -> None:
    span = copy_context().run(bench.begin)
    bench.buffers.open_started()
    found = span.ref
    assert bench.claim(span) == [True]
    assert span.attrs == {"replica": "r"}
    assert SpanRef(span.scope.trace_id, span.id) == found == span.ref
    assert bench.buffers.open == {span.id: span}


def test_a_session_that_is_over_is_never_open(bench: Bench) -> None:
    span = copy_context().run(bench.begin)
    span.is_over = True
    bench.buffers.open_all([span])
    assert bench.buffers.open == {}
    assert span.attrs
    assert bench.buffers.open == {}


def test_a_claimed_session_has_its_ids_and_nothing_is_asked_of_it(bench: Bench) -> None:
    span = copy_context().run(bench.begin)
    span.is_over = True
    assert bench.claim(span) == [True]
    assert span.ref == SpanRef(bench.types.hosted.traces_of([span.id])[0], span.id)
    assert (bench.asked, bench.buffers.open) == ([], {})


def test_a_forked_child_names_a_claimed_session_as_its_parent_does(bench: Bench) -> None:
    span = copy_context().run(bench.begin)
    bench.claim(span)
    claimed = span.ref
    bench.types.renew_ids()
    assert claimed == span.ref == SpanRef(span.scope.trace_id, span.id)


def test_a_share_of_the_traces_by_their_last_bytes_is_that_share_of_the_sessions(
    bench: Bench,
) -> None:
    spans = [copy_context().run(bench.begin, number) for number in range(1_000)]
    bench.claim(*spans)
    traces = set(bench.types.hosted.traces_of(span.id for span in spans))
    assert {len(trace) for trace in traces} == {16}
    assert len(traces) == 1_000
    sampled = sum(int.from_bytes(trace[8:]) < 2**64 // 10 for trace in traces)
    assert 90 <= sampled <= 110


def test_what_is_read_of_a_claimed_session_agrees_with_its_ids(bench: Bench) -> None:
    span = copy_context().run(bench.begin)
    span.is_over = True
    bench.claim(span)
    claimed = span.ref
    assert (span.scope.task_key, span.scope.session_id) == ("fn/1", span.id)
    assert SpanRef(span.scope.trace_id, span.id) == claimed == span.ref
    assert (span.attrs, span.parent_id, bench.buffers.open) == ({"replica": "r"}, 0, {})


def test_a_session_that_was_read_is_not_claimed(bench: Bench) -> None:
    read, unread = copy_context().run(bench.begin, 1), copy_context().run(bench.begin, 2)
    assert read.id
    assert bench.claim(read, unread) == [False, True]


def test_a_session_of_a_task_is_not_claimed(bench: Bench) -> None:
    def run() -> HostedSession:
        with bench.types.new_task("around", "g", None, {}):
            return bench.begin()

    session = copy_context().run(run)
    assert bench.claim(session) == [False]
    assert session.scope.task_key == "around"


def test_a_session_of_a_task_is_open_at_the_next_look(bench: Bench) -> None:
    def run() -> HostedSession:
        with bench.types.new_task("around", "g", None, {}):
            return bench.begin()

    session = copy_context().run(run)
    assert bench.buffers.opened_since(lambda _: False) == [session]
    assert bench.asked == [1]


def test_another_attempt_goes_on_with_the_trace_of_the_last(bench: Bench) -> None:
    first = copy_context().run(bench.begin)
    second = copy_context().run(bench.begin, 1, first)
    assert second.id != first.id
    assert second.scope.trace_id == first.scope.trace_id


def test_a_session_joins_the_task_around_it(bench: Bench) -> None:
    def run() -> tuple[HostedSession, Span]:
        with bench.types.new_task("around", "g", None, {}) as task:
            return bench.begin(), task

    session, task = copy_context().run(run)
    assert session.parent_id == task.id
    assert (session.scope.task_key, session.scope.group) == ("around", "g")
    assert session.scope.trace_id == task.scope.trace_id


def test_a_session_begun_inside_another_has_a_trace_of_its_own(bench: Bench) -> None:
    def run() -> tuple[HostedSession, HostedSession]:
        return bench.begin(1), bench.begin(2)

    outer, inner = copy_context().run(run)
    assert inner.scope.trace_id != outer.scope.trace_id
    assert inner.parent_id == 0


def test_sessions_that_begin_their_successors_do_not_keep_each_other(bench: Bench) -> None:
    class Function:
        pass

    def run() -> tuple[HostedSession, weakref.ref[Function]]:
        function = Function()
        outer = bench.types.hosted.begin(function, 1, None, 7, 1000, bench._describe, None)
        outer.is_over = True
        return bench.begin(2), weakref.ref(function)

    inner, gone = copy_context().run(run)
    del bench.buffers.started[0]
    assert gone() is None
    assert inner.id
