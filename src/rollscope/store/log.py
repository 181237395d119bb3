"""One log as records: which spans are open, which were lost, whether its process still lives."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from rollscope.errors import FrameError
from rollscope.model.batch import SNAPSHOT, Batch, encode_batch
from rollscope.model.clockline import ClockMap
from rollscope.model.framenumbers import FrameNumbers
from rollscope.model.frames import HEADER_BYTES
from rollscope.model.kinds import Status
from rollscope.model.records import (
    EndRecord,
    HeartbeatRecord,
    ProcessRecord,
    Record,
    SpanRecord,
)
from rollscope.model.unpack import batch_records
from rollscope.store.batches import BatchFollower
from rollscope.store.liveness import is_alive

__all__ = ["LogFollower"]


class LogFollower:
    """Reads a log as far as it goes, and on from there at the next `poll`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.process: ProcessRecord | None = None
        self.last_seen_ns = 0
        """Wall time of the last frame: until then the process certainly lived."""
        self.has_ended = False
        self._is_snapshot = False
        """Whether the process closed the log itself."""
        self.open_spans: dict[str, SpanRecord] = {}
        self._suspects: dict[str, int] = {}
        self._batches = BatchFollower(path)
        self._numbers = FrameNumbers()
        self._process_id: bytes | None = None
        self._jumped_ns = 0  # how far the clock of its host is from the time it keeps
        self._clock = ClockMap()

    @property
    def problems(self) -> list[str]:
        """What is wrong with the file, in sentences."""
        return self._batches.problems

    @property
    def damaged_bytes(self) -> int:
        """Bytes that were no whole frame, the torn end apart."""
        return self._batches.damaged_bytes

    @property
    def torn_bytes(self) -> int:
        """Bytes of a frame that its process did not live to finish."""
        return self._batches.torn_bytes

    def poll(self, *, final: bool = False) -> Iterator[Record]:
        """Read what was added since the last call.

        Args:
            final: Nothing will be added any more, so an incomplete frame at the end is damage.

        Raises:
            NotARunError: The file is no log at all.
        """
        for batch in self._batches.poll(final=final):
            if not self._is_ours(batch):
                continue
            try:
                yield from self._records(batch)
            except FrameError as error:
                self._batches.tell_unreadable(HEADER_BYTES + len(encode_batch(batch)), error)

    def _is_ours(self, batch: Batch) -> bool:
        """Refuse a frame of another process, and one that came twice."""
        if self._process_id is None:
            self._process_id = batch.process
        if batch.process != self._process_id:
            self._batches.tell_foreign()
            return False
        return self._numbers.take(batch.number)

    def _records(self, batch: Batch) -> Iterator[Record]:
        for record in batch_records(batch, self._clock):
            match record:
                case ProcessRecord():
                    self.process = record
                case SpanRecord() if record.status is Status.OPEN:
                    self.open_spans[record.span_id] = record
                case SpanRecord():
                    self.open_spans.pop(record.span_id, None)
                    self._suspects.pop(record.span_id, None)
                case EndRecord():
                    self.has_ended = True
                    self._is_snapshot = record.why == SNAPSHOT
                case HeartbeatRecord() if record.open_spans is not None:
                    yield from self._compare(record)
            yield record
        self.last_seen_ns = self._clock.wall_at(batch.mono_ns)
        self._jumped_ns = batch.clock.jumped_ns

    def _compare(self, heartbeat: HeartbeatRecord) -> Iterator[SpanRecord]:
        """Find spans whose end was dropped: open to us, but missing from two lists in a row."""
        listed = set(heartbeat.open_spans or ())
        missing = {span_id for span_id in self.open_spans if span_id not in listed}
        for span_id in sorted(missing & self._suspects.keys()):
            yield self._lose(span_id, self._suspects[span_id], "its end was not recorded")
        self._suspects = {
            span_id: self._suspects.get(span_id, heartbeat.time_ns)
            for span_id in missing
            if span_id in self.open_spans
        }

    def is_over(self, now_ns: int) -> bool:
        """Say whether nothing more will be written: the log was closed or its process is gone."""
        if self.has_ended or self.process is None:
            return self.has_ended
        return not is_alive(self.process, self.last_seen_ns + self._jumped_ns, now_ns)

    def lost_spans(self, now_ns: int) -> Iterator[SpanRecord]:
        """Give the spans that can no longer end, once: their process is gone."""
        if not self.open_spans or self._is_snapshot or not self.is_over(now_ns):
            return
        why = "its process ended" if self.has_ended else "its process died"
        for span_id in list(self.open_spans):
            yield self._lose(span_id, self.last_seen_ns, why)

    def _lose(self, span_id: str, end_ns: int, why: str) -> SpanRecord:
        span = self.open_spans.pop(span_id)
        self._suspects.pop(span_id, None)
        return msgspec.structs.replace(
            span, status=Status.LOST, end_ns=max(end_ns, span.start_ns), reason=why
        )
