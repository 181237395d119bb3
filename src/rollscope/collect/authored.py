"""Logs that a receiver writes on behalf of something that records nothing itself.

Clock readings, scraped metrics and spans of foreign senders become frames like all others, so that
the run directory stays the one truth. Such a log has no monotonic clock: it writes wall times, and
its clock line says so.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from rollscope.collect.logfile import write_trouble
from rollscope.instrument.sinks import Frame, Opening
from rollscope.instrument.sinks.file import FileSink
from rollscope.model.batch import (
    SCHEMA_VERSION,
    Batch,
    ClockReading,
    Fact,
    Heartbeat,
    Metric,
    Payload,
    ProcessHeader,
    SpanColumns,
    encode_batch,
)
from rollscope.model.clockline import ClockLine
from rollscope.model.frames import pack_frame

__all__ = ["AuthoredLog"]

_WALL: Final = ClockLine(0, 0)


class AuthoredLog:
    """One such log; for one thread at a time."""

    def __init__(
        self,
        run: Path,
        process: bytes,
        header: ProcessHeader,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Write nothing yet.

        Args:
            run: The run directory; made with the first frame.
            process: The id it writes under, drawn at random.
            header: Who is written about; its times are wall times.
            tags: Labels of the run, if this makes it.
        """
        self.process = process
        self._opening = Opening(run.name, str(run.parent), process, header, dict(tags or {}))
        self._sink = FileSink()
        self._is_made = False
        self._frames = 0
        self._payload_frames = 0

    def write(
        self,
        *,
        at_ns: int | None = None,
        spans: SpanColumns | None = None,
        facts: Sequence[Fact] = (),
        metrics: Sequence[Metric] = (),
        payloads: Sequence[Payload] = (),
        readings: Sequence[ClockReading] = (),
        heartbeat: bool = False,
        drops: Mapping[str, int] | None = None,
        end: str | None = None,
    ) -> None:
        """Write what there is to say; payloads go into a frame and a file of their own.

        Raises:
            IngestError: It could not be written; neither a part nor a gap is left.
        """
        at_ns = time.time_ns() if at_ns is None else at_ns
        if payloads:
            number = -self._payload_frames - 1
            batch = Batch(SCHEMA_VERSION, self.process, number, at_ns, _WALL)
            batch.payloads = list(payloads)
            self._put(batch)
            self._payload_frames += 1
        if not (spans or facts or metrics or readings or heartbeat or drops or end):
            return
        batch = Batch(SCHEMA_VERSION, self.process, self._frames, at_ns, _WALL)
        if not self._frames or end is not None:
            batch.header = self._opening.header
        batch.spans = spans
        batch.facts, batch.metrics, batch.readings = list(facts), list(metrics), list(readings)
        batch.heartbeat = Heartbeat() if heartbeat else None
        batch.drops, batch.end = dict(drops or {}), end
        self._put(batch)
        self._frames += 1

    def release(self) -> None:
        """Close the files; the next write opens them again."""
        self._sink.close()

    def _put(self, batch: Batch) -> None:
        try:
            if not self._is_made:
                self._sink.open(self._opening)
                self._is_made = True
            self._sink.write(Frame(pack_frame(encode_batch(batch)), bool(batch.payloads)))
        except OSError as error:
            raise write_trouble(error, f"a log of the run {self._opening.run}") from error
