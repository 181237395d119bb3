"""Sessions as Rollscope records them: tasks, sessions, phases and verdicts in the run's own log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument.guard import tell_once
from rollscope.instrument.spans import LEFT
from rollscope.integrations.areal.state import enter_under, recorder
from rollscope.model.kinds import STATUS_CODES, Outcome, Status

if TYPE_CHECKING:
    from rollscope.instrument.spans import Span
    from rollscope.integrations.areal.records import Interval, SessionRecord, Task, Verdict

__all__ = [
    "close_phase",
    "close_task",
    "end_session",
    "judge",
    "note_counter",
    "open_phase",
    "open_session",
    "open_task",
    "verdict_event",
]

_OUTCOMES: Final = {
    **dict.fromkeys(("accepted", "effective", "archived"), Outcome.ACCEPTED),
    **dict.fromkeys(("rejected", "filtered", "empty"), Outcome.REJECTED),
    **dict.fromkeys(("failed", "failure", "error", "exception"), Outcome.FAILED),
    **dict.fromkeys(("capacity_exhausted", "skipped"), Outcome.FAILED),
    **dict.fromkeys(("timeout", "timed_out"), Outcome.TIMEOUT),
    **dict.fromkeys(("dropped", "expired", "stale"), Outcome.DROPPED),
    **dict.fromkeys(("cancelled", "aborted"), Outcome.CANCELLED),
}
_NO_OUTCOME: Final = frozenset(("completed", "success", "ok", "finished", "done"))
_REASONS: Final = {
    "rejected": "filtered",
    "should_accept_false": "filtered",
    "workflow_returned_none": "returned_none",
    "workflow_exception": "exception",
    "input_queue_full": "overload",
}
SIBLING_FAILED: Final = "sibling_failed"


def open_task(task_id: object) -> Span | None:
    """Open a task."""
    active = recorder()
    if active is None:
        return None
    span = active.types.new_task(str(task_id), None, None, {})
    enter_under(active, span, None)
    return span


def close_task(task: Task) -> None:
    """End a task."""
    _close(task.span, None)


def open_session(record: SessionRecord, sample: int) -> None:
    """Open a session of a task."""
    active = recorder()
    if active is not None:
        attrs = {"session_id": record.session_id}
        record.span = active.types.new_session(sample, None, None, None, attrs)
        enter_under(active, record.span, record.task.span)


def end_session(record: SessionRecord, error: BaseException | None) -> None:
    """End a session: now, or when its last phase ended if nobody said more exactly."""
    active, span = recorder(), record.span
    if active is None or span is None:
        return
    span.attrs.update(record.counters)
    if error is not None or record.had_call:
        _close(span, error)
    elif active.buffers.open.pop(span.id, None) is not None:
        row = (span.what, span.name, span.scope, span.id, span.parent_id, span.start_ns)
        end = max(record.ended_ns or 0, span.start_ns)
        ok = STATUS_CODES[Status.OK]
        active.buffers.rows.extend((*row, end, ok, span.attrs, span.fields or None))
        span.parent = LEFT


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
    status = str(verdict.status).lower()
    outcome = _OUTCOMES.get(status)
    if outcome is None and status not in _NO_OUTCOME:
        tell_once(f"areal-status:{status:.100}", "Rollscope does not know the status %r", status)
    reason = None if verdict.reason is None else str(verdict.reason)
    reason = _REASONS.get(reason, reason) if reason is not None else None
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
