"""Small pieces of a run, made by hand: rows, batches, logs and tracers with fake clocks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rollscope.config import Settings
from rollscope.instrument.encoder import encode_rows
from rollscope.instrument.process import describe_process
from rollscope.model.batch import (
    SCHEMA_VERSION,
    Batch,
    Heartbeat,
    ProcessHeader,
    SpanColumns,
    encode_batch,
    number_column,
)
from rollscope.model.clockline import ClockLine, ClockMap
from rollscope.model.frames import pack_frame
from rollscope.model.kinds import EVENT_CODE, KIND_CODES, SPAN_CODES, STATUS_CODES, Kind, Status
from rollscope.model.scope import Scope
from rollscope.model.unpack import batch_records

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rollscope.model.records import Record

SECOND = 1_000_000_000
EPOCH = 1_700_000_000 * SECOND
PROCESS = b"\0\0\0\0\0\0\0\1"
LINE = ClockLine(0, EPOCH)
SCOPE = Scope(b"\x01" * 16)


def make_row(
    span_id: int = 1,
    name: Any = "work",
    *,
    kind: Kind = Kind.SPAN,
    status: Status = Status.OK,
    scope: Scope = SCOPE,
    parent_id: int = 0,
    start_ns: int = SECOND,
    end_ns: int = 2 * SECOND,
    attrs: dict[Any, Any] | None = None,
    fields: dict[str, Any] | None = None,
) -> tuple[Any, ...]:
    """Give one row as the caller's path appends it; open spans have no end."""
    what = SPAN_CODES["misc"] if kind is Kind.SPAN else KIND_CODES[kind]
    end_ns = 0 if status is Status.OPEN else end_ns
    code = STATUS_CODES[status]
    return (
        what,
        name,
        scope,
        span_id,
        parent_id,
        start_ns,
        end_ns,
        code,
        {} if attrs is None else attrs,
        fields,
    )


def make_event(event_id: int, name: str = "event", **changes: Any) -> tuple[Any, ...]:
    """Give the row of an event."""
    row = make_row(event_id, name, **changes)
    return (EVENT_CODE, *row[1:6], 0, *row[7:])


def make_columns(*rows: tuple[Any, ...], attr_max_bytes: int = 4096) -> SpanColumns:
    """Encode rows."""
    return encode_rows([entry for row in rows for entry in row], attr_max_bytes)


def make_batch(number: int = 0, *, mono_ns: int = SECOND, **parts: Any) -> Batch:
    """Give a batch of process 1 with the given parts."""
    given: dict[str, Any] = {"process": PROCESS, "schema": SCHEMA_VERSION, "clock": LINE, **parts}
    return Batch(number=number, mono_ns=mono_ns, **given)


def span_batch(number: int, *rows: tuple[Any, ...], at_s: float = 0.0, **parts: Any) -> Batch:
    """Give a batch of spans, written when the last of them has ended or at a given second."""
    mono_ns = int(at_s * SECOND) or max(max(row[5:7]) for row in rows)
    return make_batch(number, mono_ns=mono_ns, spans=make_columns(*rows), **parts)


def list_batch(number: int, at_s: float, *open_ids: int, **parts: Any) -> Batch:
    """Give a heart-beat that lists the open spans."""
    beat = Heartbeat(number_column(open_ids))
    return make_batch(number, mono_ns=int(at_s * SECOND), heartbeat=beat, **parts)


def make_header(**changes: Any) -> ProcessHeader:
    """Describe this process, or one that differs from it."""
    header = describe_process(Settings(), LINE)
    for field, value in changes.items():
        setattr(header, field, value)
    return header


def dead_header() -> ProcessHeader:
    """Describe a process of this host that is no more: our pid, started at another time."""
    return make_header(start_ticks=make_header().start_ticks + 1)


def remote_header() -> ProcessHeader:
    """Describe a process of another host."""
    return make_header(host=os.uname().nodename + "-other")


def frame_of(batch: Batch) -> bytes:
    """Give the frame of a batch."""
    return pack_frame(encode_batch(batch))


def records_of(*batches: Batch) -> list[Record]:
    """Read batches of one process."""
    clock = ClockMap()
    return [record for batch in batches for record in batch_records(batch, clock)]


def write_log(path: Path, batches: Iterable[Batch], *, tail: bytes = b"") -> Path:
    """Write a log of the given batches, and perhaps something torn behind them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(frame_of(batch) for batch in batches) + tail)
    return path
