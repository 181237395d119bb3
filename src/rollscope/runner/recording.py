"""The records of sessions that have ended, made in the writer's thread."""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument.buffers import HOSTED
from rollscope.model.kinds import STATUS_CODES
from rollscope.model.kinds import Outcome as Verdict
from rollscope.model.kinds import Status as SpanStatus
from rollscope.runner.outcome import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rollscope.instrument.binding import SpanTypes
    from rollscope.instrument.hosted import Ended, HostedSession
    from rollscope.runner.outcome import Failure, Outcome, Reason
    from rollscope.runner.task import Task, TaskOptions

    SessionFacts = tuple[Any, ...]
    """What is recorded of a session, in the order of the parameters of `_record`."""

__all__ = ["describe_special", "facts_of", "record_attempt", "record_sessions"]

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
_ERROR_CHARS: Final = 300
_AT_ONCE: Final = 200
"""Sessions recorded at a time: code that opens a phase in one of them meanwhile has to wait."""


def describe_special(options: TaskOptions, attrs: dict[str, Any]) -> None:
    """Say what is not the same for nearly every task."""
    if options.tier != "train":
        attrs["tier"] = options.tier
    if options.timeout_s is not None:
        attrs["deadline_s"] = options.timeout_s
    attrs.update(options.tags)


facts_of: Final[Callable[[Outcome], SessionFacts]] = attrgetter(
    "span",
    "status",
    "reason",
    "submitted_ns",
    "admitted_ns",
    "started_ns",
    "finished_ns",
    "delivered_ns",
    "execution_ns",
    "version_end",
    "attempts",
    "error",
    "detail",
)
"""Gives what the writer needs; the outcome itself may hold a large value."""


def record_attempt(types: SpanTypes, task: Task) -> None:
    """Record an attempt that is followed by another."""
    span: HostedSession = task.span
    attrs, fields = span.attrs, span.fields
    attrs["attempt"] = task.attempt - 1
    if task.failure is not None:
        attrs["error"] = f"{task.failure.type_name}: {task.failure.text}"[:_ERROR_CHARS]
    fields["outcome"], fields["reason"] = _VERDICTS[task.status], task.reason.value
    end_ns = task.finished_ns or span.start_ns
    types.hosted.record(span, end_ns, _SPAN_STATUS.get(task.status, _OK))


def record_sessions(types: SpanTypes, hosted: Sequence[Any]) -> None:
    """Record sessions that have ended, in the writer's thread."""
    sessions = list(zip(*[iter(hosted)] * HOSTED, strict=True))
    for at in range(0, len(sessions), _AT_ONCE):
        piece = sessions[at : at + _AT_ONCE]
        plain = [ended for session in piece if (ended := _plain(*session)) is not None]
        read = types.hosted.record_unread(plain)
        if len(plain) < len(piece) or read:
            taken = {ended[0] for ended in plain}.difference(read)
            for session in piece:
                if session[0] not in taken:
                    _record(types, *session)


def _plain(
    span: HostedSession,
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
) -> Ended | None:
    """Give the record of a session as most are: run once, fetched, and read by nobody."""
    describe, options, label = span.describe, span.settings, span.label
    if describe is None or options is None or failure is not None or detail or attempts != 1:
        return None
    if delivered_ns is None or started_ns is None or admitted_ns is None:
        return None
    attrs = {
        "replica": describe.__self__._name,  # type: ignore[attr-defined]  # a method of `Trace`
        "queue_wait_s": (admitted_ns - submitted_ns) * 1e-9,
        "runner_wait_s": (started_ns - admitted_ns) * 1e-9,
        "execution_s": execution_ns * 1e-9,
        "post_wait_s": (delivered_ns - finished_ns) * 1e-9,
        "total_s": (delivered_ns - submitted_ns) * 1e-9,
    }
    if options.is_special:
        describe_special(options, attrs)
    return (
        span,
        options.key or f"{getattr(label, '__name__', 'task')}/{span.number}",
        options.sample,
        None if options.group is None else str(options.group),
        finished_ns,
        _SPAN_STATUS.get(status, _OK),
        attrs,
        _fields_of(status, reason, span.version, version_end),
    )


@lru_cache(maxsize=256)
def _fields_of(
    status: Status, reason: Reason, version_start: int | None, version_end: int | None
) -> dict[str, Any]:
    """Give the fields of a session; the same for many, so they are made once."""
    given = {
        "version_start": version_start,
        "outcome": _VERDICTS[status],
        "reason": reason.value,
        "version_end": version_end,
    }
    return {key: value for key, value in given.items() if value is not None}


def _record(
    types: SpanTypes,
    span: HostedSession,
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
    types.hosted.record(span, finished_ns, _SPAN_STATUS.get(status, _OK))
