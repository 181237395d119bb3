"""The drain: takes what was recorded, announces what is open, and packs frames for the outbox.

Runs in the writer thread only. It works in slices short enough that an event loop waiting for the
interpreter lock is not held up.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument.buffers import ROW, WHAT, take_all
from rollscope.instrument.encoder import encode_rows
from rollscope.instrument.guard import guarded
from rollscope.instrument.outbox import Importance, Outbox, Parcel
from rollscope.instrument.sanitise import clean_attrs, clean_text
from rollscope.instrument.sinks import Frame
from rollscope.instrument.snapshot import snapshot_payload
from rollscope.metrics.aggregate import aggregate
from rollscope.model.batch import (
    SCHEMA_VERSION,
    Batch,
    Fact,
    Heartbeat,
    Metric,
    Payload,
    ProcessHeader,
    SpanColumns,
    Stack,
    encode_batch,
    number_column,
)
from rollscope.model.frames import pack_frame
from rollscope.model.kinds import KIND_CODES, STATUS_CODES, WHAT_OF_CODE, Kind, Status

if TYPE_CHECKING:
    from rollscope.config import Settings
    from rollscope.instrument.buffers import Buffers
    from rollscope.instrument.clock import Clock, WallLine
    from rollscope.instrument.spans import Span
    from rollscope.instrument.stacks import SpanStack

__all__ = ["Drain"]

_SLICE_ROWS: Final = 1000
"""Half a millisecond of work: what an event loop may have to wait for the interpreter lock."""
_RUSH_ROWS: Final = 20_000
"""With more rows than this waiting, the writer no longer steps aside between slices."""
_STEP_ASIDE_S: Final = 0.0001
_FRAME_BYTES: Final = 8 * 1024 * 1024
_LIST_EVERY: Final = 10
"""Every tenth heart-beat lists the open spans and repeats the header."""
_OPEN: Final = STATUS_CODES[Status.OPEN]
_PHASE: Final = KIND_CODES[Kind.PHASE]
_OWNERS: Final = frozenset(KIND_CODES[kind] for kind in (Kind.STEP, Kind.TASK, Kind.SESSION))


class Drain:
    """Turns the buffers of one process into frames."""

    def __init__(
        self,
        buffers: Buffers,
        outbox: Outbox,
        settings: Settings,
        clock: Clock,
        wall: WallLine,
        process: bytes,
        header: ProcessHeader,
    ) -> None:
        self._buffers = buffers
        self._outbox = outbox
        self._settings = settings
        self._clock = clock
        self._wall = wall
        self._process = process
        self._header = header
        self._number = 0
        self._announced: set[int] = set()
        self._heartbeats = 0
        self._last_heartbeat_ns = clock.mono_ns()
        self._reported_drops: dict[str, int] = {}

    def run(self, *, stacks: list[SpanStack] | None = None, end: str | None = None) -> None:
        """Pack everything recorded up to now.

        Args:
            stacks: Stacks to write along.
            end: Why the log ends with this drain, if it does.
        """
        if self._number == 0:
            self._put(self._batch(header=self._header), Importance.VITAL, {})
        self._drain_rows()
        self._pack_announcements()
        with guarded("packing late facts, metrics and payloads"):
            self._pack_payloads()
            self._pack_side_records(stacks or [])
        self._pack_heartbeat(end)

    def _drain_rows(self) -> None:
        rows = self._buffers.rows
        until = len(rows)
        while until > 0:
            size = min(until, _SLICE_ROWS * ROW)
            piece = rows[:size]
            del rows[:size]
            until -= size
            self._pack_rows(piece)
            if len(rows) < _RUSH_ROWS * ROW:
                time.sleep(_STEP_ASIDE_S)

    def _pack_announcements(self) -> None:
        """Write a start record for each span that is open and has none yet."""
        open_now = list(self._buffers.open.values())
        rows: list[Any] = []
        for span in open_now:
            if span.id not in self._announced:
                rows += _start_row(span)
        # A span whose end is lost stays out of the next list of open spans, and so is found out.
        self._announced = {span.id for span in open_now}
        for at in range(0, len(rows), _SLICE_ROWS * ROW):
            self._pack_rows(rows[at : at + _SLICE_ROWS * ROW])

    def _pack_rows(self, rows: list[Any]) -> None:
        """Pack rows into one frame, or one per importance while the sink is behind."""
        if self._outbox.is_behind:
            for importance, part in _by_importance(rows).items():
                self._pack_columns(part, importance)
        else:
            self._pack_columns(rows, Importance.OWNER)

    def _pack_columns(self, rows: list[Any], importance: Importance) -> None:
        contents = _contents(rows)
        try:
            columns = encode_rows(rows, self._settings.attr_max_bytes)
            if len(columns.attrs) <= _FRAME_BYTES or len(rows) == ROW:
                self._put(self._batch(spans=columns), importance, contents)
                return
        except Exception:
            self._outbox.count_drop(contents, "not_encodable")
            with guarded("encoding spans"):
                raise
            return
        middle = len(rows) // ROW // 2 * ROW
        self._pack_columns(rows[:middle], importance)
        self._pack_columns(rows[middle:], importance)

    def _pack_payloads(self) -> None:
        pending: list[Payload] = []
        size = 0
        for trace_id, span_id, mono_ns, name, value in take_all(self._buffers.payloads):
            text, cut = snapshot_payload(value, self._settings.payload_max_bytes)
            pending.append(Payload(trace_id, span_id, mono_ns, clean_text(name, 256), text, cut))
            size += len(text)
            if size > _FRAME_BYTES // 2:
                self._put_payloads(pending)
                pending, size = [], 0
        if pending:
            self._put_payloads(pending)

    def _put_payloads(self, payloads: list[Payload]) -> None:
        batch = self._batch(payloads=payloads)
        contents = {"payload": len(payloads)}
        self._put(batch, Importance.ORDINARY, contents, is_payload=True)

    def _pack_side_records(self, stacks: list[SpanStack]) -> None:
        limit = self._settings.attr_max_bytes
        facts = [
            Fact(trace_id, span_id, mono_ns, clean_attrs(values, limit))
            for trace_id, span_id, mono_ns, values in take_all(self._buffers.facts)
        ]
        if facts:
            self._put(self._batch(facts=facts), Importance.OWNER, {"fact": len(facts)})
        metrics = aggregate(take_all(self._buffers.samples))
        if metrics:
            self._put(self._batch(metrics=metrics), Importance.ORDINARY, {"metric": len(metrics)})
        if stacks:
            at = self._clock.mono_ns()
            written = [Stack(stack.span_id, at, stack.task, stack.frames) for stack in stacks]
            self._put(self._batch(stacks=written), Importance.OWNER, {"stack": len(stacks)})

    def _pack_heartbeat(self, end: str | None) -> None:
        """Say that the process lives, once in a while; what was dropped; and that it ends."""
        at = self._clock.mono_ns()
        if end is None and at - self._last_heartbeat_ns < self._settings.heartbeat_s * 1e9:
            return
        self._last_heartbeat_ns = at
        batch = self._batch(heartbeat=Heartbeat(), end=end)
        if self._heartbeats % _LIST_EVERY == 0 or end is not None:
            batch.header = self._header
            batch.heartbeat = Heartbeat(number_column(sorted(self._announced)))
        self._heartbeats += 1
        dropped = self._outbox.dropped()
        if dropped != self._reported_drops:
            self._reported_drops = batch.drops = dropped
        self._put(batch, Importance.VITAL, {})

    def _batch(
        self,
        *,
        header: ProcessHeader | None = None,
        spans: SpanColumns | None = None,
        facts: list[Fact] | None = None,
        metrics: list[Metric] | None = None,
        payloads: list[Payload] | None = None,
        stacks: list[Stack] | None = None,
        heartbeat: Heartbeat | None = None,
        end: str | None = None,
    ) -> Batch:
        number, self._number = self._number, self._number + 1
        return Batch(
            schema=SCHEMA_VERSION,
            process=self._process,
            number=number,
            mono_ns=self._clock.mono_ns(),
            clock=self._wall.renew_if_due(),
            header=header,
            spans=spans,
            facts=facts or [],
            metrics=metrics or [],
            payloads=payloads or [],
            stacks=stacks or [],
            heartbeat=heartbeat,
            end=end,
        )

    def _put(
        self,
        batch: Batch,
        importance: Importance,
        contents: dict[str, int],
        *,
        is_payload: bool = False,
    ) -> None:
        frame = Frame(pack_frame(encode_batch(batch)), is_payload)
        self._outbox.put(Parcel(frame, importance, contents))


def _start_row(span: Span) -> tuple[Any, ...]:
    """Make the start record of an open span; none yet if it is being entered this instant."""
    start_ns = getattr(span, "start_ns", None)
    if start_ns is None:
        return ()
    return (
        span.what,
        span.name,
        span.scope,
        span.id,
        span.parent_id,
        start_ns,
        0,
        _OPEN,
        dict(span.attrs),
        dict(getattr(span, "fields", {})) or None,
    )


def _by_importance(rows: list[Any]) -> dict[Importance, list[Any]]:
    parts: dict[Importance, list[Any]] = {}
    for at in range(0, len(rows), ROW):
        what = rows[at + WHAT]
        if what in _OWNERS:
            importance = Importance.OWNER
        else:
            importance = Importance.PHASE if what == _PHASE else Importance.ORDINARY
        parts.setdefault(importance, []).extend(rows[at : at + ROW])
    return parts


def _contents(rows: list[Any]) -> dict[str, int]:
    counted = Counter(rows[WHAT::ROW])
    contents: Counter[str] = Counter()
    for code, number in counted.items():
        contents[WHAT_OF_CODE[code].kind or "event"] += number
    return contents
