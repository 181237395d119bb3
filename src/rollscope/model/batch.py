"""Batches: the body of a frame, in columns.

Spans and events stand in columns of raw little-endian numbers, which readers take over without
touching each value; text and scopes are listed once per batch and referred to by number. A batch
needs nothing but itself to be read. How it becomes records is left to `unpack`.
"""

import sys
from array import array
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec

from rollscope.errors import FrameError, UnknownSchema
from rollscope.model.clockline import ClockLine
from rollscope.model.kinds import STATUS_OF_CODE, WHAT_OF_CODE, MetricType
from rollscope.model.scope import ScopeRow
from rollscope.model.undecodable import UNDECODABLE

__all__ = [
    "FROM_FILES",
    "IMPORTED",
    "SCHEMA_VERSION",
    "SNAPSHOT",
    "Batch",
    "ClockReading",
    "Fact",
    "Heartbeat",
    "Metric",
    "Payload",
    "ProcessHeader",
    "SpanColumns",
    "Stack",
    "decode_batch",
    "encode_batch",
    "index_column",
    "number_column",
    "read_index_column",
    "read_number_column",
]

SCHEMA_VERSION: Final = 1
"""Raised when older readers would misread newer batches; additions alone do not raise it."""


IMPORTED: Final = "imported"
"""Why a log ends that was made from another tool's file, which tells all there is to tell."""
SNAPSHOT: Final = "snapshot"
"""Why a log ends that tells of a process only up to some moment, as an imported file does: what was
open then may have gone on, and stays open."""
FROM_FILES: Final = frozenset({IMPORTED, SNAPSHOT})
"""Why a log ends that no process has written, but an import."""


class ProcessHeader(msgspec.Struct, omit_defaults=True):
    """Who writes the log."""

    host: str
    pid: int
    role: str
    started_ns: int
    started_mono_ns: int
    heartbeat_s: float
    python: str
    version: str
    rank: int | None = None
    parent: bytes | None = None
    pid_namespace: int = 0
    start_ticks: int = 0
    node: str = ""
    """Of a Ray cluster, by its id; so are the next two."""
    job: str = ""
    worker: str = ""
    actor: str = ""
    """The class of the Ray actor that the process is, if it is one."""
    actor_name: str = ""


class SpanColumns(msgspec.Struct):
    """Spans and events; each column has one entry per row."""

    what: bytes
    """One byte a row: see `kinds.WHAT_OF_CODE`."""
    status: bytes
    """One byte a row: see `kinds.STATUS_OF_CODE`."""
    name: bytes
    """Numbers into `names`, one byte each, or four if there are more than 256 names."""
    scope: bytes
    """Numbers into `scopes`, in the same way."""
    span_id: bytes
    """Eight bytes a row, as the next three columns."""
    parent_id: bytes
    """0: no parent."""
    start_ns: bytes
    """Monotonic."""
    end_ns: bytes
    """Monotonic; 0 while open."""
    names: list[str]
    scopes: list[ScopeRow]
    attrs: msgspec.Raw
    """A list with one map a row, or null if no row has attributes."""
    fields: dict[int, dict[str, Any]] = {}
    """Row number to the fields that few spans have: reason, outcome, lane, versions."""


class Fact(msgspec.Struct, array_like=True):
    """A late fact about a span."""

    trace_id: bytes
    span_id: int
    mono_ns: int
    facts: dict[str, Any]


class Metric(msgspec.Struct, array_like=True):
    """What one series of a metric did since its last record."""

    type: MetricType
    name: str
    labels: dict[str, str]
    value: float
    count: int = 0
    min: float | None = None
    max: float | None = None
    buckets: dict[int, int] = {}
    mono_ns: Annotated[int, msgspec.Meta(ge=0, lt=2**62)] = 0
    """When it was last called; 0 where that is the time of the batch."""
    step: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    """The step that its process was in, if it was in one."""


class Payload(msgspec.Struct, array_like=True):
    """Trajectory text of a span."""

    trace_id: bytes
    span_id: int
    mono_ns: int
    name: str
    text: str
    cut: bool


class Stack(msgspec.Struct, array_like=True):
    """Where a span hangs."""

    span_id: int
    mono_ns: int
    task: str
    frames: list[str]


class ClockReading(msgspec.Struct, array_like=True):
    """How a receiver's clock and that of a process whose frames it takes stood to each other."""

    process: bytes
    mono_ns: int
    """When, by the monotonic clock of that process."""
    offset_ns: int
    """What its wall time, as its own clock line gives it, lacks to the receiver's."""
    error_ns: int
    """How wrong that may be; -1 if it is known only that the offset is not greater."""


class Heartbeat(msgspec.Struct, omit_defaults=True):
    """The process lives; with the ids of its announced open spans now and then."""

    open_ids: bytes | None = None


class Batch(msgspec.Struct, omit_defaults=True):
    """Everything one drain has to say."""

    schema: int
    process: bytes
    """Id of the process, 8 random bytes."""
    number: int
    """Frames of one process count from 0 up, those with payloads, which stand in a file of their
    own, from -1 down; process and number name a frame for good."""
    mono_ns: int
    clock: ClockLine
    header: ProcessHeader | None = None
    spans: SpanColumns | None = None
    facts: list[Fact] = []
    metrics: list[Metric] = []
    payloads: list[Payload] = []
    stacks: list[Stack] = []
    readings: list[ClockReading] = []
    heartbeat: Heartbeat | None = None
    drops: dict[str, int] = {}
    end: str | None = None
    drained: bool = False
    """Every span that was open at this time has been announced: readers may make up their minds
    about what ended before. Rows that are written between full drains come without it."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Batch)
_schema_decoder = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])


def encode_batch(batch: Batch) -> bytes:
    """Encode a batch as the body of a frame."""
    return _encoder.encode(batch)


def decode_batch(body: bytes) -> Batch:
    """Decode the body of a frame.

    Raises:
        UnknownSchema: It was written by a newer version.
        FrameError: It is no batch at all, or its parts do not fit together.
    """
    try:
        batch = _decoder.decode(body)
    except UNDECODABLE as error:
        schema = _peek_schema(body)
        if schema is not None and schema > SCHEMA_VERSION:
            raise _unknown(schema) from None
        raise FrameError(f"a frame holds no batch: {error}") from None
    if batch.schema > SCHEMA_VERSION:
        raise _unknown(batch.schema)
    if batch.spans is not None:
        _check_columns(batch.spans)
    if batch.heartbeat is not None and len(batch.heartbeat.open_ids or b"") % 8:
        raise FrameError("a frame holds a list of open spans with half an id")
    return batch


def _check_columns(columns: SpanColumns) -> None:
    """Refuse columns that do not fit together, so that readers need not check each value."""
    rows = len(columns.what)
    numbers = (columns.span_id, columns.parent_id, columns.start_ns, columns.end_ns)
    tables = ((columns.name, len(columns.names)), (columns.scope, len(columns.scopes)))
    sound = (
        len(columns.status) == rows
        and all(len(column) == 8 * rows for column in numbers)
        and all(len(column) in (rows, 4 * rows) for column, _ in tables)
        and _holds_only(columns.what, _WHATS)
        and _holds_only(columns.status, _STATUSES)
        and all(_fits(column, rows, size) for column, size in tables)
    )
    if not sound:
        raise FrameError("a frame holds span columns that do not fit together")


_BYTES: Final = bytes(range(256))
_WHATS: Final = bytes(WHAT_OF_CODE)
_STATUSES: Final = _BYTES[: len(STATUS_OF_CODE)]


def _holds_only(column: bytes, allowed: bytes) -> bool:
    return not column.translate(None, allowed)  # in C, where a loop would cost as much as decoding


def _fits(column: bytes, rows: int, table_size: int) -> bool:
    if len(column) == rows:
        return _holds_only(column, _BYTES[:table_size])
    return max(read_index_column(column, rows), default=-1) < table_size


def _peek_schema(body: bytes) -> int | None:
    try:
        return msgspec.msgpack.decode(_schema_decoder.decode(body)["schema"], type=int)
    except (*UNDECODABLE, KeyError):
        return None


def _unknown(schema: int) -> UnknownSchema:
    return UnknownSchema(
        f"written with schema {schema}, this version reads up to {SCHEMA_VERSION}; "
        "upgrade rollscope to read it"
    )


def _little(numbers: "array[int]") -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def number_column(values: Sequence[int]) -> bytes:
    """Write whole numbers below 2**64 as a column."""
    return _little(array("Q", values))


def read_number_column(column: bytes) -> "array[int]":
    """Read what `number_column` wrote."""
    numbers = array("Q", column)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def index_column(indices: list[int], table_size: int) -> bytes:
    """Write numbers into a table of the given size as a column."""
    return bytes(indices) if table_size <= 256 else _little(array("I", indices))


def read_index_column(column: bytes, rows: int) -> Sequence[int]:
    """Read what `index_column` wrote."""
    if len(column) == rows:
        return column
    indices = array("I", column)
    if sys.byteorder == "big":
        indices.byteswap()
    return indices
