from __future__ import annotations

import asyncio
import contextvars
import copy
import pickle
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import rollscope as rs
from rollscope.instrument.spans import NOOP
from rollscope.model.kinds import Category, Kind, Outcome, Status
from rollscope.model.records import FactRecord
from rollscope.testing import Capture, FakeClock, SequentialIds, capture
from tests.builders import SECOND
from tests.hostile import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rollscope.model.records import SpanRecord

START = 1_700_000_000 * SECOND


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def run(clock: FakeClock) -> Iterator[Capture]:
    """Record with a clock and ids that tests know beforehand."""
    with capture(clock=clock, ids=SequentialIds()) as captured:
        yield captured


def facts_of(run: Capture) -> list[FactRecord]:
    return [record for record in run.records() if isinstance(record, FactRecord)]


def only(run: Capture) -> SpanRecord:
    (span,) = run.spans()
    return span


# Every kind and its fields


def test_a_span_has_name_category_times_and_attributes(run: Capture, clock: FakeClock) -> None:
    clock.advance(1)
    with rs.span("weights.pack", category="comm", bytes=7) as span:
        clock.advance(2)
        assert span.set(chunks=4) is span
    recorded = only(run)
    assert (recorded.kind, recorded.name, recorded.category) == (Kind.SPAN, "weights.pack", "comm")
    assert (recorded.start_ns, recorded.end_ns) == (START + SECOND, START + 3 * SECOND)
    assert recorded.attrs == {"bytes": 7, "chunks": 4}
    assert (recorded.status, recorded.reason, recorded.outcome) == (Status.OK, None, None)
    assert (recorded.step, recorded.task_key, recorded.sample, recorded.lane) == (None,) * 4
    assert recorded.span_id == "0000000000000001"
    assert recorded.process == "0000000000000001"


def test_a_span_is_miscellaneous_unless_told_otherwise(run: Capture) -> None:
    with rs.span("x"):
        pass
    assert only(run).category is Category.MISC


@pytest.mark.parametrize("category", list(Category))
def test_each_category_is_recorded(run: Capture, category: Category) -> None:
    with rs.span("x", category=category):
        pass
    with rs.span("y", str(category)):
        pass
    assert [span.category for span in run.spans()] == [category, category]


def test_a_step_opens_a_trace_and_gives_its_number_to_what_is_inside(run: Capture) -> None:
    with rs.step(41, version=12, lr=0.1), rs.span("update"):
        pass
    step, update = run.spans()
    assert (step.kind, step.name, step.step, step.version_start) == (Kind.STEP, "step", 41, 12)
    assert step.attrs == {"lr": 0.1}
    assert step.parent_id is None
    assert (update.step, update.parent_id, update.trace_id) == (41, step.span_id, step.trace_id)
    assert update.version_start is None


def test_a_task_opens_a_trace_of_its_own_and_knows_its_step(run: Capture) -> None:
    with rs.step(41), rs.task("gsm8k/8421", group="g", source="train"):
        pass
    step, task = run.spans()
    assert (task.kind, task.name, task.task_key, task.group) == (
        Kind.TASK,
        "task",
        "gsm8k/8421",
        "g",
    )
    assert task.step == 41
    assert task.attrs == {"source": "train"}
    assert task.parent_id is None
    assert task.trace_id != step.trace_id


def test_a_step_given_to_a_task_wins_over_the_one_around_it(run: Capture) -> None:
    with rs.step(41), rs.task("a", step=43), rs.session(sample=0):
        pass
    assert [span.step for span in run.spans()] == [41, 43, 43]


def test_a_session_stays_in_the_trace_of_its_task(run: Capture) -> None:
    with rs.task("a", group="g", step=4), rs.session(sample=3, version=12, temperature=1.0) as s:
        s.finish("accepted", reason="good", version=13, reward=0.5)
    task, session = run.spans()
    assert (session.kind, session.name, session.sample) == (Kind.SESSION, "session", 3)
    assert (session.trace_id, session.parent_id) == (task.trace_id, task.span_id)
    assert (session.task_key, session.group, session.step) == ("a", "g", 4)
    assert (session.version_start, session.version_end) == (12, 13)
    assert (session.outcome, session.reason) == (Outcome.ACCEPTED, "good")
    assert session.attrs == {"temperature": 1.0, "reward": 0.5}
    assert session.session_id == session.span_id


def test_a_session_may_have_a_group_and_step_of_its_own(run: Capture) -> None:
    with rs.task("a", group="g", step=4), rs.session(group="h", step=5):
        pass
    session = run.named("session")
    assert (session.group, session.step, session.sample) == ("h", 5, 0)


def test_a_session_without_a_task_opens_a_trace(run: Capture) -> None:
    with rs.session(sample=1):
        pass
    session = only(run)
    assert (session.parent_id, session.task_key, session.outcome) == (None, None, None)


def test_what_happens_in_a_session_belongs_to_it(run: Capture) -> None:
    with rs.task("a"), rs.session(sample=2), rs.phase("generate", model="p"), rs.span("http"):
        rs.event("token", n=1)
    _, session, phase, span = run.spans()
    (event,) = run.fold().events
    assert (phase.kind, phase.name, phase.category) == (Kind.PHASE, "generate", None)
    assert phase.attrs == {"model": "p"}
    assert phase.parent_id == session.span_id
    assert span.parent_id == phase.span_id
    assert event.parent_id == span.span_id
    for inner in (phase, span):
        assert (inner.session_id, inner.sample, inner.task_key) == (session.span_id, 2, "a")
    assert event.session_id == session.span_id
    assert {s.trace_id for s in run.spans()} == {event.trace_id}


def test_a_state_lies_on_a_lane(run: Capture) -> None:
    with rs.state("rollout", lane="trainer_0", free=1):
        pass
    state = only(run)
    assert (state.kind, state.name, state.lane) == (Kind.STATE, "rollout", "trainer_0")
    assert state.attrs == {"free": 1}


def test_states_of_one_lane_may_overlap(run: Capture, clock: FakeClock) -> None:
    first, second = rs.state("a", lane="l"), rs.state("b", lane="l")
    first.__enter__()
    clock.advance(1)
    second.__enter__()
    clock.advance(1)
    first.__exit__(None, None, None)
    clock.advance(1)
    second.__exit__(None, None, None)
    assert [(s.name, s.duration_s) for s in run.spans()] == [("a", 2.0), ("b", 2.0)]


def test_an_event_is_an_instant(run: Capture, clock: FakeClock) -> None:
    with rs.step(3):
        clock.advance(1)
        rs.event("weights.published", version=13)
    rs.event("alone")
    inside, alone = run.fold().events
    assert (inside.name, inside.attrs, inside.step) == ("weights.published", {"version": 13}, 3)
    assert inside.time_ns == START + SECOND
    assert (alone.parent_id, alone.step) == (None, None)
    assert alone.trace_id != inside.trace_id


def test_roots_do_not_share_a_trace(run: Capture) -> None:
    for _ in range(3):
        with rs.span("root"):
            pass
    assert len({span.trace_id for span in run.spans()}) == 3


@pytest.mark.parametrize("name", ["name", "self", "attrs", "lane", "key", "error", "category_"])
def test_attributes_may_have_any_name(run: Capture, name: str) -> None:
    attrs: dict[str, Any] = {name: 1}
    with rs.span("s", **attrs) as span:
        span.set(**{name: 2})
    with rs.phase("p", **attrs), rs.session(**attrs) as session:
        session.finish("accepted", **attrs)
    rs.event("e", **{name: 4})
    rs.annotate(session, **{name: 5})
    assert run.named("s").attrs == {name: 2}
    assert run.named("p").attrs == {name: 1}
    assert run.named("session").attrs == {name: 5}
    assert run.fold().events[0].attrs == {name: 4}


# Entering and leaving


def test_every_kind_works_with_async_with(run: Capture) -> None:
    async def main() -> None:
        async with (
            rs.step(1),
            rs.task("a"),
            rs.session() as session,
            rs.phase("p"),
            rs.state("s", lane="l"),
            rs.span("x"),
        ):
            session.finish("accepted")

    asyncio.run(main())
    assert [span.kind for span in run.spans()] == [
        Kind.STEP,
        Kind.TASK,
        Kind.SESSION,
        Kind.PHASE,
        Kind.STATE,
        Kind.SPAN,
    ]


def test_the_span_entered_last_is_current_until_it_is_left(run: Capture) -> None:
    assert not rs.current()
    with rs.span("outer") as outer:
        assert rs.current() is outer
        with rs.task("t") as inner:
            assert rs.current() is inner
        assert rs.current() is outer
    assert not rs.current()


def test_a_span_left_before_its_child_keeps_its_place_in_the_tree(run: Capture) -> None:
    outer, inner = rs.span("outer"), rs.span("inner")
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert rs.current() is inner
    with rs.span("late"):
        pass
    inner.__exit__(None, None, None)
    assert not rs.current()
    assert run.named("inner").parent_id == run.named("outer").span_id
    assert run.named("late").parent_id == run.named("inner").span_id


def test_spans_left_in_any_order_leave_the_outermost_current(run: Capture) -> None:
    import itertools

    with rs.span("root") as root:
        for order in itertools.permutations(range(4)):
            spans = [rs.phase(f"p{n}") for n in range(4)]
            for span in spans:
                span.__enter__()
            for number in order:
                spans[number].__exit__(None, None, None)
            assert rs.current() is root
    assert len(run.spans()) == 1 + 24 * 4


def test_a_span_left_twice_is_recorded_once(run: Capture, clock: FakeClock) -> None:
    span = rs.span("x")
    with span:
        clock.advance(1)
    clock.advance(1)
    span.__exit__(None, None, None)
    assert only(run).duration_s == 1.0
    assert not rs.current()


@pytest.mark.parametrize("kind", ["span", "session", "state"])
def test_a_span_left_but_never_entered_is_not_recorded(run: Capture, kind: str) -> None:
    span = {"span": rs.span("x"), "session": rs.session(), "state": rs.state("x", lane="l")}[kind]
    span.__exit__(None, None, None)
    assert run.spans() == []


@pytest.mark.parametrize("kind", ["span", "phase", "session", "task", "step", "state"])
def test_a_span_never_entered_has_no_reference_and_takes_attributes(
    run: Capture, kind: str
) -> None:
    span: rs.Span = {
        "span": rs.span("x"),
        "phase": rs.phase("x"),
        "session": rs.session(),
        "task": rs.task("x"),
        "step": rs.step(1),
        "state": rs.state("x", lane="l"),
    }[kind]
    assert span.ref is None
    span.set(early=1)
    rs.annotate(span, lost=1)
    with span:
        assert span.ref is not None
    assert only(run).attrs == {"early": 1}
    assert facts_of(run) == []


def test_a_verdict_given_before_entering_is_kept(run: Capture) -> None:
    session = rs.session().finish("accepted", reward=1)
    with session:
        pass
    assert (only(run).outcome, only(run).attrs) == (Outcome.ACCEPTED, {"reward": 1})


def test_a_span_used_again_is_recorded_each_time(run: Capture, clock: FakeClock) -> None:
    span = rs.span("x", given=1)
    with span:
        clock.advance(1)
    with span:
        span.set(second=2)
        clock.advance(2)
    first, second = run.spans()
    assert (first.duration_s, second.duration_s) == (1.0, 2.0)
    assert first.span_id != second.span_id
    assert (first.attrs, second.attrs) == ({"given": 1}, {"given": 1, "second": 2})


def test_a_session_used_again_forgets_its_verdict_and_where_it_was(run: Capture) -> None:
    session = rs.session(sample=5, version=1)
    with rs.task("a", group="g", step=1), pytest.raises(ValueError, match="no"), session:
        raise ValueError("no")
    with rs.task("b"), session:
        pass
    first, second = (span for span in run.spans() if span.kind is Kind.SESSION)
    assert (first.outcome, first.task_key, first.group) == (Outcome.FAILED, "a", "g")
    assert (first.step, first.sample) == (1, 5)
    assert (second.outcome, second.reason, second.status) == (None, None, Status.OK)
    assert (second.task_key, second.group, second.step) == ("b", None, None)
    assert (second.sample, second.version_start) == (5, 1)


def test_a_span_entered_twice_at_once_is_told_and_recorded_once(
    run: Capture, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    shared = rs.span("shared")
    with rs.span("outer") as outer:
        with shared, rs.span("between"), shared:
            clock.advance(1)
        assert rs.current() is outer
    assert [span.name for span in run.spans()] == ["outer", "shared", "between"]
    assert all(span.status is Status.OK for span in run.spans())
    assert len(caplog.messages) == 1
    assert "'shared'" in caplog.messages[0]


def test_a_span_entered_twice_makes_nothing_hang(run: Capture, clock: FakeClock) -> None:
    outer, shared = rs.span("outer"), rs.session()
    outer.__enter__()
    shared.__enter__()
    shared.__enter__()
    assert rs.stacks()
    outer.__exit__(None, None, None)
    shared.__exit__(None, None, None)
    shared.__exit__(None, None, None)
    assert not rs.current()
    assert len(run.spans()) == 2


def test_a_span_left_in_another_context_is_recorded_and_disturbs_nothing(run: Capture) -> None:
    span = rs.span("wanderer")
    context = contextvars.copy_context()
    context.run(span.__enter__)
    with rs.span("here") as here:
        span.__exit__(None, None, None)
        assert rs.current() is here
    assert {s.name for s in run.spans()} == {"wanderer", "here"}
    assert run.named("here").parent_id is None


def test_a_span_left_in_another_thread_is_recorded(run: Capture) -> None:
    span = rs.span("wanderer")
    span.__enter__()
    thread = threading.Thread(target=span.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    assert only(run).status is Status.OK


def in_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def in_copied_context(work: Callable[[], object]) -> None:
    contextvars.copy_context().run(work)


@pytest.mark.parametrize("elsewhere", [in_thread, in_copied_context])
@pytest.mark.parametrize(
    "make",
    [lambda: rs.span("left"), lambda: rs.state("left", lane="l"), lambda: rs.task("left")],
    ids=["span", "state", "task"],
)
def test_a_span_left_elsewhere_does_not_stay_current_where_it_was_entered(
    run: Capture, elsewhere: Callable[[Callable[[], object]], None], make: Callable[[], Any]
) -> None:
    with rs.session() as outer:
        for _ in range(2):
            left = make().__enter__()
            elsewhere(partial(left.__exit__, None, None, None))
        with rs.span("later") as later:
            pass
        rs.event("then")
        assert rs.current() is outer
    assert later.parent_id == outer.id
    assert run.named("later").session_id == run.named("session").span_id
    assert not rs.current()


def test_what_a_span_left_elsewhere_was_is_told_by_what_asks_for_it(run: Capture) -> None:
    left = rs.span("left").__enter__()
    in_thread(partial(left.__exit__, None, None, None))
    assert rs.inject() == {}
    assert not rs.current()


def test_a_task_goes_on_in_a_span_that_was_left_elsewhere(run: Capture) -> None:
    async def late(may_go_on: asyncio.Event) -> int:
        await may_go_on.wait()
        with rs.span("late") as span:
            return span.parent_id

    async def main() -> None:
        may_go_on = asyncio.Event()
        left = rs.span("left").__enter__()
        task = asyncio.create_task(late(may_go_on))
        in_thread(partial(left.__exit__, None, None, None))
        may_go_on.set()
        assert await task == left.id
        assert not rs.current()

    asyncio.run(main())


def test_tasks_started_inside_a_span_belong_to_it(run: Capture) -> None:
    async def work(name: str) -> None:
        with rs.phase(name):
            await asyncio.sleep(0)
            with rs.span(f"{name}-inner"):
                await asyncio.sleep(0)

    async def main() -> None:
        with rs.session():
            await asyncio.gather(*(work(f"w{n}") for n in range(20)))

    asyncio.run(main())
    session = run.named("session")
    for number in range(20):
        assert run.named(f"w{number}").parent_id == session.span_id
        assert run.named(f"w{number}-inner").parent_id == run.named(f"w{number}").span_id


def test_an_ended_span_does_not_keep_its_ancestors_alive(run: Capture) -> None:
    with rs.span("a") as a, rs.span("b") as b:
        pass
    assert not a.parent
    assert not b.parent
    assert (a._token, b._token) == (None, None)


# Copies


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_span_is_the_span(
    run: Capture, copied: Callable[[list[Any]], list[Any]]
) -> None:
    with rs.session() as session:
        holding = [session, rs.current()]
        assert copied(holding)[0] is session
    assert copied([rs.current()])[0] is rs.current()
    assert len(run.spans()) == 1


def sent(value: Any) -> Any:
    """Pickle something, and read it again."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301  (our own)


def test_a_pickled_span_stands_for_the_same_one_where_it_is_read(run: Capture) -> None:
    with rs.session(sample=2, lock=threading.Lock()) as session, rs.phase("p") as phase:
        there, part = sent((session, phase))
        assert (there.ref, part.ref) == (session.ref, phase.ref)
        with there:  # is not entered again
            assert rs.current() is phase
        there.finish("rejected", reason="short", reward=0.5)
        part.set(tokens=7)
        again = sent(there)
    assert again.ref == session.ref
    assert [fact.facts for fact in facts_of(run)] == [
        {"reward": 0.5, "outcome": "rejected", "reason": "short"},
        {"tokens": 7},
    ]


def test_a_pickled_span_that_is_not_recorded_is_none(run: Capture) -> None:
    assert sent(rs.span("not entered")) is NOOP
    assert sent(rs.current()) is NOOP
    with rs.span("s") as span:
        pass
    rs.shutdown()
    there = sent(span)
    assert there.set(a=1) is there
    assert rs.inject() == {}


# Errors


@pytest.mark.parametrize(
    ("error", "status", "reason", "outcome"),
    [
        (ValueError("bad"), Status.ERROR, "ValueError: bad", Outcome.FAILED),
        (TimeoutError(), Status.ERROR, "TimeoutError", Outcome.TIMEOUT),
        (asyncio.CancelledError(), Status.CANCELLED, "CancelledError", Outcome.CANCELLED),
        (KeyboardInterrupt(), Status.CANCELLED, "KeyboardInterrupt", Outcome.CANCELLED),
        (SystemExit(1), Status.ERROR, "SystemExit: 1", Outcome.FAILED),
        (SystemExit(0), Status.OK, None, None),
        (GeneratorExit(), Status.OK, None, None),
    ],
    ids=repr,
)
def test_an_error_passes_through_and_is_recorded_on_every_kind(
    run: Capture,
    error: BaseException,
    status: Status,
    reason: str | None,
    outcome: Outcome | None,
) -> None:
    kinds: list[rs.Span] = [
        rs.step(1),
        rs.task("t"),
        rs.session(),
        rs.phase("p"),
        rs.span("s"),
        rs.state("l", lane="l"),
    ]
    for span in kinds:
        with pytest.raises(type(error)) as raised, span:
            raise error
        assert raised.value is error
    assert len(run.spans()) == 6
    for recorded in run.spans():
        assert (recorded.status, recorded.reason) == (status, reason)
        assert recorded.outcome == (outcome if recorded.kind is Kind.SESSION else None)
    assert not rs.current()


@pytest.mark.parametrize(
    "make", [lambda: rs.span("deep"), lambda: rs.state("deep", lane="l"), rs.session, rs.step]
)
@pytest.mark.parametrize("frames", range(4))
def test_a_program_that_recurses_too_deep_leaves_no_span_open_or_current(
    run: Capture, make: Callable[..., rs.Span], frames: int
) -> None:
    entered = 0

    def deeper(between: int) -> None:
        nonlocal entered
        if between:
            deeper(between - 1)
            return
        with make(1) if make is rs.step else make():
            entered += 1
            deeper(frames)

    with rs.span("outer") as outer:
        with pytest.raises(RecursionError):
            deeper(0)
        assert rs.current() is outer
    assert len(run.spans()) == entered + 1 > 10
    assert {span.status for span in run.spans()} == {Status.OK, Status.ERROR}
    assert not rs.stacks()


def test_a_verdict_given_before_an_error_stays(run: Capture) -> None:
    session = rs.session().finish("accepted", reason="good")
    with pytest.raises(ValueError, match="late"), session:
        raise ValueError("late")
    recorded = only(run)
    assert (recorded.status, recorded.outcome) == (Status.ERROR, Outcome.ACCEPTED)
    assert recorded.reason == "good"


def test_an_error_that_is_caught_inside_leaves_the_span_as_it_is(run: Capture) -> None:
    with rs.session():
        try:
            raise ValueError
        except ValueError:
            pass
    assert (only(run).status, only(run).outcome) == (Status.OK, None)


# Verdicts and late facts


def test_the_last_verdict_counts(run: Capture) -> None:
    with rs.session() as session:
        assert session.finish("rejected", reason="stale", reward=0) is session
        session.finish("accepted", reward=1)
    assert only(run).outcome is Outcome.ACCEPTED
    assert only(run).attrs == {"reward": 1}


@pytest.mark.parametrize("outcome", list(Outcome))
def test_each_outcome_can_be_given_as_text_or_by_name(run: Capture, outcome: Outcome) -> None:
    with rs.session() as first:
        first.finish(str(outcome))
    with rs.session() as second:
        second.finish(outcome)
    assert [span.outcome for span in run.spans()] == [outcome, outcome]


def test_a_verdict_after_the_end_is_a_late_fact(run: Capture, clock: FakeClock) -> None:
    with rs.session() as session:
        session.finish("rejected")
    clock.advance(3)
    session.finish("accepted", reason="second look", version=9, reward=1.0)
    (fact,) = facts_of(run)
    assert fact.time_ns == START + 3 * SECOND
    assert fact.facts == {
        "outcome": "accepted",
        "reason": "second look",
        "version_end": 9,
        "reward": 1.0,
    }
    recorded = only(run)
    assert (recorded.outcome, recorded.reason) == (Outcome.ACCEPTED, "second look")
    assert (recorded.version_end, recorded.attrs) == (9, {"reward": 1.0})


def test_a_late_verdict_may_have_facts_named_like_fields(run: Capture) -> None:
    with rs.session() as session:
        pass
    session.finish("accepted", version=1, version_end=2)
    assert only(run).outcome is Outcome.ACCEPTED


@pytest.mark.parametrize("kind", ["span", "phase", "session", "task", "step", "state"])
def test_what_is_set_after_the_end_is_a_late_fact(run: Capture, kind: str) -> None:
    span: rs.Span = {
        "span": rs.span("x"),
        "phase": rs.phase("x"),
        "session": rs.session(),
        "task": rs.task("x"),
        "step": rs.step(1),
        "state": rs.state("x", lane="l"),
    }[kind]
    with span:
        span.set(early=1, both=1)
    span.set(late=2, both=2)
    (fact,) = facts_of(run)
    assert fact.facts == {"late": 2, "both": 2}
    assert only(run).attrs == {"early": 1, "late": 2, "both": 2}


def test_a_span_can_be_annotated_by_itself_its_reference_and_its_text(run: Capture) -> None:
    with rs.span("x") as span:
        rs.annotate(span, a=1)
    rs.annotate(span.ref, b=2)
    rs.annotate(str(span.ref), c=3)
    assert only(run).attrs == {"a": 1, "b": 2, "c": 3}


def test_annotating_nothing_is_silent_and_annotating_rubbish_is_told(
    run: Capture, caplog: pytest.LogCaptureFixture
) -> None:
    rs.annotate(None, a=1)
    rs.annotate(rs.current(), a=1)
    assert caplog.messages == []
    rubbish: list[Any] = [
        "not a reference",
        7,
        Proxy(),
        rs.SpanRef(b"short", 1),
        rs.SpanRef(b"t" * 16, 0),
        rs.SpanRef(b"t" * 16, 2**64),
        rs.SpanRef("t" * 32, "1" * 16),  # type: ignore[arg-type]  # as someone may well do
    ]
    for target in rubbish:
        rs.annotate(target, a=1)
    assert len([m for m in caplog.messages if "cannot annotate" in m]) == 1
    assert facts_of(run) == []


def test_an_unknown_category_is_told_once_and_recorded_as_misc(
    run: Capture, caplog: pytest.LogCaptureFixture
) -> None:
    for category in ("gpu", "gpu", "disk", ["compute"], None, 7, Proxy(), Proxy()):
        with rs.span("x", category=category):  # type: ignore[arg-type]
            pass
    assert {span.category for span in run.spans()} == {Category.MISC}
    assert len(run.spans()) == 8
    told = [message for message in caplog.messages if "does not know the category" in message]
    assert len(told) == 6
    assert "category 'gpu'" in caplog.messages[0]
    assert "compute, comm, io" in caplog.messages[0]


def test_an_unknown_outcome_is_told_once_and_recorded_as_failed(
    run: Capture, caplog: pytest.LogCaptureFixture
) -> None:
    for outcome in ("great", "great", "ACCEPTED", None, Proxy(), Proxy()):
        with rs.session() as session:
            session.finish(outcome)  # type: ignore[arg-type]
    recorded = run.spans()
    assert [span.outcome for span in recorded] == [Outcome.FAILED] * 6
    assert recorded[0].reason == "unknown outcome 'great'"
    told = [message for message in caplog.messages if "does not know the outcome" in message]
    assert len(told) == 4
    assert "accepted, rejected" in caplog.messages[0]


def test_a_reason_given_with_an_unknown_outcome_is_kept(run: Capture) -> None:
    with rs.session() as session:
        session.finish("great", reason="because")
    assert (only(run).outcome, only(run).reason) == (Outcome.FAILED, "because")


@pytest.mark.parametrize("make", [Proxy, lambda: ["a"], lambda: None, lambda: "\ud800"])
def test_names_that_are_no_text_are_recorded_somehow(run: Capture, make: Any) -> None:
    with rs.span(make()), rs.task(make(), group=make()), rs.session(group=make()) as session:
        with rs.phase(make()), rs.state(make(), lane=make()):
            rs.event(make())
        session.finish("failed", reason=make())
        rs.inject()
    assert len(run.spans()) == 5
    assert all(isinstance(span.name, str) for span in run.spans())


# Overlapping phases


def union_s(intervals: list[tuple[int, int]]) -> float:
    """Add up the time that is covered by at least one interval."""
    total, reached = 0, 0
    for start, end in sorted(intervals):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total / 1e9


def test_overlapping_phases_of_one_session_are_all_kept(run: Capture, clock: FakeClock) -> None:
    plan = [(0, 4), (1, 3), (3, 6), (8, 9)]  # when each of four phases starts and ends
    with rs.session():
        phases = [rs.phase("generate", number=n) for n in range(4)]
        for at in range(10):
            for phase, (start, end) in zip(phases, plan, strict=True):
                if at == end:
                    phase.__exit__(None, None, None)
                if at == start:
                    phase.__enter__()
            clock.advance(1)
    session = run.named("session")
    recorded = [span for span in run.spans() if span.name == "generate"]
    intervals = [(span.start_ns, span.end_ns or 0) for span in recorded]
    assert intervals == [(START + a * SECOND, START + b * SECOND) for a, b in plan]
    assert [span.attrs["number"] for span in recorded] == [0, 1, 2, 3]
    assert {span.session_id for span in recorded} == {session.span_id}
    assert union_s(intervals) == 7.0
    assert sum(span.duration_s or 0 for span in recorded) == 10.0
    assert session.duration_s == 10.0


def test_phases_that_run_as_tasks_at_once_are_all_kept(run: Capture, clock: FakeClock) -> None:
    async def generate(number: int, begin: asyncio.Event, end: asyncio.Event) -> None:
        await begin.wait()
        with rs.phase("generate", number=number):
            await end.wait()

    async def main() -> None:
        events = [(asyncio.Event(), asyncio.Event()) for _ in range(3)]
        with rs.session():
            tasks = [asyncio.create_task(generate(n, *pair)) for n, pair in enumerate(events)]
            for event in (events[0][0], events[1][0], events[0][1], events[2][0]):
                event.set()
                await asyncio.sleep(0)
                clock.advance(1)
            events[1][1].set()
            events[2][1].set()
            await asyncio.gather(*tasks)

    asyncio.run(main())
    recorded = [span for span in run.spans() if span.name == "generate"]
    session = run.named("session")
    assert [span.duration_s for span in recorded] == [2.0, 3.0, 1.0]
    assert {span.parent_id for span in recorded} == {session.span_id}
    assert union_s([(span.start_ns, span.end_ns or 0) for span in recorded]) == 4.0


# Clocks


def test_a_wall_clock_that_jumps_by_an_hour_disturbs_neither_durations_nor_order(
    run: Capture, clock: FakeClock
) -> None:
    with rs.span("outer"):
        for number, jump_s in enumerate((0, 3600, -7200, 3600)):
            with rs.span(f"inner{number}"):
                clock.advance(6)
                clock.jump(jump_s)
                clock.advance(6)
            rs.flush()
    outer, *inner = run.spans()
    assert outer.duration_s == 48.0
    assert [span.duration_s for span in inner] == [12.0] * 4
    assert [span.name for span in inner] == [f"inner{n}" for n in range(4)]
    starts = [span.start_ns - START for span in inner]
    assert starts == [0, 12 * SECOND, 24 * SECOND, 36 * SECOND]


def test_a_child_that_outlives_its_parent_keeps_both_times(run: Capture, clock: FakeClock) -> None:
    async def child() -> None:
        with rs.span("child"):
            await asyncio.sleep(0)
            clock.advance(5)

    async def main() -> None:
        with rs.span("parent"):
            task = asyncio.create_task(child())
            await asyncio.sleep(0)
            clock.advance(1)
        await task

    asyncio.run(main())
    parent, inner = run.named("parent"), run.named("child")
    assert (parent.duration_s, inner.duration_s) == (1.0, 6.0)
    assert inner.parent_id == parent.span_id
    assert (inner.end_ns or 0) > (parent.end_ns or 0)
