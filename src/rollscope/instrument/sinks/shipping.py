"""Shipping: the thread that takes frames out of a spool and hands them to a collector.

It gathers small frames into larger requests, waits longer and longer while nobody answers, and,
when it has nothing of its own to do, delivers what dead processes left for the same address.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from rollscope.instrument.guard import tell_once
from rollscope.instrument.sinks.spool import Spool
from rollscope.instrument.sinks.spoolhome import find_spools, is_abandoned

__all__ = ["GATHER_S", "Busy", "Carrier", "Delivery", "Refused", "Shipper", "TooLarge"]

_REQUEST_BYTES: Final = 1024 * 1024
_LEAST_REQUEST_BYTES: Final = 64 * 1024
GATHER_S: Final = 0.05
"""How long frames wait for others to go along with them, unless a carrier says otherwise."""
_MOST_GATHER_S: Final = 1.0
_GATHER_TRIPS: Final = 4
"""Gather for as long as so many round trips take: a slow collector gets fewer requests."""
_FIRST_RETRY_S: Final = 0.1
_LAST_RETRY_S: Final = 5.0
_AWAY_S: Final = 3.0
"""A collector that is away for less is not worth a word."""
_DENIED_S: Final = 30.0
"""A refusal that may pass, as while a server stops, is told once it has gone on for so long."""
_MOST_SAID: Final = 500
_LOOK_AROUND_S: Final = 30.0
"""Between looks for what dead processes left."""
_LOOK_PER_SPOOL_S: Final = 0.1
"""More for each spool there is: a home directory may be shared by a thousand processes."""


class Delivery(NamedTuple):
    """Frames on their way to a collector."""

    run: str
    tags: dict[str, str]
    process: bytes
    data: bytes
    """Whole frames of one process."""


class Busy(Exception):
    """The collector wants to be left alone for a while."""

    def __init__(self, retry_after_s: float, why: str = "", *, may_pass: bool = False) -> None:
        """Keep for how long, and why.

        Args:
            retry_after_s: For how long.
            why: What somebody has to do something about.
            may_pass: Whether that is worth a word only if it goes on.
        """
        super().__init__(why or "it is busy")
        self.retry_after_s = retry_after_s
        self.why = why
        self.may_pass = may_pass


class Refused(Exception):
    """The collector will never take these frames; the message says why."""


class TooLarge(Exception):
    """The collector takes fewer frames at a time."""


class Carrier(Protocol):
    """What brings frames to a collector."""

    address: str

    def connect(self) -> None:
        """Get ready."""

    def deliver(self, delivery: Delivery) -> None:
        """Hand frames over."""

    def disconnect(self) -> None:
        """Let go."""


class Shipper:
    """Delivers one spool, and those that nobody looks after, in a thread of its own."""

    def __init__(
        self, carrier: Carrier, spool: Spool, home: str, gather_s: float = GATHER_S
    ) -> None:
        self._carrier = carrier
        self._spool = spool
        self._home = home
        self._left: Spool | None = None
        self._look_at_s = 0.0
        self._request_bytes = _REQUEST_BYTES
        self._least_gather_s = self._gather_s = gather_s
        self._is_connected = False
        self._away_since_s: float | None = None
        self._denied_since_s: float | None = None
        self._pause_s = _FIRST_RETRY_S
        self._woken = threading.Event()
        self._hurried = threading.Event()
        self._closing = threading.Event()
        self._deadline_s = float("inf")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rollscope-ship", daemon=True)

    def start(self) -> None:
        """Begin; where no thread can be had any more, at the end of a program, `close` works."""
        with suppress(RuntimeError):
            self._thread.start()

    def wake(self) -> None:
        """Say that something was written."""
        if not self._woken.is_set():
            self._woken.set()
        if self._spool.waiting_bytes >= self._request_bytes and not self._hurried.is_set():
            self._hurried.set()

    def hurry(self) -> None:
        """Have what waits delivered now, and not with what may come."""
        self._hurried.set()
        self._woken.set()

    def close(self, patience_s: float) -> None:
        """Deliver what waits, but for no longer than that; then let go of the spool."""
        self._deadline_s = time.monotonic() + patience_s
        self._closing.set()
        self.hurry()
        if self._thread.ident is None:
            self._run()
        if not self._ended.wait(patience_s):
            with suppress(Exception):
                self._carrier.disconnect()  # so that the thread ends, and not only the program

    def abandon(self) -> None:
        """Let go in a forked child, where the thread does not exist."""
        if self._left is not None:
            self._left.let_go()

    def _run(self) -> None:
        try:
            while not self._is_over():
                try:
                    self._turn()
                except Exception as error:  # no descriptor left to read the spool with, say
                    self._wait(self._fail(error))
        finally:
            self._leave_left()
            with suppress(Exception):
                self._carrier.disconnect()
            with suppress(OSError):  # as above; the next process looks again
                self._spool.release()
            self._ended.set()

    def _is_over(self) -> bool:
        if not self._closing.is_set():
            return False
        return self._spool.waiting_bytes <= 0 or time.monotonic() >= self._deadline_s

    def _turn(self) -> None:
        self._woken.clear()
        if self._spool.waiting_bytes:
            self._gather()
            self._wait(self._ship(self._spool))
        elif self._find_left():
            self._ship_left()
        else:
            self._woken.wait(max(self._look_at_s - time.monotonic(), 0.0))

    def _gather(self) -> None:
        """Wait for more, if little waits and nothing is urgent."""
        if self._spool.waiting_bytes < self._request_bytes:
            self._hurried.clear()
            if not self._closing.is_set():
                self._hurried.wait(self._gather_s)

    def _ship(self, spool: Spool) -> float:
        """Deliver one request's worth; gives how long to wait before the next."""
        data = spool.peek(self._request_bytes)
        if not data:
            return 0.0
        to = spool.to
        started_s = time.monotonic()
        try:
            self._connect()
            self._carrier.deliver(Delivery(to.run, to.tags, bytes.fromhex(to.process), data))
        except Busy as busy:
            self._tell_denied(busy)
            return busy.retry_after_s
        except Refused as refusal:
            self._set_aside(spool, data, str(refusal))
        except TooLarge:
            self._ask_for_less(spool, data)
        except BaseException as error:  # this thread ends when it is told to, not by a carrier
            return self._fail(error)
        else:
            spool.take()
        self._away_since_s = self._denied_since_s = None
        self._pause_s = _FIRST_RETRY_S
        took_s = time.monotonic() - started_s
        self._gather_s = min(max(self._least_gather_s, _GATHER_TRIPS * took_s), _MOST_GATHER_S)
        return 0.0

    def _tell_denied(self, busy: Busy) -> None:
        now_s = time.monotonic()
        if self._denied_since_s is None:
            self._denied_since_s = now_s
        may_yet_pass = busy.may_pass and now_s - self._denied_since_s < _DENIED_S
        if busy.why and not may_yet_pass:
            tell_once(
                "denied" if busy.may_pass else f"denied:{busy.why}",
                "Rollscope cannot deliver to %s: %s; what is recorded is kept in %s, and this is "
                "tried again every %g s",
                self._carrier.address,
                _one_line(busy.why),
                self._home,
                busy.retry_after_s,
            )

    def _ask_for_less(self, spool: Spool, data: bytes) -> None:
        if self._request_bytes > _LEAST_REQUEST_BYTES:
            self._request_bytes //= 2
        else:
            self._set_aside(spool, data, "a frame is too large for it")
            self._request_bytes = _REQUEST_BYTES

    def _connect(self) -> None:
        if not self._is_connected:
            self._carrier.connect()
            self._is_connected = True

    def _fail(self, error: BaseException) -> float:
        """Take note of a failure; gives how long to wait, which is longer each time."""
        self._is_connected = False
        with suppress(Exception):
            self._carrier.disconnect()
        now_s = time.monotonic()
        if self._away_since_s is None:
            self._away_since_s = now_s
        if now_s - self._away_since_s >= _AWAY_S:
            tell_once(
                "collector:away",
                "Rollscope cannot reach %s (%s: %s); what is recorded is kept in %s and sent when "
                "it answers",
                self._carrier.address,
                type(error).__name__,
                _one_line(error),
                self._home,
            )
        if self._closing.is_set():
            self._deadline_s = 0.0  # it was tried once more, and that is enough
        pause_s = self._pause_s * (0.5 + os.urandom(1)[0] / 512)  # not all processes at once
        self._pause_s = min(2 * self._pause_s, _LAST_RETRY_S)
        return pause_s

    def _wait(self, pause_s: float) -> None:
        """Wait before the next try; a program that ends waits only if there will be one."""
        if not self._closing.is_set():
            self._closing.wait(pause_s)
        elif time.monotonic() + pause_s < self._deadline_s:
            time.sleep(pause_s)
        else:
            self._deadline_s = 0.0

    def _set_aside(self, spool: Spool, data: bytes, why: str) -> None:
        kept = spool.set_aside(data)
        tell_once(
            f"refused:{why}",
            "Rollscope's records were refused by %s: %s; %s",
            self._carrier.address,
            _one_line(why),
            "they are lost" if kept is None else f"they are kept in {os.path.dirname(kept)}",
        )

    def _find_left(self) -> bool:
        """Look, once in a while, for the spool of a dead process; say whether there is one."""
        if self._left is not None:
            return True
        if self._closing.is_set() or time.monotonic() < self._look_at_s:
            return False
        number = 0
        for path, to in find_spools(self._home):
            number += 1
            if path == self._spool.path or to.address != self._carrier.address:
                continue
            left = Spool.claim(path) if is_abandoned(path, to) else None
            if left is not None and left.waiting_bytes:
                self._left = left
                return True
            if left is not None:
                left.release()
        self._look_at_s = time.monotonic() + _LOOK_AROUND_S + number * _LOOK_PER_SPOOL_S
        return False

    def _ship_left(self) -> None:
        left = self._left
        if left is None:
            return
        if self._ship(left) > 0:
            # It may be of a run that this collector does not take, so our own must not wait for it.
            self._look_at_s = time.monotonic() + _LOOK_AROUND_S
            self._leave_left()
        elif not left.waiting_bytes:
            self._leave_left()

    def _leave_left(self) -> None:
        left, self._left = self._left, None
        if left is not None:
            with suppress(OSError):
                left.release()


def _one_line(said: object) -> str:
    """Give what the other side said, which may be anything, as a line for the program's log."""
    text = "".join(each if each.isprintable() else " " for each in str(said)[:_MOST_SAID])
    return " ".join(text.split())
