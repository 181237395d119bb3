"""Sessions as Rollscope records them: tasks, sessions, phases and verdicts in the run's own log."""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from rollscope.importing.statuses import read_reason, read_status
from rollscope.instrument.guard import tell_once
from rollscope.instrument.pastends import end_at
from rollscope.instrument.sanitise import clean_text
from rollscope.instrument.spans import Session, lineage
from rollscope.integrations.areal.records import Task
from rollscope.integrations.areal.state import enter_under, recorder
from rollscope.model.kinds import Outcome

if TYPE_CHECKING:
    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Span
    from rollscope.integrations.areal.records import Interval, SessionRecord, Verdict

__all__ = [
    "close_phase",
    "close_task",
    "end_session",
    "judge",
    "make_task",
    "note_counter",
    "open_phase",
    "open_session",
    "verdict_event",
]

SIBLING_FAILED: Final = "sibling_failed"
_own: set[int] = set()
"""Ids of the sessions that were opened here and have not ended."""


def make_task(task_id: object) -> Task:
    """Make a task; it is opened with its first session."""
    active = recorder()
    span = None if active is None else active.types.new_task(str(task_id), None, None, {})
    return Task(span, perf_counter_ns())


def _enter_task(active: Recorder, task: Task) -> None:
    if task.span is not None and not task.span.id:
        enter_under(active, task.span, None)
        task.span.start_ns = task.registered_ns


def close_task(task: Task) -> None:
    """End a task."""
    active, span = recorder(), task.span
    if active is None or span is None:
        return
    if not span.id:
        if task.samples:
            return  # all of its sessions are told of as another's
        _enter_task(active, task)
    _close(span, None)


def open_session(record: SessionRecord, sample: int) -> None:
    """Open a session of a task; inside of somebody else's session it is part of that one."""
    active = recorder()
    if active is None:
        return
    host = _host(active)
    if host is not None:
        record.span, record.is_guest = host, True
        return
    _enter_task(active, record.task)
    attrs = {"session_id": record.session_id}
    record.span = active.types.new_session(sample, None, None, None, attrs)
    enter_under(active, record.span, record.task.span)
    _own.add(record.span.id)


def _host(active: Recorder) -> Session | None:
    """Find the session around, if it is not one of ours."""
    around = active.current.get()
    session_id = around.scope.session_id if around.id else None
    if session_id is None or session_id in _own:
        return None
    found = next((span for span in lineage(around) if span.id == session_id), None)
    return found if isinstance(found, Session) else None


def end_session(record: SessionRecord, error: BaseException | None) -> None:
    """End a session: now, or when its last phase ended if nobody said more exactly."""
    active, span = recorder(), record.span
    if active is None or span is None:
        return
    if record.is_guest:
        _tell(span, dict(record.counters))
        return
    _own.discard(span.id)
    span.attrs.update(record.counters)
    if error is not None or record.had_call:
        _close(span, error)
    else:
        end_at(active, span, record.ended_ns or 0)


def open_phase(record: SessionRecord, name: str, attrs: dict[str, Any]) -> Span | None:
    """Open a phase of a session, and leave what is current so."""
    active = recorder()
    if active is None or record.span is None:
        return None
    span = active.new_phase(name, attrs)
    around = active.current.get()
    is_inside = bool(around) and around.scope.session_id == record.span.id
    enter_under(active, span, around if is_inside else record.span)
    return span


def close_phase(part: Interval, attrs: dict[str, Any], error: BaseException | None) -> None:
    """End a phase."""
    if part.span is not None:
        part.span.attrs.update(attrs)
        _close(part.span, error)


def note_counter(record: SessionRecord, name: str) -> None:
    """Tell a counter of a session that has ended already."""
    active = recorder()
    if record.ended_ns is not None and active is not None and record.span is not None:
        _tell(record.span, {name: record.counters[name]})


def verdict_event(record: SessionRecord, verdict: Verdict) -> None:
    """Mark the moment of a verdict, which is not the session's end."""
    active = recorder()
    if active is None or record.span is None:
        return
    before = active.current.get()
    active.current.set(record.span)
    facts = {"status": verdict.status, "reason": verdict.reason}
    active.types.add_event("verdict", {key: value for key, value in facts.items() if value})
    active.current.set(before)


def judge(record: SessionRecord, verdict: Verdict) -> None:
    """Give a session that has ended its verdict; its own failure it keeps, and only its own."""
    if record.span is None:
        return
    source = {"source_status": verdict.status, "source_reason": verdict.reason}
    facts = {key: value for key, value in source.items() if value is not None} | verdict.extra
    told = read_status(verdict.status, has_end=True)
    outcome, reason = told.outcome, read_reason(verdict.reason)
    if not told.is_known or verdict.status is None:
        shown = clean_text(verdict.status, 100)
        tell_once(f"areal-status:{shown}", "Rollscope does not know the status %r", shown)
    is_others = verdict.of_task and outcome is Outcome.FAILED and record.task.has_failed_session
    if is_others and record.own_error:
        outcome = None  # it has told its own, with its reason
    elif is_others and record.had_call:
        outcome, reason = Outcome.DROPPED, SIBLING_FAILED
    _tell(record.span, facts)
    if outcome is not None and recorder() is not None:
        record.span.finish(outcome, reason=reason)


def _close(span: Span | None, error: BaseException | None) -> None:
    active = recorder()
    if span is not None and active is not None:
        before = active.current.get()
        span.__exit__(None if error is None else type(error), error, None)
        active.current.set(before)


def _tell(span: Span, facts: dict[str, Any]) -> None:
    """Add facts, whatever their names are."""
    active, ref = recorder(), span.ref
    if active is None or ref is None or not facts:
        return
    if span.id in active.buffers.open:
        span.attrs.update(facts)
    else:
        active.types.add_facts(ref, facts)
