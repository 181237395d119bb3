"""What analysis computes with: plain rows, as a query gives them.

Times are whole nanoseconds on one clock, that of the run's first host: whoever reads a run has
already moved the times of hosts whose clocks are off. Ids are numbers. Nothing in here knows where
rows come from.
"""

from typing import Any

import msgspec

from rollscope.analysis.intervals import Interval
from rollscope.model.kinds import Kind, Outcome, Status

__all__ = [
    "EventRow",
    "PhaseTotal",
    "ProcessRow",
    "SessionRow",
    "SpanRow",
    "StepFacts",
    "open_interval",
]


class SpanRow(msgspec.Struct, kw_only=True):
    """Any span."""

    span_id: int
    parent_id: int | None = None
    session_id: int | None = None
    process: int = 0
    kind: Kind = Kind.SPAN
    name: str = ""
    detail: str | None = None
    """Which tool, environment, reward function or model."""
    start_ns: int
    end_ns: int | None = None
    """None while open; a lost span ends when its process was last heard of."""
    status: Status = Status.OK
    reason: str | None = None
    step: int | None = None
    lane: str | None = None
    tokens: int | None = None
    queue_ns: int | None = None
    """How much of it was waiting for the service, where recorded."""
    link: int | None = None
    """The session or span whose end it waited for, where recorded."""
    version: int | None = None


class SessionRow(msgspec.Struct, kw_only=True):
    """One session with everything known of it, late facts included."""

    span_id: int
    process: int = 0
    host: str = ""
    pool: str = ""
    """What its slot belongs to: the replica it is pinned to, else its process."""
    task_key: str | None = None
    family: str | None = None
    """What the task is one of: its `family` attribute, else what precedes the first `/`."""
    group: str | None = None
    sample: int | None = None
    attempt: int = 0
    """0 for the first."""
    step: int | None = None
    """The step that dispatched it."""
    consumed_step: int | None = None
    consumed_ns: int | None = None
    start_ns: int
    end_ns: int | None = None
    status: Status = Status.OK
    outcome: Outcome | None = None
    reason: str | None = None
    version_start: int | None = None
    version_end: int | None = None
    waited_ns: int | None = None
    """From its submission to its start, where recorded."""
    deadline_ns: int | None = None
    reward: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    turns: int | None = None
    attrs: dict[str, Any] = {}

    @property
    def is_over(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.end_ns is not None

    @property
    def is_measured(self) -> bool:
        """Whether its length is a measurement: it ended, and was not cut off by a death."""
        return self.end_ns is not None and self.status is not Status.LOST

    @property
    def charged_step(self) -> int | None:
        """The step it counts for: the consuming one if known, else the dispatching one."""
        return self.step if self.consumed_step is None else self.consumed_step


class EventRow(msgspec.Struct, kw_only=True):
    """An instant."""

    name: str
    time_ns: int
    process: int = 0
    session_id: int | None = None
    version: int | None = None


class ProcessRow(msgspec.Struct, kw_only=True):
    """Who recorded."""

    process: int
    host: str = ""
    pid: int = 0
    role: str = ""
    rank: int | None = None
    started_ns: int = 0
    last_seen_ns: int = 0
    status: str = "alive"
    """`alive`, `ended` (closed its log), `dead` (vanished), `silent` (cannot be told yet), or
    `imported` (another tool's file tells of it)."""
    heartbeat_ns: int = 1_000_000_000
    offset_ns: int = 0
    """How far its times were moved; 0 where its host's clock needs no correction."""
    offset_error_ns: int | None = 0
    """Half the width of the range the correction may lie in; None if only one end is known."""
    dropped: int = 0
    """Records it had to drop."""

    @property
    def title(self) -> str:
        """How people call it: role and rank, or host and pid."""
        return f"{self.role} {self.rank}" if self.rank is not None else f"{self.host}:{self.pid}"


class PhaseTotal(msgspec.Struct, kw_only=True):
    """All measured phases of one name and detail within one step."""

    name: str
    detail: str | None = None
    count: int = 0
    total_ns: int = 0
    p95_ns: int = 0
    """By nearest rank."""
    queue_ns: int = 0
    errors: int = 0


class StepFacts(msgspec.Struct, kw_only=True):
    """One step and everything that bears on how long it took."""

    span: SpanRow
    """The trainer's own span of kind `step`; open while the step is running."""
    now_ns: int
    """Where open spans are cut off."""
    trainer: list[SpanRow] = []
    """Spans and states below the step's span that belong to no session."""
    sessions: list[SessionRow] = []
    """The sessions that count for this step."""
    around: list[SessionRow] = []
    """Every session that was open at some time during the step, of whichever step, those of this
    step included."""
    states: list[SpanRow] = []
    """Spans of kind `state` that overlap the step: what pools and runners say of themselves."""
    events: list[EventRow] = []
    """Published weights, up to the end of the step."""
    processes: list[ProcessRow] = []
    capacity: dict[str, int] = {}
    """Declared slots by pool; a pool that declares none is judged by the most it ever ran."""
    assumed_capacity: dict[str, int] = {}
    """The most sessions ever seen in flight at once in the pool, over the whole run."""
    phases: list[PhaseTotal] = []

    @property
    def start_ns(self) -> int:
        """When the step began."""
        return self.span.start_ns

    @property
    def end_ns(self) -> int:
        """When the step ended, or now."""
        return self.now_ns if self.span.end_ns is None else self.span.end_ns

    @property
    def wall_ns(self) -> int:
        """How long it took, so far."""
        return max(self.end_ns - self.start_ns, 0)


def open_interval(row: SpanRow | SessionRow, now_ns: int) -> Interval:
    """Give the time in which a span or session was open; one that is open still ends now."""
    return row.start_ns, max(now_ns if row.end_ns is None else row.end_ns, row.start_ns)
