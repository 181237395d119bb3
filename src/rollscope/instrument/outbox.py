"""The outbox: frames on their way to the sink, bounded, and the thread that carries them.

Sinks block: a shared file system hangs, a server is away. So the sink has a thread of its own, and
the writer only ever puts parcels here. When the bound is reached, parcels are dropped, those of
least importance and among them the oldest first, and each lost record is counted.
"""

import threading
import time
from collections import Counter, deque
from enum import IntEnum
from typing import NamedTuple

from rollscope.instrument.guard import tell_once
from rollscope.instrument.sinks import Frame, Opening, Sink

__all__ = ["Importance", "Outbox", "Parcel"]

_FIRST_RETRY_S = 0.1
_LAST_RETRY_S = 5.0


class Importance(IntEnum):
    """What is dropped first when a sink is too slow."""

    ORDINARY = 0
    """Spans, states, events, metrics, payloads."""
    PHASE = 1
    OWNER = 2
    """Steps, tasks, sessions and facts about them."""
    VITAL = 3
    """Headers, heart-beats, drop counts, the end."""


class Parcel(NamedTuple):
    """A frame with what is needed to drop it honestly."""

    frame: Frame
    importance: Importance
    contents: dict[str, int]
    """How many records of what it holds."""


class Outbox:
    """A bounded queue of parcels with one thread that writes them to a sink."""

    def __init__(self, sink: Sink, opening: Opening, limit_bytes: int) -> None:
        self._sink = sink
        self._opening = opening
        self._limit_bytes = limit_bytes
        self._changed = threading.Condition()
        self._waiting: deque[Parcel] = deque()
        self._in_flight: Parcel | None = None
        self._bytes = 0
        self._dropped: Counter[str] = Counter()
        self._opened = False
        self._closing = False
        self._thread = threading.Thread(target=self._carry, name="rollscope-sink", daemon=True)

    def start(self) -> None:
        """Start carrying."""
        self._thread.start()

    @property
    def is_behind(self) -> bool:
        """Whether more than what is being written waits."""
        return len(self._waiting) > 1

    def put(self, parcel: Parcel) -> None:
        """Take a parcel; never blocks, never raises."""
        with self._changed:
            self._waiting.append(parcel)
            self._bytes += len(parcel.frame.data)
            while self._bytes > self._limit_bytes and self._waiting:
                self._drop_least()
            self._changed.notify_all()

    def _drop_least(self) -> None:
        least = min(range(len(self._waiting)), key=lambda at: (self._waiting[at].importance, at))
        parcel = self._waiting[least]
        del self._waiting[least]
        self._bytes -= len(parcel.frame.data)
        self._count(parcel.contents, "slow_sink")
        tell_once(
            "drops",
            "Rollscope drops records because its sink is slow or gone; the run counts them",
        )

    def _count(self, contents: dict[str, int], reason: str) -> None:
        for what, number in contents.items():
            self._dropped[f"{what}.{reason}"] += number

    def count_drop(self, contents: dict[str, int], reason: str) -> None:
        """Count records that were lost before they became a parcel."""
        with self._changed:
            self._count(contents, reason)

    def dropped(self) -> dict[str, int]:
        """Give how many records were dropped so far, by what and why."""
        with self._changed:
            return dict(self._dropped)

    def wait_empty(self, timeout_s: float) -> bool:
        """Wait until the sink has taken everything; false if it has not in time."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while self._waiting or self._in_flight is not None:
                left = deadline - time.monotonic()
                if left <= 0 or not self._thread.is_alive():
                    return False
                self._changed.wait(left)
        return True

    def close(self, timeout_s: float) -> bool:
        """Carry what waits, close the sink, end the thread; false if time ran out."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def unsent(self) -> int:
        """Count the records that wait."""
        with self._changed:
            parcels = [*self._waiting, *([self._in_flight] if self._in_flight else [])]
        return sum(sum(parcel.contents.values()) for parcel in parcels)

    def _carry(self) -> None:
        retry_s = _FIRST_RETRY_S
        while (parcel := self._next()) is not None:
            try:
                if not self._opened:
                    self._sink.open(self._opening)
                    self._opened = True
                self._sink.write(parcel.frame)
            except BaseException as error:
                self._tell(error)
                with self._changed:
                    if self._closing:
                        return
                    self._changed.wait_for(lambda: self._closing, retry_s)
                retry_s = min(retry_s * 2, _LAST_RETRY_S)
                continue
            retry_s = _FIRST_RETRY_S
            with self._changed:
                self._bytes -= len(parcel.frame.data)
                self._in_flight = None
                self._changed.notify_all()
        try:
            if self._opened:
                self._sink.close()
        except Exception as error:  # closing comes after the last write: nothing is lost
            self._tell(error)

    def _next(self) -> Parcel | None:
        """Give the parcel to write: the one that failed before, or the oldest; None at the end."""
        with self._changed:
            if self._in_flight is None:
                while not self._waiting:
                    if self._closing:
                        return None
                    self._changed.wait()
                self._in_flight = self._waiting.popleft()
            return self._in_flight

    def _tell(self, error: BaseException) -> None:
        tell_once(
            "sink",
            "Rollscope cannot write the run %r (%s: %s); the program is not affected, "
            "writing is tried again and what is lost is counted",
            self._opening.run,
            type(error).__name__,
            error,
        )
