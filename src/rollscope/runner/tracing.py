"""What a runner records of itself: sessions with their waits, and what held work back.

Nothing is asked of the user; where nothing is recorded, nothing is done. A session is recorded once
it is handed over, when all of its waits are known, or most of a second after its end if nobody
has fetched it by then; what is learned later is added to it.
"""

from __future__ import annotations

from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument import default
from rollscope.model.kinds import STATUS_CODES
from rollscope.model.kinds import Outcome as Verdict
from rollscope.model.kinds import Status as SpanStatus
from rollscope.runner.lane import Lane
from rollscope.runner.outcome import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollscope.instrument.binding import SpanTypes
    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Span
    from rollscope.instrument.tracer import Tracer
    from rollscope.runner.gates import Gate
    from rollscope.runner.outcome import Failure, Outcome, Reason
    from rollscope.runner.task import Task
    from rollscope.runner.timers import Timer, Timers

    SessionFacts = tuple[Any, ...]
    """What is recorded of a session, in the order of the parameters of `_record`."""

__all__ = ["Trace", "record_sessions"]

_VERDICTS: Final = {
    Status.OK: Verdict.ACCEPTED.value,
    Status.REJECTED: Verdict.REJECTED.value,
    Status.FAILED: Verdict.FAILED.value,
    Status.TIMEOUT: Verdict.TIMEOUT.value,
    Status.CANCELLED: Verdict.CANCELLED.value,
    Status.STALE: Verdict.DROPPED.value,
    Status.DROPPED: Verdict.DROPPED.value,
}
_SPAN_STATUS: Final = {
    Status.FAILED: STATUS_CODES[SpanStatus.ERROR],
    Status.TIMEOUT: STATUS_CODES[SpanStatus.CANCELLED],
    Status.CANCELLED: STATUS_CODES[SpanStatus.CANCELLED],
}
_OK: Final = STATUS_CODES[SpanStatus.OK]
_UNFETCHED_S: Final = 0.75
_ERROR_CHARS: Final = 300


class Trace:
    """Records for one runner, with the tracer given or the default one as it is at the time."""

    def __init__(self, name: str, tracer: Tracer | None, gates: Sequence[Gate] = ()) -> None:
        self._name = name
        self._tracer = tracer
        self._recorder: Recorder | None = None
        self._types: SpanTypes | None = None
        self._lane = Lane(name, gates)
        self.is_on = False
        """Whether tasks are recorded."""
        self._ending: dict[int, Outcome] = {}
        """Sessions that have ended and are not recorded yet, by span; the recorder's own."""
        self._hosted: list[SessionFacts] = []
        """What the writer is to record; the recorder's own."""
        self._timers: Timers | None = None
        self._timer: Timer | None = None

    def use_timers(self, timers: Timers) -> None:
        """Use these for what is recorded a little later."""
        self._timers = timers
        self._lane.timers = timers

    def refresh(self) -> None:
        """See whether something is recorded now, and with what."""
        recorder = (self._tracer or default._tracer)._recorder
        if recorder is not self._recorder:
            self._recorder = recorder
            self._types = None if recorder is None else recorder.types
            self._ending = {} if recorder is None else recorder.buffers.ending
            self._hosted = [] if recorder is None else recorder.buffers.hosted
            if recorder is not None:
                recorder.buffers.host = partial(record_sessions, recorder.types)
            self.is_on = recorder is not None
            self._lane.record_with(self._types, self._tracer or default._tracer)

    def started(self, task: Task) -> None:
        """Begin the session of a task, in the context that its code runs in."""
        types = self._types
        if types is None:
            return
        options = task.options
        key = options.key
        if key is None:
            key = f"{getattr(task.fn, '__name__', 'task')}/{task.id}"
        attrs = {"replica": self._name}
        if options.is_special:
            self._describe(task, attrs)
        group = options.group
        task.span = types.begin_hosted(
            key,
            options.sample,
            None if group is None else str(group),
            task.version_start,
            attrs,
            task.span,
        )

    def ended_unstarted(self, task: Task) -> None:
        """Begin a session for a task that ends without having started: one without any length."""
        if task.span is None:
            Context().run(self.started, task)
        if task.span is not None:
            task.span.start_ns = task.finished_ns

    def _describe(self, task: Task, attrs: dict[str, Any]) -> None:
        """Say what is not the same for nearly every task."""
        options = task.options
        if options.tier != "train":
            attrs["tier"] = options.tier
        if options.timeout_s is not None:
            attrs["deadline_s"] = options.timeout_s
        attrs.update(options.tags)

    def attempt_ended(self, task: Task) -> None:
        """Record an attempt that is followed by another."""
        span: Span | None = task.span
        if span is None or self._types is None:
            return
        attrs, fields = span.attrs, span.fields
        attrs["attempt"] = task.attempt - 1
        if task.failure is not None:
            attrs["error"] = f"{task.failure.type_name}: {task.failure.text}"[:_ERROR_CHARS]
        fields["outcome"], fields["reason"] = _VERDICTS[task.status], task.reason.value
        end_ns = task.finished_ns or span.start_ns
        if self._recorder is not None:
            self._recorder.buffers.open.pop(span.id, None)
        self._types.record_hosted(span, end_ns, _SPAN_STATUS.get(task.status, _OK))

    def ended(self, outcomes: Sequence[Outcome]) -> None:
        """Note outcomes that were made, to be recorded soon even if nobody fetches them."""
        if self._types is None or self._recorder is None:
            return
        if self._timer is None and outcomes and self._timers is not None:
            self._timer = self._timers.after(_UNFETCHED_S, self._record_unfetched)
        ending, no_longer_open = self._ending, self._recorder.buffers.open.pop
        for outcome in outcomes:
            span: Span | None = outcome.span
            if span is not None:
                ending[span.id] = outcome
                no_longer_open(span.id, None)

    def _record_unfetched(self) -> None:
        self._timer = None
        for span_id in list(self._ending):
            outcome = self._ending.pop(span_id, None)
            if outcome is not None:  # not handed over meanwhile, by another thread
                self._hosted.append(_facts_of(outcome))

    def delivered(self, outcomes: Sequence[Outcome], now_ns: int) -> None:
        """Record sessions whose outcomes are handed over."""
        types = self._types
        if types is None:
            return
        take, leave_to_writer = self._ending.pop, self._hosted.append
        for outcome in outcomes:
            span: Span | None = outcome.span
            if span is None:
                continue
            if take(span.id, None) is not None:
                leave_to_writer(_facts_of(outcome))
            elif span.ref is not None:
                post_s = (now_ns - outcome.finished_ns) * 1e-9
                total_s = (now_ns - outcome.submitted_ns) * 1e-9
                types.add_facts(span.ref, {"post_wait_s": post_s, "total_s": total_s})

    def consumed(self, outcomes: Sequence[Outcome], step: int | None) -> None:
        """Note that the trainer has used outcomes."""
        tracer = self._tracer or default._tracer
        for outcome in outcomes:
            if outcome.span is not None:
                tracer.annotate(outcome.span, consumed_step=step)

    def innermost(self, task: Task) -> int:
        """Give the id of the span that a task is in; it changes as phases come and go."""
        recorder, context = self._recorder, task.context
        if recorder is None or context is None:
            return 0
        span = context.get(recorder.current)
        return 0 if span is None else span.id

    def phase_of(self, task: Task) -> str | None:
        """Name the innermost span that a task is in, below its session."""
        recorder, context = self._recorder, task.context
        if recorder is None or context is None:
            return None
        span = context.get(recorder.current)
        return None if span is None or span is task.span else span.name

    def blocked(self, task_id: int | None, frames: Sequence[str], blocked_s: float) -> None:
        """Record that user code has blocked the loop."""
        if self._recorder is not None:
            (self._tracer or default._tracer).event(
                "loop_blocked",
                runner=self._name,
                task=task_id,
                culprit=frames[-1] if frames else "",
                frames=list(frames),
                blocked_s=blocked_s,
            )

    def slots_changed(self, running: int) -> None:
        """Record how many tasks run."""
        self._lane.running = running
        if self._lane.is_quiet:
            self._lane.look_soon()

    def held_by(self, holder: str | None, detail: str = "") -> None:
        """Record what holds the next task back, as an interval; for a pause, whose it is."""
        self.refresh()
        self._lane.held_by(holder, detail)

    def close(self) -> None:
        """End what is open."""
        self._record_unfetched()
        self._lane.close()


def _facts_of(outcome: Outcome) -> SessionFacts:
    """Give what the writer needs; the outcome itself may hold a large value."""
    return (
        outcome.span,
        outcome.status,
        outcome.reason,
        outcome.submitted_ns,
        outcome.admitted_ns,
        outcome.started_ns,
        outcome.finished_ns,
        outcome.delivered_ns,
        outcome.execution_ns,
        outcome.version_end,
        outcome.attempts,
        outcome.error,
        outcome.detail,
    )


def record_sessions(types: SpanTypes, sessions: Sequence[SessionFacts]) -> None:
    """Record sessions that have ended, in the writer's thread."""
    for session in sessions:
        _record(types, *session)


def _record(
    types: SpanTypes,
    span: Span,
    status: Status,
    reason: Reason,
    submitted_ns: int,
    admitted_ns: int | None,
    started_ns: int | None,
    finished_ns: int,
    delivered_ns: int | None,
    execution_ns: int,
    version_end: int | None,
    attempts: int,
    failure: Failure | None,
    detail: str,
) -> None:
    attrs, fields = span.attrs, span.fields
    if admitted_ns is not None:
        attrs["queue_wait_s"] = (admitted_ns - submitted_ns) * 1e-9
        if started_ns is not None:
            attrs["runner_wait_s"] = (started_ns - admitted_ns) * 1e-9
            attrs["execution_s"] = execution_ns * 1e-9
    if delivered_ns is not None:
        attrs["post_wait_s"] = (delivered_ns - finished_ns) * 1e-9
        attrs["total_s"] = (delivered_ns - submitted_ns) * 1e-9
    if failure is not None:
        attrs["error"] = f"{failure.type_name}: {failure.text}"[:_ERROR_CHARS]
    if detail:
        attrs["detail"] = detail
    if attempts > 1:
        attrs["attempt"] = attempts - 1
        attrs["backoff_s"] = (finished_ns - (started_ns or finished_ns) - execution_ns) * 1e-9
    fields.setdefault("outcome", _VERDICTS[status])
    fields.setdefault("reason", reason.value)
    if version_end is not None:
        fields["version_end"] = version_end
    types.record_hosted(span, finished_ns, _SPAN_STATUS.get(status, _OK))
