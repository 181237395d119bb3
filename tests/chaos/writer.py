"""A program that records at a steady rate until it is told to end, and knows what it recorded.

    python -m tests.chaos.writer --out FILE --rate 5000 --number 3

It keeps the id of every span and of its parent, and times every call itself. A call's time is split
by the kernel's own account: on a core, waiting for a core, which a busy machine makes anybody do,
and the rest, in which the call was blocked. The same is done for a block that does nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from array import array
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

import rollscope as rs
from rollscope.instrument.sinks.spooldir import SpoolDirectory
from rollscope.instrument.sinks.spoolhome import find_spools

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

__all__ = ["Calls", "Written"]

_TICK_S: Final = 0.01
_SPANS_PER_SESSION: Final = 25
_OUTER: Final = 3
"""A task, a session and a phase around the others."""
_EMPTY_EVERY: Final = 4
_DELIVERY_S: Final = 20.0
_LEFT_ALONE_NS: Final = 1_000_000
"""A call that waited for a core for less was left alone by the machine."""

_MUCH_NS: Final = 1_000_000


class Calls(msgspec.Struct):
    """How many calls there were, and the longest of each in milliseconds."""

    count: int = 0
    wall_ms: float = 0.0
    blocked_ms: float = 0.0
    """Neither on a core nor waiting for one."""
    kept_waiting_ms: float = 0.0
    """Of that, what is ours to answer for. Only one thread may run Python at a time. Whoever loses
    its core loses that right too, in a while, and whoever waits for a core while holding it makes
    all others wait. So calls are left out that waited for a core themselves, and from the rest is
    taken what other threads of the process waited for one."""
    blocked_count: int = 0
    """How many calls were blocked for more than a millisecond."""


class Written(msgspec.Struct):
    """What a writer says when it ends."""

    spans: int
    seconds: float
    late_ticks: int
    """Ticks in which it had fallen behind its rate by more than ten of them."""
    is_delivered: bool
    """Whether all was with the server when it ended."""
    span_calls: Calls
    empty_calls: Calls


class Stopwatch:
    """Times single calls of this thread, split by what the kernel says of it."""

    def __init__(self) -> None:
        self._schedule = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self._own = str(threading.get_native_id())
        self._blocked_ns: list[int] = []
        """For how long each call was blocked since others were last looked at."""
        self._others_ns: dict[str, int] = {}
        self.calls = Calls()

    def time(self, call: Callable[[], AbstractContextManager[Any]]) -> Any:
        """Enter and leave what a call gives; gives what entering gave."""
        waited = self._waited_ns()
        cpu = time.thread_time_ns()
        began = time.perf_counter_ns()
        with call() as given:
            pass
        wall = time.perf_counter_ns() - began
        cpu = time.thread_time_ns() - cpu
        waited = self._waited_ns() - waited
        blocked = max(wall - waited - cpu, 0)
        self.calls.count += 1
        self.calls.blocked_count += blocked > _MUCH_NS
        self.calls.wall_ms = max(self.calls.wall_ms, wall / 1e6)
        self.calls.blocked_ms = max(self.calls.blocked_ms, blocked / 1e6)
        if waited < _LEFT_ALONE_NS:
            self._blocked_ns.append(blocked)
        return given

    def look_at_others(self) -> None:
        """Take note of how long the process's other threads have waited for a core by now."""
        before, self._others_ns = self._others_ns, self._others_waited_ns()
        if self._blocked_ns:
            after = self._others_ns.items()
            waited = sum(now - before[thread] for thread, now in after if thread in before)
            kept_waiting = (max(self._blocked_ns) - waited) / 1e6
            self.calls.kept_waiting_ms = max(self.calls.kept_waiting_ms, kept_waiting)
        self._blocked_ns.clear()

    def _waited_ns(self) -> int:
        return int(os.pread(self._schedule, 64, 0).split()[1])

    def _others_waited_ns(self) -> dict[str, int]:
        waited: dict[str, int] = {}
        for thread in os.listdir("/proc/self/task"):
            if thread != self._own:
                with suppress(OSError):  # it has just ended
                    said = Path(f"/proc/self/task/{thread}/schedstat").read_text()
                    waited[thread] = int(said.split()[1])
        return waited

    def close(self) -> None:
        """Let go of the kernel's account."""
        os.close(self._schedule)


class Writer:
    """Records sessions of a few dozen spans."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._sessions = 0
        self.ids = array("Q")
        """Of each span its own id and its parent's, one after the other."""
        self.spans_watch, self.empty_watch = Stopwatch(), Stopwatch()

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
                    self._keep(self.spans_watch.time(lambda at=number: rs.span("work", at=at)))  # type: ignore[misc]
                    if number % _EMPTY_EVERY == 0:
                        self.empty_watch.time(nullcontext)
            session.finish("accepted", reward=1.0)
        self._look_at_others()

    def _look_at_others(self) -> None:
        for watch in (self.spans_watch, self.empty_watch):
            watch.look_at_others()

    def _keep(self, span: rs.Span) -> None:
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


def write(number: int, rate: int, stopping: threading.Event) -> tuple[Writer, float, int]:
    """Record at a rate until told to stop."""
    writer, late = Writer(number), 0
    began = time.perf_counter()
    while not stopping.is_set():
        due = int((time.perf_counter() - began) * rate) - writer.recorded
        late += due > 10 * rate * _TICK_S + _SPANS_PER_SESSION
        for _ in range(due // _SPANS_PER_SESSION):
            writer.record_session()
        time.sleep(_TICK_S)
    return writer, time.perf_counter() - began, late


def main() -> None:
    """Record, say what was recorded, and end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rate", type=int, required=True)
    parser.add_argument("--number", type=int, required=True)
    options = parser.parse_args()
    stopping = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        stopping.set()

    threading.Thread(target=listen, daemon=True).start()
    rs.init(role="writer", rank=options.number)
    writer, seconds, late = write(options.number, options.rate, stopping)
    is_delivered = _wait_for_delivery(os.environ["ROLLSCOPE_SPOOL_DIR"])
    rs.shutdown()
    with options.out.open("wb") as file:
        writer.ids.tofile(file)
    written = Written(
        spans=writer.recorded,
        seconds=seconds,
        late_ticks=late,
        is_delivered=is_delivered,
        span_calls=writer.spans_watch.calls,
        empty_calls=writer.empty_watch.calls,
    )
    for watch in (writer.spans_watch, writer.empty_watch):
        watch.close()
    sys.stdout.write(msgspec.json.encode(written).decode())


if __name__ == "__main__":
    main()
