"""Following one log: from a growing file of frames to records, through damage and torn ends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from rollscope.errors import FrameError, NotARunError, UnknownSchema
from rollscope.model.batch import Batch, decode_batch
from rollscope.model.clockline import ClockMap
from rollscope.model.frames import HEADER_BYTES, MARKER, scan_frames
from rollscope.model.kinds import Status
from rollscope.model.records import (
    EndRecord,
    HeartbeatRecord,
    ProcessRecord,
    Record,
    SpanRecord,
)
from rollscope.model.unpack import batch_records
from rollscope.store.liveness import is_alive

__all__ = ["LogFollower"]

_READ_BYTES: Final = 8 * 1024 * 1024
_MARKER_TEXT: Final = MARKER.decode()


class LogFollower:
    """Reads a log as far as it goes, and on from there at the next `poll`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.process: ProcessRecord | None = None
        self.last_seen_ns = 0
        """Wall time of the last frame: until then the process certainly lived."""
        self.has_ended = False
        """Whether the process closed the log itself."""
        self.damaged_bytes = 0
        """Bytes that were no whole frame, the torn end apart."""
        self.torn_bytes = 0
        """Bytes of a frame that its process did not live to finish."""
        self.problems: list[str] = []
        """What is wrong with the file, in sentences."""
        self.open_spans: dict[str, SpanRecord] = {}
        self._suspects: dict[str, int] = {}
        self._offset = 0
        self._rest = b""
        self._process_id: bytes | None = None
        self._last_number = -1
        self._jumped_ns = 0  # how far the clock of its host is from the time it keeps
        self._clock = ClockMap()

    def poll(self, *, final: bool = False) -> Iterator[Record]:
        """Read what was added since the last call.

        Args:
            final: Nothing will be added any more, so an incomplete frame at the end is damage.

        Raises:
            NotARunError: The file is no log at all.
        """
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            if size < self._offset:
                self._tell(f"{self.path} has shrunk from {self._offset} to {size} bytes")
                self._offset, self._rest = size, b""
            file.seek(self._offset)
            while data := file.read(_READ_BYTES):
                if self._offset == 0 and not _looks_like_log(data):
                    raise NotARunError(_describe_foreign(self.path, data))
                self._offset += len(data)
                yield from self._take(self._rest + data, final=False)
        if final and self._rest:
            yield from self._take_torn_end()

    def _take_torn_end(self) -> Iterator[Record]:
        """Give up on the frame at the end, unless it is damage with whole frames behind it."""
        rest, self._rest = self._rest, b""
        if scan_frames(rest, final=True).bodies:
            yield from self._take(rest, final=True)
        else:
            self.torn_bytes += len(rest)

    def _take(self, data: bytes, *, final: bool) -> Iterator[Record]:
        scan = scan_frames(data, final=final)
        self._rest = data[scan.end :]
        if scan.damaged:
            self.damaged_bytes += scan.damaged
            self._tell(f"{self.path} is damaged; whole frames around the damage are read")
        for body in scan.bodies:
            try:
                batch = decode_batch(body)
            except UnknownSchema as error:
                self._tell(f"{self.path}: {error}")
                continue
            except FrameError as error:
                self._tell_unreadable(body, error)
                continue
            if not self._is_ours(batch):
                continue
            try:
                yield from self._records(batch)
            except FrameError as error:
                self._tell_unreadable(body, error)

    def _is_ours(self, batch: Batch) -> bool:
        """Refuse a frame of another process, and one that came twice."""
        if self._process_id is None:
            self._process_id = batch.process
        if batch.process != self._process_id:
            self._tell(f"{self.path} holds frames of another process, which are ignored")
            return False
        if batch.number <= self._last_number:
            return False
        self._last_number = batch.number
        return True

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
        if not self.open_spans or not self.is_over(now_ns):
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

    def _tell_unreadable(self, body: bytes, error: FrameError) -> None:
        self.damaged_bytes += HEADER_BYTES + len(body)
        self._tell(f"{self.path}: {error}")

    def _tell(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)


def _looks_like_log(data: bytes) -> bool:
    return data.startswith(MARKER) or MARKER.startswith(data) or MARKER in data


def _describe_foreign(path: Path, data: bytes) -> str:
    return (
        f"{path} is not a Rollscope log: it begins with {data[:12]!r} and has no {_MARKER_TEXT!r} "
        "frame; give a run directory, or a .rsl file from its log/ folder"
    )
