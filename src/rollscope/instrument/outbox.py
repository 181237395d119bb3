"""The outbox: frames on their way to the sink, bounded, and the thread that carries them.

Sinks block: a shared file system hangs, a server is away. So the sink has a thread of its own, and
the writer only ever puts parcels here. When the bound is reached, parcels are dropped, those of
least importance and among them the oldest first, and each lost record is counted.
"""

import threading
import time
from collections import Counter, deque
from queue import SimpleQueue

from rollscope.instrument.guard import SINK_TROUBLE, tell_once
from rollscope.instrument.parcel import Parcel
from rollscope.instrument.sinks import Opening, PatientSink, Sink
from rollscope.instrument.waiting import wait_until

__all__ = ["Outbox"]

_FIRST_RETRY_S = 0.1
_LAST_RETRY_S = 5.0
_LAST_TRIES = 3
"""How often in a row a failing sink is tried once the program wants to end."""
_PARCEL_BYTES = 512
"""What a parcel takes beside its frame, so that many tiny ones do not outgrow the bound."""
_LEAST_PARCELS = 100


class Outbox:
    """A bounded queue of parcels with one thread that writes them to a sink."""

    def __init__(self, sink: Sink, opening: Opening, limit_bytes: int) -> None:
        self._sink = sink
        self._opening = opening
        self._limit_bytes = limit_bytes
        self._limit_parcels = max(limit_bytes // _PARCEL_BYTES, _LEAST_PARCELS)
        # Taken by the writer and the sink thread only. The program's own threads go without: a
        # signal handler may end the recorder inside of any of their calls, and must not then wait
        # for a thread that waits for a lock held by the call it interrupted.
        self._lock = threading.Lock()
        self._wakeups: SimpleQueue[None] = SimpleQueue()
        self._waiting: deque[Parcel] = deque()
        self._in_flight: Parcel | None = None
        self._bytes = 0
        self._dropped: Counter[str] = Counter()
        self._opened = False
        self._closing = False
        self._has_ended = False
        self._failures_at_end = 0
        self._thread = threading.Thread(target=self._carry, name="rollscope-sink", daemon=True)

    def start(self) -> None:
        """Start carrying."""
        self._thread.start()

    @property
    def is_behind(self) -> bool:
        """Whether more than what is being written waits."""
        return len(self._waiting) > 1

    def room_bytes(self) -> int:
        """Give how much of the memory bound is free."""
        return self._limit_bytes - self._bytes

    def put(self, parcel: Parcel) -> None:
        """Take a parcel; never blocks, never raises."""
        with self._lock:
            was_empty = not self._waiting
            self._waiting.append(parcel)
            self._bytes += len(parcel.frame.data)
            while self._waiting and (
                self._bytes > self._limit_bytes or len(self._waiting) > self._limit_parcels
            ):
                self._drop_least()
        if was_empty:
            self._wakeups.put(None)

    def _drop_least(self) -> None:
        # The first of the least: a deque is walked, since its middle is slow to index.
        least, parcel = min(enumerate(self._waiting), key=lambda item: item[1].importance)
        del self._waiting[least]
        self._bytes -= len(parcel.frame.data)
        self._count(parcel.contents, "slow_sink")
        tell_once(
            SINK_TROUBLE,
            "Rollscope drops records because its sink is slow or gone; the run counts them",
        )

    def _count(self, contents: dict[str, int], reason: str) -> None:
        for what, number in contents.items():
            self._dropped[f"{what}.{reason}"] += number

    def count_drop(self, contents: dict[str, int], reason: str) -> None:
        """Count records that were lost before they became a parcel."""
        with self._lock:
            self._count(contents, reason)

    def dropped(self) -> dict[str, int]:
        """Give how many records were dropped so far, by what and why."""
        with self._lock:
            return dict(self._dropped)

    def wait_empty(self, timeout_s: float) -> bool:
        """Wait until the sink has taken everything; false if it has not in time."""
        wait_until(lambda: self._is_empty() or self._has_ended, timeout_s)
        return self._is_empty()

    def _is_empty(self) -> bool:
        # Asked in this order, since a parcel goes from waiting to in flight.
        return not self._waiting and self._in_flight is None

    def close(self, timeout_s: float) -> bool:
        """Carry what waits, close the sink, end the thread; false if time ran out."""
        if isinstance(self._sink, PatientSink):
            self._sink.close_by(time.monotonic() + timeout_s)
        self._closing = True
        self._wakeups.put(None)
        return wait_until(lambda: self._has_ended, timeout_s)

    def unsent(self) -> int:
        """Count the records that wait."""
        parcels = self._waiting.copy()
        if self._in_flight is not None:
            parcels.append(self._in_flight)
        return sum(sum(parcel.contents.values()) for parcel in parcels)

    def _carry(self) -> None:
        try:
            self._carry_until_closed()
        finally:
            self._has_ended = True

    def _carry_until_closed(self) -> None:
        pause_s = _FIRST_RETRY_S
        while (parcel := self._next()) is not None:
            try:
                if not self._opened:
                    self._sink.open(self._opening)
                    self._opened = True
                self._sink.write(parcel.frame)
            except BaseException as error:  # this thread ends when it is told to, not by a sink
                self._tell(error)
                if not self._wait_to_retry(pause_s):
                    break
                pause_s = min(pause_s * 2, _LAST_RETRY_S)
                continue
            pause_s = _FIRST_RETRY_S
            self._failures_at_end = 0
            with self._lock:
                self._bytes -= len(parcel.frame.data)
                self._in_flight = None
        try:
            if self._opened:
                self._sink.close()
        except BaseException as error:  # as above; closing comes after the last write
            self._tell(error)

    def _wait_to_retry(self, pause_s: float) -> bool:
        """Wait before the next try; false if the program wants to end and enough was tried."""
        if not self._closing:
            wait_until(lambda: self._closing, pause_s)
            return True
        self._failures_at_end += 1
        if self._failures_at_end >= _LAST_TRIES:
            return False
        time.sleep(_FIRST_RETRY_S)
        return True

    def _next(self) -> Parcel | None:
        """Give the parcel to write: the one that failed before, or the oldest; None at the end."""
        while self._in_flight is None:
            with self._lock:
                if self._waiting:
                    # In flight before it waits no longer, so that it is never in neither place.
                    self._in_flight = self._waiting[0]
                    self._waiting.popleft()
                    break
            if self._closing:
                return None
            self._wakeups.get()
        return self._in_flight

    def _tell(self, error: BaseException) -> None:
        tell_once(
            SINK_TROUBLE,
            "Rollscope cannot write the run %r (%s: %s); the program is not affected, "
            "writing is tried again and what is lost is counted",
            self._opening.run,
            type(error).__name__,
            error,
        )
