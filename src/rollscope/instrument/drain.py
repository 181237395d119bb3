"""The drain: takes what was recorded, announces what is open, and packs frames for the outbox.

Runs in the writer thread only. It works in slices short enough that an event loop waiting for the
interpreter lock is not held up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument.announcing import Announcer
from rollscope.instrument.buffers import HOSTED, ROW, STATUS, WHAT
from rollscope.instrument.encoder import encode_rows
from rollscope.instrument.guard import guarded, tell_once
from rollscope.instrument.latefacts import LateFacts
from rollscope.instrument.packer import Packer
from rollscope.instrument.parcel import Importance, count_held, importance_of
from rollscope.instrument.payloads import Payloads
from rollscope.instrument.samples import Samples
from rollscope.instrument.stepaside import step_aside
from rollscope.instrument.taking import SLICE_ROWS, pieces, take_latest, tell_overload
from rollscope.model.batch import (
    Heartbeat,
    ProcessHeader,
    SpanColumns,
    Stack,
)
from rollscope.model.kinds import STATUS_CODES, WHAT_OF_CODE, Kind, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from rollscope.config import Settings
    from rollscope.instrument.buffers import Buffers, Host
    from rollscope.instrument.clock import Clock, WallLine
    from rollscope.instrument.outbox import Outbox
    from rollscope.instrument.stacks import SpanStack

__all__ = ["Drain"]

_OPEN: Final = STATUS_CODES[Status.OPEN]
_CALM_SLICE_ROWS: Final = 200
"""A tenth of a millisecond of work: what an event loop may have to wait for the interpreter lock.
More at a time would be cheaper; with many rows waiting, cheap comes first."""
_CALM_ROWS: Final = 1500
_RUSH_ROWS: Final = 20_000
"""With more rows than this waiting, the writer no longer steps aside between slices."""
_TAKE_ROWS: Final = 20_000
"""Rows are taken out of the buffer this many at a time, since each taking moves all that stay."""
_TAKE_HOSTED: Final = 5_000
_ROW_BYTES: Final = 512
"""What a row with two attributes takes while it waits, about."""
_LEAST_ROWS: Final = 40_000
"""May always wait: the fastest recording adds them between two looks of the writer."""
_CALL_BYTES: Final = 320
"""What a call of a metric with two labels takes while it waits, about."""
_LEAST_CALLS: Final = 300_000
"""May always wait: what a million calls a second leave while the writer sleeps its longest."""
_FRAME_BYTES: Final = 8 * 1024 * 1024
_LIST_EVERY: Final = 10
"""Every tenth heart-beat lists the open spans and repeats the header."""


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
        watch: Callable[[Collection[int]], None],
    ) -> None:
        """Begin with nothing written.

        Args:
            buffers: What is recorded into.
            outbox: Takes the frames.
            settings: Of the recorder.
            clock: Of the process.
            wall: Says what it means.
            process: The id of the process.
            header: Describes it.
            watch: Is told the ids of spans that were found open, once each.
        """
        self._buffers = buffers
        self._outbox = outbox
        self._settings = settings
        self._clock = clock
        self._header = header
        self._packer = Packer(outbox, clock, wall, process)
        self._announcer = Announcer(buffers, self._put_sessions, watch)
        # Frames are dropped whole: a few of them have to fit where little may wait.
        self._frame_bytes = min(_FRAME_BYTES, int(settings.buffer_mb * 2**20) // 8)
        self._heartbeats = 0
        self._is_unmarked = False
        self._last_heartbeat_ns = clock.mono_ns()
        self._reported_drops: dict[str, int] = {}
        self.payloads = Payloads(self._packer, outbox, settings, clock)
        self._facts = LateFacts(buffers, self._packer, outbox, clock, settings.attr_max_bytes)
        self._samples = Samples(settings.metric_series, settings.metric_s, outbox.count_drop)

    def run(
        self,
        *,
        stacks: list[SpanStack] | None = None,
        is_flush: bool = False,
        end: str | None = None,
        patience_s: float = 0.0,
    ) -> None:
        """Pack everything recorded up to now.

        Args:
            stacks: Stacks to write along.
            is_flush: Whether metrics that are not due are packed too.
            end: Why the log ends with this drain, if it does.
            patience_s: How long such an end waits for payloads that are being redacted.
        """
        if not self._packer.has_begun:
            if self._header.parent is not None and self._buffers.is_empty():
                return  # a forked child may never record, or be about to become another program
            batch = self._packer.batch()
            batch.header = self._header
            self._packer.put(batch, Importance.VITAL, {})
        if not stacks and end is None and self.has_nothing_new():
            if is_flush or self._buffers.samples or self._samples.is_due(self._clock.mono_ns()):
                with guarded("packing metrics"):
                    self._pack_metrics(is_all=is_flush)
            self._pack_heartbeat(None)
            return
        self._drain_hosted()
        ends = self._drain_rows()
        try:
            starts = self._announcer.announce()
        except BaseException:
            self._pack_rows(ends)
            raise
        self._pack_marked(ends, starts)
        with guarded("packing payloads"):
            waiting = self._buffers.payloads
            self.payloads.pack(take_latest("payload", waiting, self._outbox.count_drop))
        with guarded("packing late facts"):
            self._facts.pack()
        with guarded("packing metrics"):
            self._pack_metrics(is_all=is_flush or end is not None)
        with guarded("packing stacks"):
            self._pack_stacks(stacks or [])
        if end is not None:
            with guarded("packing the last payloads"):  # after all else, which the sink takes now
                self.payloads.pack_last(patience_s)
        self._pack_heartbeat(end)

    def has_nothing_new(self) -> bool:
        """Say whether all but metrics is as it was left, as it is where all wait for an engine."""
        return (
            not self._is_unmarked
            and self.payloads.is_redacted()
            and self._announcer.has_nothing_new()
        )

    def run_rows(self) -> None:
        """Pack the rows only, and add metrics up.

        Done between full drains while much is recorded: little and often, an event loop waits less
        for the interpreter lock, rows are still in the processor's cache, and their attributes do
        not pile up for the garbage collector.
        """
        if self._packer.has_begun:
            self._drain_hosted()
            self._pack_rows(self._drain_rows())
            with guarded("adding metrics up"):
                self._fold_samples()

    def _drain_hosted(self) -> None:
        """Pack the sessions that a runner has left to us; some of them become rows."""
        host = self._buffers.host
        excess = len(self._buffers.hosted) // HOSTED - 2 * self._room_rows()
        if excess > 0:
            tell_overload()
            self._outbox.count_drop({"session": excess}, "overload")
            self._buffers.take_hosted(excess)
        left = len(self._buffers.hosted) // HOSTED
        while host is not None and left > 0:
            taken = self._buffers.take_hosted(min(left, _TAKE_HOSTED))
            left -= _TAKE_HOSTED
            size = _slice_rows(taken, HOSTED) * HOSTED
            for at in range(0, len(taken), size):
                if at and left < _RUSH_ROWS:
                    step_aside()
                try:
                    self._pack_hosted(taken[at : at + size], host)
                except MemoryError:
                    lost = min(size, len(taken) - at) // HOSTED
                    self._buffers.count_unrecorded(Kind.SESSION, lost)

    def _pack_hosted(self, piece: list[Any], host: Host) -> None:
        try:
            columns = host.record(piece)
        except Exception:
            self._outbox.count_drop({"session": len(piece) // HOSTED}, "not_encodable")
            with guarded("recording sessions"):
                raise
            return
        if columns is not None:
            self._put_sessions(columns)

    def _put_sessions(self, columns: SpanColumns) -> None:
        self._is_unmarked = True
        batch = self._packer.batch()
        batch.spans = columns
        self._packer.put(batch, Importance.OWNER, (columns.what, columns.status))

    def _drain_rows(self) -> list[Any]:
        """Pack what has been recorded, but for the last rows, which are given back."""
        rows = self._buffers.rows
        until = len(rows)
        last: list[Any] = []
        while until > 0:
            taken = rows[: min(until, _TAKE_ROWS * ROW)]
            del rows[: len(taken)]
            until -= len(taken)
            packed = 0
            try:
                size = _slice_rows(taken) * ROW
                for at in range(0, len(taken), size):
                    self._pack_rows(last)
                    packed = at
                    if last and len(rows) < _RUSH_ROWS * ROW:
                        step_aside()  # here, as the caller packs the last piece at once
                    last = self._thin_out(taken[at : at + size])
            except MemoryError:
                last = []
                self._lose_rows(taken, packed)
        return last

    def _lose_rows(self, rows: list[Any], at: int = 0) -> None:
        """Count rows from somewhere on that there is no memory to pack; that takes none."""
        while at < len(rows):
            is_start = rows[at + STATUS] == _OPEN
            kind = WHAT_OF_CODE[rows[at + WHAT]].kind
            self._buffers.count_unrecorded("start" if is_start else kind or "event")
            at += ROW

    def _thin_out(self, rows: list[Any]) -> list[Any]:
        """Give up the less important rows while more wait than the memory bound leaves room for.

        That is so when many threads record as fast as they can, and the writer does not get the
        interpreter lock often enough. A full room costs ordinary spans, one and a half of it
        phases too, two of it everything.
        """
        excess = len(self._buffers.rows) / (self._room_rows() * ROW)
        if excess <= 1:
            return rows
        tell_overload()
        kept: list[Any] = []
        for importance, part in _by_importance(rows).items():
            if importance + 1 > 2 * excess - 1:
                kept += part
            else:
                held = (bytes(part[WHAT::ROW]), bytes(part[STATUS::ROW]))
                self._outbox.count_drop(count_held(held), "overload")
        return kept

    def _room_rows(self) -> int:
        """Give how many rows may wait before some are given up."""
        return max(self._outbox.room_bytes() // _ROW_BYTES, _LEAST_ROWS)

    def _pack_marked(self, ends: list[Any], starts: list[Any]) -> None:
        """Pack the last rows and the announcements, and with them the mark of a full drain."""
        try:
            if len(ends) + len(starts) <= _CALM_SLICE_ROWS * ROW:
                pieces = [ends + starts]  # one frame less
            else:
                pieces = [ends, *_slices(starts)]
        except MemoryError:
            pieces = [ends]
            self._lose_rows(starts)
        for number, piece in enumerate(pieces, 1):
            if number > 1:
                step_aside()
            self._pack_rows(piece, is_last=number == len(pieces))
        if self._is_unmarked and not self._outbox.is_behind:
            batch = self._packer.batch()
            batch.drained = True
            self._packer.put(batch, Importance.OWNER, {})
            self._is_unmarked = False

    def _pack_rows(self, rows: list[Any], *, is_last: bool = False) -> None:
        """Pack rows into one frame, or one per importance while the sink is behind."""
        if self._outbox.is_behind:
            self._pack_parts(rows, is_last=is_last)
        elif rows:
            importance = max(map(importance_of, set(rows[WHAT::ROW])))
            self._pack_columns(rows, importance, is_last=is_last)

    def _pack_columns(
        self, rows: list[Any], importance: Importance, *, is_last: bool = False
    ) -> None:
        self._is_unmarked = True
        try:
            columns = encode_rows(rows, self._settings.attr_max_bytes)
            taken = len(columns.attrs) + len(rows) // ROW * _ROW_BYTES
            if taken > self._outbox.room_bytes() and self._is_mixed(rows):
                # What may not fit is dropped by frames, so each holds one importance.
                self._pack_parts(rows, is_last=is_last)
                return
            if len(columns.attrs) <= self._frame_bytes or len(rows) == ROW:
                batch = self._packer.batch()
                batch.spans, batch.drained = columns, is_last
                self._packer.put(batch, importance, (columns.what, columns.status))
                self._is_unmarked = not is_last
                return
        except MemoryError:
            self._lose_rows(rows)
            return
        except Exception:
            held = (bytes(rows[WHAT::ROW]), bytes(rows[STATUS::ROW]))
            self._outbox.count_drop(count_held(held), "not_encodable")
            with guarded("encoding spans"):
                raise
            return
        middle = len(rows) // ROW // 2 * ROW
        self._pack_columns(rows[:middle], importance)
        self._pack_columns(rows[middle:], importance, is_last=is_last)

    def _pack_parts(self, rows: list[Any], *, is_last: bool) -> None:
        """Pack rows into one frame for each importance."""
        parts = list(_by_importance(rows).items())
        for number, (importance, part) in enumerate(parts, 1):
            self._pack_columns(part, importance, is_last=is_last and number == len(parts))

    @staticmethod
    def _is_mixed(rows: list[Any]) -> bool:
        return len(set(map(importance_of, set(rows[WHAT::ROW])))) > 1

    def _fold_samples(self) -> None:
        room = max(self._outbox.room_bytes() // _CALL_BYTES, _LEAST_CALLS)
        self._samples.fold_waiting(self._buffers.samples, room, self._clock.mono_ns)

    def _pack_metrics(self, *, is_all: bool) -> None:
        self._fold_samples()
        for metrics in pieces(self._samples.take(self._clock.mono_ns(), is_all=is_all)):
            batch = self._packer.batch()
            batch.metrics = metrics
            self._packer.put(batch, Importance.OWNER, {"metric": len(metrics)})

    def _pack_stacks(self, stacks: list[SpanStack]) -> None:
        at = self._clock.mono_ns()
        for piece in pieces(stacks):
            written = [Stack(stack.span_id, at, stack.task, stack.frames) for stack in piece]
            batch = self._packer.batch()
            batch.stacks = written
            self._packer.put(batch, Importance.OWNER, {"stack": len(written)})

    def _pack_heartbeat(self, end: str | None) -> None:
        """Say that the process lives, once in a while; what was dropped; and that it ends."""
        self._count_unrecorded()
        at = self._clock.mono_ns()
        if end is None and at - self._last_heartbeat_ns < self._settings.heartbeat_s * 1e9:
            return
        self._last_heartbeat_ns = at
        batch = self._packer.batch()
        batch.heartbeat, batch.end = Heartbeat(), end
        if self._heartbeats % _LIST_EVERY == 0 or end is not None:
            batch.header = self._header
            batch.heartbeat = Heartbeat(self._announcer.list_open())
        self._heartbeats += 1
        dropped = self._outbox.dropped()
        if dropped != self._reported_drops:
            self._reported_drops = batch.drops = dropped
        self._packer.put(batch, Importance.VITAL, {})

    def _count_unrecorded(self) -> None:
        """Count what the program's threads could not record, and tell it."""
        if unrecorded := self._buffers.take_unrecorded():
            self._outbox.count_drop(unrecorded, "no_memory")
            tell_once(
                "no-memory",
                "Rollscope drops records because the program has no memory left; "
                "the run counts them",
            )


def _slice_rows(rows: list[Any], row: int = ROW) -> int:
    """Say how many rows, of so many entries each, are encoded at a time."""
    return _CALM_SLICE_ROWS if len(rows) <= _CALM_ROWS * row else SLICE_ROWS


def _slices(rows: list[Any]) -> Iterator[list[Any]]:
    """Cut rows into what is encoded at a time."""
    return pieces(rows, _slice_rows(rows) * ROW)


def _by_importance(rows: list[Any]) -> dict[Importance, list[Any]]:
    importances = {what: importance_of(what) for what in set(rows[WHAT::ROW])}
    if len(set(importances.values())) == 1:
        return {next(iter(importances.values())): rows}
    parts: dict[Importance, list[Any]] = {}
    for at in range(0, len(rows), ROW):
        parts.setdefault(importances[rows[at + WHAT]], []).extend(rows[at : at + ROW])
    return parts
