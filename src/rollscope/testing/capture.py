"""Capturing what a program records, in memory, for assertions."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rollscope.instrument import default
from rollscope.instrument.sinks.memory import MemorySink
from rollscope.instrument.tracer import Tracer
from rollscope.model.batch import Batch, decode_batch
from rollscope.model.clockline import ClockMap
from rollscope.model.frames import scan_frames
from rollscope.model.records import Record, SpanRecord
from rollscope.model.unpack import batch_records
from rollscope.store.fold import Folded, fold

__all__ = ["Capture", "capture"]


class Capture:
    """What was recorded so far."""

    def __init__(self, tracer: Tracer, sink: MemorySink) -> None:
        self.tracer = tracer
        self.sink = sink

    def batches(self) -> list[Batch]:
        """Give every batch, after writing what waits."""
        self.tracer.flush()
        return [
            decode_batch(body)
            for frame in self.sink.frames
            for body in scan_frames(frame.data).bodies
        ]

    def records(self) -> list[Record]:
        """Give every record in the order of writing."""
        clocks: dict[bytes, ClockMap] = {}
        return [
            record
            for batch in self.batches()
            for record in batch_records(batch, clocks.setdefault(batch.process, ClockMap()))
        ]

    def fold(self) -> Folded:
        """Give the run as it is known: one record per span, facts applied."""
        return fold(self.records())

    def spans(self) -> list[SpanRecord]:
        """Give one record per span, in order of their start."""
        return sorted(self.fold().spans.values(), key=lambda span: (span.start_ns, span.span_id))

    def named(self, name: str) -> SpanRecord:
        """Give the one span of a name."""
        found = [span for span in self.spans() if span.name == name]
        if len(found) != 1:
            raise LookupError(f"{len(found)} spans are called {name!r}, not one")
        return found[0]


@contextmanager
def capture(**settings: Any) -> Iterator[Capture]:
    """Record with the default tracer into memory for the length of a block."""
    sink = MemorySink()
    tracer = default.init(sink=sink, **settings)
    try:
        yield Capture(tracer, sink)
    finally:
        default.shutdown()
