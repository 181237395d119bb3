"""The records of a run, as readers see them.

Times are nanoseconds since the epoch: a process measures with its monotonic clock, and its clock
lines (see `clockline`) place that on the wall clock. Ids are text in hexadecimal.
"""

from typing import Any

import msgspec

from rollscope.model.kinds import Category, Kind, MetricType, Outcome, Status

__all__ = [
    "DropRecord",
    "EndRecord",
    "EventRecord",
    "FactRecord",
    "HeartbeatRecord",
    "MetricRecord",
    "PayloadRecord",
    "ProcessRecord",
    "Record",
    "SpanRecord",
    "StackRecord",
]

Attrs = dict[str, Any]
"""Attribute values are what MessagePack holds: text, numbers, booleans, null, lists and maps."""


class _Record(msgspec.Struct, kw_only=True, tag_field="record"):
    process: str
    """Id of the process that recorded it."""


class ProcessRecord(_Record, tag="process", omit_defaults=True):
    """Who records: written at the start of a log and repeated, in case a log is damaged."""

    host: str
    pid: int
    role: str
    rank: int | None
    parent: str | None
    """The process this one was forked from."""
    started_ns: int
    started_mono_ns: int
    pid_namespace: int
    """Tells whether a reader on the same host sees the same pids; 0 if unknown."""
    start_ticks: int
    """The kernel's start time of the process, which tells a reused pid apart; 0 if unknown."""
    heartbeat_s: float
    python: str
    version: str
    schema: int
    node: str = ""
    """The node of a Ray cluster that it runs on, by its id; so are the next two."""
    job: str = ""
    worker: str = ""
    actor: str = ""
    """The class of the Ray actor that it is."""
    actor_name: str = ""


class SpanRecord(_Record, tag="span"):
    """A span: with status `open` and no end when it is known to have started, else ended."""

    trace_id: str
    span_id: str
    parent_id: str | None
    kind: Kind
    name: str
    category: Category | None
    start_ns: int
    end_ns: int | None
    status: Status
    reason: str | None
    outcome: Outcome | None
    step: int | None
    version_start: int | None
    version_end: int | None
    task_key: str | None
    sample: int | None
    group: str | None
    lane: str | None
    session_id: str | None
    attrs: Attrs

    @property
    def duration_s(self) -> float | None:
        """Seconds from start to end; None while open."""
        return None if self.end_ns is None else (self.end_ns - self.start_ns) / 1e9


class EventRecord(_Record, tag="event"):
    """An instant."""

    trace_id: str
    event_id: str
    parent_id: str | None
    name: str
    time_ns: int
    step: int | None
    session_id: str | None
    attrs: Attrs


class FactRecord(_Record, tag="fact"):
    """Something learned about a span after it was opened, perhaps after it closed."""

    trace_id: str
    span_id: str
    time_ns: int
    facts: Attrs


class MetricRecord(_Record, tag="metric"):
    """What one series of a metric did since its last record."""

    type: MetricType
    name: str
    labels: dict[str, str]
    time_ns: int
    value: float
    """Counter: the increase. Gauge: the last value. Histogram: the sum."""
    count: int
    min: float | None
    max: float | None
    buckets: dict[int, int]
    """Histogram only: bucket number to count; see `rollscope.metrics.buckets`."""
    step: int | None = None
    """The step that its process was in, if it was in one."""


class PayloadRecord(_Record, tag="payload"):
    """Trajectory text of a span, kept apart from timing."""

    trace_id: str
    span_id: str
    time_ns: int
    name: str
    text: str
    """JSON."""
    cut: bool
    """Whether it was longer than the limit and is therefore not whole."""


class StackRecord(_Record, tag="stack"):
    """Where a span hangs: the chain of awaits, or of calls, from the outside in."""

    span_id: str
    time_ns: int
    task: str
    """Name of the asyncio task, or of the thread."""
    frames: list[str]
    """`file:line function`, the innermost last."""


class HeartbeatRecord(_Record, tag="heartbeat"):
    """The process lived at this time."""

    time_ns: int
    open_spans: list[str] | None
    """Ids of every announced span that was open then; None if this heart-beat has no list."""


class DropRecord(_Record, tag="drops"):
    """How much this process has dropped so far, by what was dropped and why."""

    time_ns: int
    counts: dict[str, int]


class EndRecord(_Record, tag="end"):
    """The process closed its log on its own accord; nothing follows."""

    time_ns: int
    why: str


Record = (
    ProcessRecord
    | SpanRecord
    | EventRecord
    | FactRecord
    | MetricRecord
    | PayloadRecord
    | StackRecord
    | HeartbeatRecord
    | DropRecord
    | EndRecord
)
