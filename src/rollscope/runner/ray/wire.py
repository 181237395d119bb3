"""What the head and its actors tell each other, as bytes.

Times are monotonic nanoseconds of whoever wrote them; the head moves them to its own clock.
"""

from typing import Any, Final

import msgspec

from rollscope.runner.outcome import Failure, Reason, Status

__all__ = [
    "MAX_BATCH",
    "Done",
    "Heartbeat",
    "LeaseBatch",
    "LeasedCall",
    "Quiet",
    "Report",
    "Saved",
    "Seen",
    "Start",
    "decode_batch",
    "decode_heartbeat",
    "decode_report",
    "encode",
]

MAX_BATCH: Final = 16
"""Tasks leased by one message."""


class LeasedCall(msgspec.Struct, array_like=True):
    """A task, lent to an actor for one attempt."""

    lease: int
    """Names this attempt of this task, and no other, in everything that is said about it."""
    id: int
    attempt: int
    function: bytes
    arguments: bytes
    """With the context variables that cross."""
    options: bytes
    partial: bytes | None
    """The last checkpoint of an earlier attempt."""
    carrier: dict[str, str]
    """Names the session in the trace."""
    spent_s: float | None
    """Time since its first start; None if this is the first."""


class LeaseBatch(msgspec.Struct, array_like=True):
    """Tasks for one actor, and the weight version at that moment."""

    calls: list[LeasedCall]
    version: int | None
    change: int
    """How often the version had changed: an older message never sets it back."""
    recording: dict[str, Any] | None = None
    """The settings of the head's recording: here, so that no task starts before they are known."""


class Start(msgspec.Struct, array_like=True):
    """An attempt has begun."""

    lease: int
    started_ns: int
    version: int | None


class Saved(msgspec.Struct, array_like=True):
    """A task has left a checkpoint."""

    lease: int
    state: bytes


class Done(msgspec.Struct, array_like=True):
    """An attempt has ended."""

    lease: int
    status: Status
    reason: Reason
    finished_ns: int
    started_ns: int | None = None
    value: bytes | None = None
    stored_bytes: int = 0
    """More than 0: the value is too large for a message and has to be fetched."""
    failure: Failure | None = None
    detail: str = ""
    version: int | None = None
    versions: tuple[int, ...] = ()
    is_zombie: bool = False
    """It still runs, although it was told to end."""


class Quiet(msgspec.Struct, array_like=True):
    """Nothing on the actor touches the engine, as the head asked for."""

    epoch: int
    held: list[int]
    """Leases of tasks that wait at a pause point."""


class Report(msgspec.Struct, array_like=True):
    """All that has happened on an actor since its last report."""

    number: int
    starts: list[Start]
    saved: list[Saved]
    done: list[Done]
    returned: list[int]
    """Leases handed back before they started."""
    quiet: Quiet | None


class Seen(msgspec.Struct, array_like=True):
    """Where a running task is."""

    lease: int
    phase: str | None
    frames: list[str]
    since_progress_s: float | None
    children: int


class Heartbeat(msgspec.Struct, array_like=True):
    """An actor is alive."""

    now_ns: int
    leased: list[int]
    """What it holds."""
    running: int
    finished: int
    zombies: list[int]
    """Leases of attempts that still run, although they were given up."""
    loop_lag_s: float
    seen: list[Seen]
    """The tasks that have run the longest."""


_encoder: Final = msgspec.msgpack.Encoder()
_batches: Final = msgspec.msgpack.Decoder(LeaseBatch)
_reports: Final = msgspec.msgpack.Decoder(Report)
_heartbeats: Final = msgspec.msgpack.Decoder(Heartbeat)


def encode(message: LeaseBatch | Report | Heartbeat) -> bytes:
    """Make bytes of a message."""
    return _encoder.encode(message)


def decode_batch(data: bytes) -> LeaseBatch:
    """Read tasks that are leased."""
    return _batches.decode(data)


def decode_report(data: bytes) -> Report:
    """Read what has happened on an actor."""
    return _reports.decode(data)


def decode_heartbeat(data: bytes) -> Heartbeat:
    """Read a sign of life."""
    return _heartbeats.decode(data)
