"""What other tools are told of: spans and events on their tracks, and samples of metrics."""

from enum import StrEnum
from typing import Final, NamedTuple

__all__ = ["EVENT", "Place", "Process", "Sample", "TraceRow", "Track"]

EVENT: Final = "event"
"""Stands where spans have their kind."""


class Place(StrEnum):
    """What the tracks of a group hold."""

    STEPS = "steps"
    TASKS = "tasks"
    SPANS = "spans"
    """What belongs to no session."""
    SESSION = "session"
    LANE = "lane"


class Process(NamedTuple):
    """A process of the run, or the one that stands for all lanes."""

    pid: int
    """As exported: small, and of this export only."""
    process: int | None
    """None for the lanes."""
    role: str = ""
    rank: int | None = None
    host: str = ""
    source_pid: int = 0


class Track(NamedTuple):
    """One row of a viewer."""

    tid: int
    pid: int
    place: str
    key: str
    """What it is of, within its process and place."""
    number: int
    """The first track of a group has 0; further ones hold what runs at the same time."""
    title: str


class TraceRow(NamedTuple):
    """A span or an event where it is drawn, late facts applied; most names are the store's."""

    pid: int
    tid: int
    children: list[int] | None
    """Ids of spans on other tracks that this one is the parent of."""
    is_linked: bool
    """Whether its parent is on another track and has it among its children."""
    span_id: int
    parent_id: int | None
    session_id: int | None
    trace_id: bytes | None
    process: int
    """Who told of it; what is on a lane is drawn elsewhere."""
    kind: str
    name: str
    category: str | None
    start_ns: int
    end_ns: int | None
    """Never before the start; None if the span is open."""
    recorded_end_ns: int | None
    """Differs if the clocks are at odds: then the end was before the start."""
    status: str | None
    outcome: str | None
    reason: str | None
    step: int | None
    consumed_step: int | None
    consumed_ns: int | None
    """When that became known."""
    version_start: int | None
    version_end: int | None
    task_key: str | None
    family: str | None
    sample: int | None
    group_key: str | None
    lane: str | None
    replica: str | None
    attempt: int | None
    turns: int | None
    tokens_in: int | None
    tokens_out: int | None
    reward: float | None
    attrs: str | None


class Sample(NamedTuple):
    """What a counter, gauge or histogram did."""

    process: int
    type: str
    name: str
    labels: str | None
    time_ns: int
    value: float | None
    entries: int | None
    """What a histogram counted."""
