"""What is recorded of a session: known from its start on, and known at its end."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rollscope.instrument.sanitise import clean_text
from rollscope.model.kinds import STATUS_CODES
from rollscope.model.kinds import Outcome as Verdict
from rollscope.model.kinds import Status as SpanStatus
from rollscope.runner.outcome import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.instrument.hosted import Facts, HostedSession
    from rollscope.runner.outcome import Failure, Outcome, Reason
    from rollscope.runner.task import TaskOptions

__all__ = ["VERDICTS", "EndColumns", "EndFacts", "StartFacts", "facts_of", "span_status_of"]

EndColumns = Any
"""`EndFacts` of many sessions: a list in the place of each field."""

_NAME_BYTES: Final = 256
VERDICTS: Final = {
    Status.OK: Verdict.ACCEPTED.value,
    Status.REJECTED: Verdict.REJECTED.value,
    Status.FAILED: Verdict.FAILED.value,
    Status.TIMEOUT: Verdict.TIMEOUT.value,
    Status.CANCELLED: Verdict.CANCELLED.value,
    Status.STALE: Verdict.DROPPED.value,
    Status.DROPPED: Verdict.DROPPED.value,
}
"""What the trace calls the status of a task."""
_SPAN_STATUS: Final = {
    Status.FAILED: STATUS_CODES[SpanStatus.ERROR],
    Status.TIMEOUT: STATUS_CODES[SpanStatus.CANCELLED],
    Status.CANCELLED: STATUS_CODES[SpanStatus.CANCELLED],
}
_OK: Final = STATUS_CODES[SpanStatus.OK]


def span_status_of(status: Status) -> int:
    """Give the code of the status that the span of a task has."""
    return _SPAN_STATUS.get(status, _OK)


class StartFacts:
    """Says of the sessions of one runner what is known from their start on."""

    __slots__ = ("replica", "thread_id")

    def __init__(self, runner_name: str) -> None:
        self.replica = clean_text(runner_name, _NAME_BYTES)
        self.thread_id = 0
        """Of the loop that tasks run on."""

    def __call__(self, span: HostedSession) -> Facts:
        """Describe a session, once somebody asks."""
        options: TaskOptions = span.settings
        label = span.label
        if type(label) is str:  # it was recorded by that name
            key = label
        else:
            key = options.key or f"{getattr(label, '__name__', 'task')}/{span.number}"
        attrs: dict[str, Any] = {"replica": self.replica}
        if options.is_special:
            _describe_special(options, attrs)
        group = None if options.group is None else str(options.group)
        return key, options.sample, group, attrs, self.thread_id


def _describe_special(options: TaskOptions, attrs: dict[str, Any]) -> None:
    """Say what is not the same for nearly every task."""
    if options.tier != "train":
        attrs["tier"] = options.tier
    if options.timeout_s is not None:
        attrs["deadline_s"] = options.timeout_s
    attrs.update(options.tags)


class EndFacts(NamedTuple):
    """What the writer needs; the outcome itself may hold a large value."""

    span: HostedSession
    status: Status
    reason: Reason
    submitted_ns: int
    admitted_ns: int | None
    started_ns: int | None
    finished_ns: int
    delivered_ns: int | None
    execution_ns: int
    version_end: int | None
    attempts: int
    error: Failure | None
    detail: str


facts_of: Final[Callable[[Outcome], tuple[Any, ...]]] = attrgetter(*EndFacts._fields)
"""Gives the entries of `EndFacts`, without a name to each, which would take twice as long."""
