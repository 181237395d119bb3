"""A run of two hosts whose clocks are apart, with the readings that a receiver takes of them.

One host has the receiver and the trainer, and its clock is the true one. The other is off and
drifts; what its processes record is on its clock, and only the round trips of their requests, which
take longer one way than the other, tell how far off it is.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

from rollscope.collect.exchange import Exchange, reading_of
from rollscope.model.batch import Batch, ClockReading
from rollscope.model.clockline import ClockLine
from tests.builders import EPOCH, SECOND, make_batch, make_columns, make_header, make_row, write_log

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rollscope.store.embedded import RunStore

MS = 1_000_000
HUB, FAR = "hub", "far"


class HostClock:
    """A wall clock that is off and drifts, and the monotonic one beside it."""

    def __init__(self, skew_ns: int = 0, drift_ppm: float = 0.0) -> None:
        self.skew_ns = skew_ns
        self.drift_ppm = drift_ppm

    def wall(self, true_ns: int) -> int:
        """Read it at a true time, counted from the beginning of the run."""
        return EPOCH + true_ns + self.skew_ns + round(true_ns * self.drift_ppm / 1e6)


class SimProcess(NamedTuple):
    """A process, and how far its monotonic clock was when the run began."""

    number: int
    host: str
    clock: HostClock
    boot_ns: int = 50 * SECOND
    role: str = "rollout"

    @property
    def id(self) -> bytes:
        return self.number.to_bytes(8)

    def mono(self, true_ns: int) -> int:
        return self.clock.wall(true_ns) - self.clock.wall(0) + self.boot_ns

    @property
    def line(self) -> ClockLine:
        return ClockLine(self.boot_ns, self.clock.wall(0))

    def header(self) -> Any:
        return make_header(
            host=self.host,
            role=self.role,
            started_ns=self.clock.wall(0),
            pid=self.number,
            start_ticks=0,
        )


class SimSpan(NamedTuple):
    """A span at its true times, and who caused it."""

    span_id: int
    process: SimProcess
    start_ns: int
    end_ns: int
    parent_id: int = 0


def read_clock(process: SimProcess, true_ns: int, out_ns: int, back_ns: int) -> ClockReading:
    """Read a clock by one round trip."""
    received_ns = true_ns + out_ns
    answered_ns = received_ns + 50_000
    exchange = Exchange(
        now_ns=0,
        sent_ns=process.mono(true_ns),
        received_ns=EPOCH + received_ns,
        answered_ns=EPOCH + answered_ns,
        back_ns=process.mono(answered_ns + back_ns),
    )
    reading = reading_of(exchange, process.id, process.line)
    assert reading is not None
    return reading


def read_often(
    process: SimProcess, until_s: int, source: random.Random, *, from_s: int = 0
) -> list[ClockReading]:
    """Read a clock every five seconds; now and then one way takes many milliseconds."""
    readings = []
    for second in range(from_s, until_s, 5):
        ways = [round(source.lognormvariate(0, 1) * 100_000) + 20_000 for _ in range(2)]
        if source.random() < 0.1:
            ways[source.randrange(2)] += source.randrange(30 * MS)
        readings.append(read_clock(process, second * SECOND, *ways))
    return readings


def write_spans(run: Path, processes: Sequence[SimProcess], spans: Sequence[SimSpan]) -> None:
    """Write the log of each process."""
    for process in processes:
        own = [span for span in spans if span.process.number == process.number]
        rows = [
            make_row(
                span.span_id,
                "work",
                parent_id=span.parent_id,
                start_ns=process.mono(span.start_ns),
                end_ns=process.mono(span.end_ns),
            )
            for span in own
        ]
        last_ns = max((span.end_ns for span in own), default=SECOND)
        batch = make_batch(
            0,
            mono_ns=process.mono(last_ns),
            process=process.id,
            clock=process.line,
            header=process.header(),
            spans=make_columns(*rows),
            end="exit",
        )
        write_log(run / "log" / f"{process.host}-{process.number}-1.rsl", [batch])


def write_readings(run: Path, number: int, readings: Sequence[ClockReading]) -> None:
    """Write the log of a receiver."""
    receiver = SimProcess(number, HUB, HostClock(), role="receiver")
    header = make_header(
        host=HUB,
        role="receiver",
        started_ns=EPOCH,
        pid=number,
        start_ticks=0,
        started_mono_ns=EPOCH,
    )
    batches: list[Batch] = []
    for place in range(0, len(readings), 20):
        part = list(readings[place : place + 20])
        batch = make_batch(
            len(batches),
            mono_ns=EPOCH + (part[-1].mono_ns - 50 * SECOND),
            process=receiver.id,
            clock=ClockLine(0, 0),
            header=header,
            readings=part,
        )
        batches.append(batch)
    write_log(run / "log" / f"{HUB}-{number}-1.rsl", batches)


def calls(
    here: SimProcess, there: SimProcess, until_s: int, source: random.Random, count: int
) -> list[SimSpan]:
    """Let two processes call each other, in turns: the called span begins a little later."""
    spans = []
    for number in range(count):
        at_ns = source.randrange(until_s * SECOND)
        way_ns = 100_000 + source.randrange(2 * MS)
        ends = (here, there) if number % 2 else (there, here)
        first = 1 + 2 * number
        spans.append(SimSpan(first, ends[0], at_ns, at_ns + 20 * MS))
        spans.append(SimSpan(first + 1, ends[1], at_ns + way_ns, at_ns + 15 * MS, first))
    return spans


class Placed(NamedTuple):
    """Where a span was drawn, against where it truly was."""

    start_ns: int
    end_ns: int
    off_ns: int


def placed(store: RunStore, spans: Sequence[SimSpan]) -> dict[int, Placed]:
    """Ask the view where spans are."""
    true = {span.span_id: span for span in spans}
    rows = store.query("SELECT span_id, start_ns, end_ns FROM spans").to_pylist()
    return {
        row["span_id"]: Placed(
            row["start_ns"],
            row["end_ns"],
            row["start_ns"] - EPOCH - true[row["span_id"]].start_ns,
        )
        for row in rows
    }


def earliest_effect(spans: Sequence[SimSpan], found: dict[int, Placed]) -> int:
    """Give how long after its cause a span was drawn at least; less than 0 if before it."""
    return min(
        found[span.span_id].start_ns - found[span.parent_id].start_ns
        for span in spans
        if span.parent_id
    )
