"""A program that records at a steady rate until it is told to end, and knows what it recorded.

    python -m tests.chaos.writer --out FILE --rate 5000 --number 3 [--floor]

It keeps the id of every span and of its parent, and times every call itself. Between them it times
a block that records nothing and takes as long. With `--floor` it has no recorder at all, and times
nothing but such blocks, at the same rate.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import threading
import time
from array import array
from pathlib import Path
from typing import Final, Protocol

import msgspec

import rollscope as rs
from rollscope.instrument.sinks.spooldir import SpoolDirectory
from rollscope.instrument.sinks.spoolhome import find_spools
from tests.chaos.stopwatch import Calls, Stopwatch

__all__ = ["Written"]

_TICK_S: Final = 0.01
_SPANS_PER_SESSION: Final = 25
_OUTER: Final = 3
"""A task, a session and a phase around the others."""
_SPIN_EVERY: Final = 4
_DELIVERY_S: Final = 20.0
_SPAN_NS: Final = 1_400
"""What a span takes in these programs, about."""


class Written(msgspec.Struct):
    """What a writer says when it ends."""

    spans: int
    seconds: float
    late_ticks: int
    """Ticks in which it had fallen behind its rate by more than ten of them."""
    is_delivered: bool
    """Whether all was with the server when it ended."""
    span_calls: Calls
    spin_calls: Calls
    """Of blocks that record nothing and take as long."""
    collection_ms: float
    """The longest garbage collection that went off in a thread of the recorder."""


class HasIds(Protocol):
    """A span, or what stands in for one."""

    @property
    def id(self) -> int: ...

    @property
    def parent_id(self) -> int: ...


class Spin:
    """Records nothing, and takes about as long as a span: it sees what a machine does to all."""

    id = parent_id = 0

    def __enter__(self) -> Spin:
        ends_at = time.perf_counter_ns() + _SPAN_NS
        while time.perf_counter_ns() < ends_at:
            pass
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Collections:
    """Notes the longest garbage collection that went off in a thread of the recorder."""

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self._began = 0
        self._own = threading.get_ident()
        gc.callbacks.append(self._notice)

    def _notice(self, phase: str, _: object) -> None:
        if phase == "start":
            self._began = time.thread_time_ns()
        elif threading.get_ident() != self._own:
            took_ms = (time.thread_time_ns() - self._began) / 1e6
            self.longest_ms = max(self.longest_ms, took_ms)

    def close(self) -> None:
        """Notice no more."""
        gc.callbacks.remove(self._notice)


class Writer:
    """Records sessions of a few dozen spans."""

    def __init__(self, number: int, *, is_floor: bool = False) -> None:
        self._number = number
        self._is_floor = is_floor
        self._sessions = 0
        self.ids = array("Q")
        """Of each span its own id and its parent's, one after the other."""
        self.spans_watch, self.spin_watch = Stopwatch(), Stopwatch()

    @property
    def recorded(self) -> int:
        """How many spans there are."""
        return len(self.ids) // 2

    def record_session(self) -> None:
        """Record one session; every span inside is timed."""
        self._sessions += 1
        self._look_at_others()
        key = f"chaos/{self._number}/{self._sessions}"
        with rs.task(key) as task, rs.session(sample=self._number) as session:
            with rs.phase("generate", tokens=self._sessions) as phase:
                for each in (task, session, phase):
                    self._keep(each)
                for number in range(_SPANS_PER_SESSION - _OUTER):
                    self._keep(self.spans_watch.time(lambda at=number: self._make(at)))  # type: ignore[misc]
                    if number % _SPIN_EVERY == 0:
                        self.spin_watch.time(Spin)
            session.finish("accepted", reward=1.0)
        self._look_at_others()

    def _make(self, at: int) -> Spin | rs.Span:
        return Spin() if self._is_floor else rs.span("work", at=at)

    def _look_at_others(self) -> None:
        for watch in (self.spans_watch, self.spin_watch):
            watch.look_at_others()

    def _keep(self, span: HasIds) -> None:
        self.ids.append(span.id)
        self.ids.append(span.parent_id)


def _wait_for_delivery(home: str) -> bool:
    """Wait until the server has all, which ending would not do for so long."""
    rs.flush()
    ends_at = time.monotonic() + _DELIVERY_S
    while time.monotonic() < ends_at:
        if _waiting_bytes(home) == 0:
            return True
        time.sleep(0.05)
    return False


def _waiting_bytes(home: str) -> int:
    """Give how much of this process's own spool the server does not have yet."""
    for path, to in find_spools(home):
        if to.pid == os.getpid():
            spool = SpoolDirectory(path)
            number, offset = spool.read_taken()
            sizes = [os.path.getsize(spool.segment(at)) for at in spool.segments() if at > number]
            if number in spool.segments():
                sizes.append(os.path.getsize(spool.segment(number)) - offset)
            return sum(sizes)
    return 0


def write(writer: Writer, rate: int, stopping: threading.Event) -> tuple[float, int]:
    """Record at a rate until told to stop; gives for how long, and how many ticks were late."""
    late = 0
    began = time.perf_counter()
    while not stopping.is_set():
        due = int((time.perf_counter() - began) * rate) - writer.recorded
        late += due > 10 * rate * _TICK_S + _SPANS_PER_SESSION
        for _ in range(due // _SPANS_PER_SESSION):
            writer.record_session()
        time.sleep(_TICK_S)
    return time.perf_counter() - began, late


def main() -> None:
    """Record, say what was recorded, and end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rate", type=int, required=True)
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--floor", action="store_true", help="record nothing")
    options = parser.parse_args()
    stopping = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        stopping.set()

    threading.Thread(target=listen, daemon=True).start()
    collections = Collections()
    if not options.floor:
        rs.init(role="writer", rank=options.number)
    writer = Writer(options.number, is_floor=options.floor)
    seconds, late = write(writer, options.rate, stopping)
    is_delivered = _wait_for_delivery(os.environ["ROLLSCOPE_SPOOL_DIR"])
    rs.shutdown()
    collections.close()
    with options.out.open("wb") as file:
        writer.ids.tofile(file)
    written = Written(
        spans=writer.recorded,
        seconds=seconds,
        late_ticks=late,
        is_delivered=is_delivered,
        span_calls=writer.spans_watch.calls,
        spin_calls=writer.spin_watch.calls,
        collection_ms=collections.longest_ms,
    )
    for watch in (writer.spans_watch, writer.spin_watch):
        watch.close()
    sys.stdout.write(msgspec.json.encode(written).decode())


if __name__ == "__main__":
    main()
