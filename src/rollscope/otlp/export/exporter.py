"""The export of a run: everything that is there, then whatever comes.

What was there is read from the store. What comes later is read from the logs, from exactly where
the store had got to, so that each span is met once however the store rearranges its files.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final, TypeVar

import msgspec

from rollscope.otlp.answering import Signal
from rollscope.otlp.export import jsonwire, wire
from rollscope.otlp.export.points import PointMaker
from rollscope.otlp.export.position import Position
from rollscope.otlp.export.resources import Resources
from rollscope.otlp.export.rows import ExportRows, StepRange
from rollscope.otlp.export.sampling import Sampler
from rollscope.otlp.export.sending import ExportFailed, Sending, Stopped, TooLarge
from rollscope.otlp.export.settings import ExportSettings
from rollscope.otlp.export.spans import ExportRow, PendingStyle, SpanMaker
from rollscope.store.embedded import RunStore
from rollscope.store.intake import Intake, IntakeState
from rollscope.store.ledger import Taken
from rollscope.store.sealer import Progress

__all__ = ["Exported", "Exporter", "Wanted"]

_MOST_FAILED: Final = 1_000_000

T = TypeVar("T")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What of a run is exported."""

    steps: StepRange | None = None
    """None: everything, whether it belongs to a step or not."""
    pending: PendingStyle = ""
    metrics: bool = False


class Exported(msgspec.Struct):
    """What has been taken by the other side so far."""

    spans: int = 0
    pending: int = 0
    points: int = 0
    requests: int = 0
    bytes: int = 0
    """Of the requests, before they were compressed."""
    sampled_out: int = 0
    taken_before: int = 0
    """Spans that an earlier export had sent."""
    rejected: int = 0
    """Spans and points that the endpoint left out of requests that it took."""
    said: str = ""
    """What it said to that, the last time."""


class Exporter:
    """Exports one run to one place."""

    def __init__(
        self,
        store: RunStore,
        sending: Sending,
        settings: ExportSettings,
        position: Position,
        wanted: Wanted,
        *,
        as_json: bool,
        stop: threading.Event | None = None,
    ) -> None:
        """Make ready.

        Args:
            store: The run.
            sending: The way to the endpoint or file.
            settings: How spans look, and how many go at once.
            position: What was sent before; kept up to date.
            wanted: What to send.
            as_json: Whether requests are written in JSON.
            stop: Once set, it ends the export after the request that is on its way.
        """
        run = store.path.resolve().name
        self._store = store
        self._sending = sending
        self._settings = settings
        self._position = position
        self._wanted = wanted
        self._maker = SpanMaker(
            run, pending=wanted.pending, most_characters=settings.most_characters
        )
        self._resources = Resources(run, settings)
        self._points = PointMaker(self._resources, position.series)
        self._sampler = Sampler(settings.sampled_share)
        self._wire = jsonwire if as_json else wire
        self._cursor: Intake | None = None
        self._stop = stop or threading.Event()
        self._is_last_look = False
        self.exported = Exported()

    def export(self, progress: Progress | None = None) -> Exported:
        """Send everything that has not been sent yet, lost spans included.

        Raises:
            ExportFailed: The endpoint does not take it; what it took stays taken.
        """
        with suppress(Stopped):
            if self._position.intake is None:
                self._send_all(progress)
            self._send_new()
            self._send_lost()
        return self.exported

    def follow(self) -> Exported:
        """Send what comes, until told to stop; ends with a last look.

        Raises:
            ExportFailed: The endpoint refuses for good.
        """
        while not self._is_last_look:
            self.look_again(is_last=self._stop.wait(self._settings.every_s))
        return self.exported

    def look_again(self, *, is_last: bool = False, is_over: bool = False) -> Exported:
        """Send what has come since, once everything that was there has been sent.

        Args:
            is_last: Go on although it was told to stop; waiting for the endpoint still ends.
            is_over: Send spans as lost too that nobody is going to end.

        Raises:
            ExportFailed: The endpoint refuses for good.
        """
        self._is_last_look = is_last
        if self._position.intake is None:
            return self.exported  # it was stopped amid what was there
        with suppress(Stopped):
            self._store.refresh()
            self._send_new()
            if is_over:
                self._send_lost()
        return self.exported

    def _send_all(self, progress: Progress | None) -> None:
        # Copied, since the ledgers go on changing.
        state = _copy(self._store.sealer.intake.to_state())
        with ExportRows(self._store) as rows:
            total = rows.count(self._wanted.steps) if progress is not None else 0
            self._learn(rows)
            self._position.lost |= rows.presumed_lost()
            if not self._sampler.keeps_all:
                self._sampler.failed |= rows.failed_traces()
            done = 0
            for each in rows.ended(self._wanted.steps):
                self._send_rows(each)
                done += len(each)
                if progress is not None:
                    progress(done, total)
            self._send_lone_events(rows)
            self._send_points(rows)
        self._position.settle(state)

    def _send_new(self) -> None:
        """Send what the logs have beyond the position, then what is open."""
        assert self._position.intake is not None  # noqa: S101  (all before was sent)
        if self._cursor is None:
            self._cursor = Intake(self._store.path, _copy(self._position.intake))
        for taken in self._cursor.poll():
            self._send_taken(taken)
            self._position.settle(self._cursor.to_state())
        if self._wanted.pending:
            self._send_pending()

    def _send_lost(self) -> None:
        """Send what counts as lost by now; should it end after all, that is not sent."""
        with ExportRows(self._store, only_open=True) as rows:
            self._learn(rows)
            for each in rows.ended(self._wanted.steps):
                lost = [row for row in each if row.span_id not in self._position.lost]
                self._send_rows(lost)
                self._position.lost |= {row.span_id for row in lost}
        self._position.save()

    def _send_taken(self, taken: Taken) -> None:
        if not taken.tables.keys() & {"spans", "metrics", "events"}:
            return
        self._store.refresh()  # it may lag behind the cursor, and knows facts and processes
        with ExportRows(self._store, taken.tables) as rows:
            self._learn(rows)
            for each in rows.ended(self._wanted.steps):
                self._send_rows(each)
            self._send_lone_events(rows)
            self._send_points(rows)

    def _send_lone_events(self, rows: ExportRows) -> None:
        if self._wanted.steps is None:
            for each in rows.lone_events():
                self._send_rows(each)

    def _learn(self, rows: ExportRows) -> None:
        self._resources.learn(rows.processes())
        self._maker.steps = rows.steps()

    def _send_rows(self, rows: list[ExportRow]) -> None:
        wanted = []
        for row in rows:
            if self._position.is_taken(row.span_id):
                self.exported.taken_before += 1
            elif not self._sampler.keeps(row):
                self.exported.sampled_out += 1
            else:
                wanted.append(row)
        for batch in _batches(wanted, self._settings.batch_spans):
            forms = [self._maker.make(row, self._resources.of(row.process)) for row in batch]
            self._deliver(Signal.TRACES, self._wire.encode_traces, forms)
            self._position.note([row.span_id for row in batch])
            self.exported.spans += len(batch)
            if self._stop.is_set() and not self._is_last_look:
                raise Stopped
        if len(self._sampler.failed) > _MOST_FAILED:
            self._sampler.failed.clear()

    def _send_pending(self) -> None:
        """Tell once of each span that is open; what is open no more need not be remembered."""
        known, still = self._position.pending, set[int]()
        with ExportRows(self._store, only_open=True) as rows:
            self._learn(rows)
            for each in rows.open(self._wanted.steps):
                still |= {row.span_id for row in each}
                fresh = [r for r in each if r.span_id not in known and self._sampler.keeps(r)]
                for batch in _batches(fresh, self._settings.batch_spans):
                    forms = [
                        self._maker.make_pending(row, self._resources.of(row.process))
                        for row in batch
                    ]
                    self._deliver(Signal.TRACES, self._wire.encode_traces, forms)
                    self.exported.pending += len(batch)
        if still != known:
            self._position.pending = still
            self._position.save()

    def _send_points(self, rows: ExportRows) -> None:
        if not self._wanted.metrics:
            return
        for each in rows.metrics():
            for batch in _batches(self._points.make(each), self._settings.batch_spans):
                self._deliver(Signal.METRICS, self._wire.encode_metrics, batch)
                self.exported.points += len(batch)

    def _deliver(
        self, signal: Signal, encode: Callable[[Sequence[T]], bytes], items: Sequence[T]
    ) -> None:
        body = encode(items)
        try:
            said = self._sending.deliver(signal, body)
        except TooLarge as error:
            if len(items) == 1:
                raise ExportFailed(f"{error}, though it holds one span only") from error
            middle = len(items) // 2
            self._deliver(signal, encode, items[:middle])
            self._deliver(signal, encode, items[middle:])
            return
        exported = self.exported
        exported.requests += 1
        exported.bytes += len(body)
        exported.rejected += said.rejected
        exported.said = said.message or exported.said


def _batches(items: list[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _copy(state: IntakeState) -> IntakeState:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=IntakeState)
