"""Writing a simulated run as the logs that real processes would have left."""

import time
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from rollscope._version import __version__
from rollscope.instrument.encoder import encode_rows
from rollscope.instrument.sinks import Frame, Opening
from rollscope.instrument.sinks.file import FileSink
from rollscope.model.batch import (
    SCHEMA_VERSION,
    Batch,
    Fact,
    Heartbeat,
    ProcessHeader,
    Stack,
    encode_batch,
    number_column,
)
from rollscope.model.clockline import ClockLine
from rollscope.model.frames import pack_frame
from rollscope.model.kinds import KIND_CODES, STATUS_CODES, WHAT_OF_CODE, Kind, Status
from rollscope.model.refs import span_hex
from rollscope.testing.shape import RunShape, RunTruth
from rollscope.testing.simprocess import Process, SimSpan
from rollscope.testing.simulate import Simulation

__all__ = ["generate_run"]

_OPEN = STATUS_CODES[Status.OPEN]
_SESSION = KIND_CODES[Kind.SESSION]
_ATTR_BYTES = 4096
_KNOWN_AT_START = frozenset({"lane", "version_start"})


def generate_run(path: Path, shape: RunShape | None = None, *, ends_now: bool = False) -> RunTruth:
    """Write a run that looks like a real one and give what is true of it.

    Args:
        path: The run directory to make.
        shape: What the run looks like.
        ends_now: Place the run in time so that its last record is now, as a live run's is.
    """
    shape = shape or RunShape()
    if ends_now:
        shape = msgspec.structs.replace(shape, start_ns=time.time_ns() - _length_ns(shape))
    simulation = Simulation(shape)
    logs = [_ProcessLog(path, process, shape) for process in simulation.processes]
    truth = RunTruth(processes=len(logs))
    counts: Counter[str] = Counter()
    for _ in simulation.steps():
        for log in logs:
            log.write_step(counts, truth)
    # Sessions that hang may do so after the trainer's last step.
    end = max([simulation.now, *(log.last for log in logs)])
    for log in logs:
        log.finish(end)
    truth.spans = dict(counts)
    truth.end_ns = shape.start_ns + end
    return truth


def _length_ns(shape: RunShape) -> int:
    simulation = Simulation(shape)
    for _ in simulation.steps():
        for process in simulation.processes:
            process.clear()
    return simulation.now


class _ProcessLog:
    """The log of one simulated process: its clocks, its frames, what it left open."""

    def __init__(self, path: Path, process: Process, shape: RunShape) -> None:
        self._process = process
        self._shape = shape
        self._tick_ns = int(shape.drain_s * 1e9)
        self._offsets = shape.clock_offsets_s or (0.0,)
        host = int(process.host.rpartition("-")[2])
        wall_ns = shape.start_ns + int(self._offsets[host % len(self._offsets)] * 1e9)
        # Monotonic clocks start anywhere; a reader must not compare those of two processes.
        self._clock = ClockLine(5_000_000_000 + process.index * 777_000_000_000, wall_ns)
        self._id = process.index.to_bytes(8)
        self._number = 0
        self.last = 0
        """When it last wrote."""
        self._open: set[int] = set()
        self._sink = FileSink()
        header = ProcessHeader(
            host=process.host,
            pid=4000 + process.index,
            role=process.role,
            rank=process.rank,
            started_ns=self._clock.wall_ns,
            started_mono_ns=self._clock.mono_ns,
            heartbeat_s=1.0,
            python="3.11.7",
            version=__version__,
        )
        tags = {"generator": f"seed {shape.seed}"}
        self._sink.open(Opening(path.name, str(path.parent), self._id, header, tags))
        self._write(0, header=header)

    def _write(self, at: int, **parts: Any) -> None:
        batch = Batch(
            schema=SCHEMA_VERSION,
            process=self._id,
            number=self._number,
            mono_ns=self._clock.mono_ns + at,
            clock=self._clock,
            **parts,
        )
        self._number += 1
        self.last = max(self.last, at)
        self._sink.write(Frame(pack_frame(encode_batch(batch))))

    def write_step(self, counts: Counter[str], truth: RunTruth) -> None:
        """Write what the process recorded since the last call."""
        process = self._process
        self._write_told()
        timed = [item for span in process.spans for item in self._rows_of(span, counts, truth)]
        timed.sort(key=lambda item: item[0])
        for chunk in self._chunks(timed):
            rows = [entry for _, row in chunk for entry in row]
            self._write(chunk[-1][0], spans=encode_rows(rows, _ATTR_BYTES), drained=True)
        facts = [
            Fact(fact.trace_id, fact.span_id, self._clock.mono_ns + fact.time, fact.facts)
            for fact in process.facts
        ]
        for fact in process.facts:
            if "outcome" in fact.facts:
                self._count_outcome(fact.facts["outcome"], truth)
        if facts:
            self._write(process.facts[-1].time, facts=facts)
        process.clear()

    def _write_told(self) -> None:
        """Write the metrics and stacks that the process lived to tell."""
        process = self._process
        ends = process.dies_at
        for at, metric in process.metrics:
            if ends is None or at <= ends:
                self._write(at, metrics=[metric])
        origin = self._clock.mono_ns
        for stack in process.stacks:
            if ends is None or stack.time <= ends:
                told = Stack(stack.span_id, origin + stack.time, "Task-1", stack.frames)
                self._write(stack.time, stacks=[told])

    def _rows_of(
        self, span: SimSpan, counts: Counter[str], truth: RunTruth
    ) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Give the start record, if a drain found the span open, and the end, if it was reached."""
        dies_at = self._process.dies_at
        drained = (span.start // self._tick_ns + 1) * self._tick_ns
        is_announced = span.end is None or drained <= span.end
        has_start = is_announced and (dies_at is None or drained <= dies_at)
        has_end = span.end is not None and (dies_at is None or span.end <= dies_at)
        if has_start or has_end:
            self._count(span, counts, truth, has_end=has_end)
        if has_start:
            yield drained, self._row(span, None)
        if has_end and span.end is not None:
            yield span.end, self._row(span, span.end)

    def _count(
        self, span: SimSpan, counts: Counter[str], truth: RunTruth, *, has_end: bool
    ) -> None:
        kind = WHAT_OF_CODE[span.what].kind
        if kind is not None:
            counts[kind] += 1
        if not has_end:
            self._open.add(span.span_id)
        if span.what != _SESSION:
            return
        if has_end:
            if "outcome" in span.fields:
                self._count_outcome(span.fields["outcome"], truth)
        elif self._process.dies_at is None:
            truth.stuck.append(span_hex(span.span_id))
        else:
            truth.lost.append(span_hex(span.span_id))

    def _count_outcome(self, outcome: str, truth: RunTruth) -> None:
        truth.outcomes[outcome] = truth.outcomes.get(outcome, 0) + 1

    def _row(self, span: SimSpan, end: int | None) -> tuple[Any, ...]:
        origin = self._clock.mono_ns
        fields = span.fields
        if end is None:
            fields = {key: value for key, value in fields.items() if key in _KNOWN_AT_START}
        return (
            span.what,
            span.name,
            span.scope,
            span.span_id,
            span.parent_id,
            origin + span.start,
            0 if end is None else origin + end,
            _OPEN if end is None else span.status,
            span.attrs,
            fields or None,
        )

    def _chunks(
        self, timed: list[tuple[int, tuple[Any, ...]]]
    ) -> Iterator[list[tuple[int, tuple[Any, ...]]]]:
        # A drain takes all that ended and announces all that is open, so frames end with ticks.
        gathered: list[tuple[int, tuple[Any, ...]]] = []
        for _, chunk in groupby(timed, key=lambda item: -(-item[0] // self._tick_ns)):
            gathered += chunk
            if len(gathered) >= self._shape.frame_rows:
                yield gathered
                gathered = []
        if gathered:
            yield gathered

    def finish(self, now: int) -> None:
        """End the log as the process ended: in order, still running, or killed."""
        process = self._process
        if process.dies_at is None:
            beat = Heartbeat(number_column(sorted(self._open)))
            self._write(now, heartbeat=beat, end=None if self._open else "shutdown")
        self._sink.close()
