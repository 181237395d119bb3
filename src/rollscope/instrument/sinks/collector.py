"""The base of sinks that send frames to a collector elsewhere, such as a server or an actor.

A frame is written to a spool on the local disk first, which is as quick and as safe as a log; a
thread of its own delivers what is spooled and forgets what the other side has taken. So neither the
program nor its writer ever waits for a network. How frames travel is left to subclasses.
"""

from __future__ import annotations

import os
import time
import weakref
from typing import ClassVar, Final, NamedTuple

from rollscope.instrument.guard import tell_once
from rollscope.instrument.sinks import Frame, Opening
from rollscope.instrument.sinks.shipping import (
    GATHER_S,
    Busy,
    Delivery,
    Refused,
    Shipper,
    TooLarge,
)
from rollscope.instrument.sinks.spool import SEGMENT_BYTES, Spool
from rollscope.instrument.sinks.spooldir import Destination
from rollscope.instrument.sinks.spoolhome import Room, default_home, prepare_home, say_bytes

__all__ = ["Busy", "CollectorSink", "Delivery", "Refused", "TooLarge"]

_CLOSE_S: Final = 3.0
"""How long a program that ends waits for what it recorded to be delivered, at most."""
_CLOSE_SPARE_S: Final = 0.3
"""Left of the program's own patience, for saying what was not delivered."""

_sinks: weakref.WeakSet[CollectorSink] = weakref.WeakSet()
_is_hooked = False


class _Open(NamedTuple):
    """What a sink holds while it is open."""

    spool: Spool
    room: Room
    shipper: Shipper


class CollectorSink:
    """Spools every frame, and has it delivered.

    Subclasses say how: `deliver`, and if they need it, `connect` and `disconnect`. All three are
    called in one thread; `disconnect` from another one too, when a program that ends has waited for
    long enough, and is then to make a hanging `deliver` fail.

    Args:
        address: Where frames go, for messages and to tell spools apart; holds no secret.
        spool_dir: Where spools lie; in the user's state directory if not given.
        spool_mb: Bound on all spools to this address, in MiB.
    """

    gather_s: ClassVar[float] = GATHER_S
    """How long frames wait for others to go along with them; longer where each delivery is dear."""

    def __init__(
        self, address: str, *, spool_dir: str | None = None, spool_mb: float = 1024.0
    ) -> None:
        self.address = address
        self._spool_dir = spool_dir
        self._limit_bytes = int(spool_mb * 2**20)
        self._now: _Open | None = None
        self._pid = 0
        self._close_by_s: float | None = None
        self.process = b""
        """The process whose sink this is."""

    def connect(self) -> None:
        """Get ready to deliver; may block or raise."""

    def deliver(self, delivery: Delivery) -> None:
        """Hand frames over; returns once the other side has them for good.

        Raises:
            Busy: The other side wants to be left alone for a while.
            Refused: It will never take these frames.
            TooLarge: It takes fewer at a time.
            Exception: Anything else is tried again later.
        """
        raise NotImplementedError

    def disconnect(self) -> None:
        """Let go of the other side."""

    def abandon(self) -> None:
        """Let go in a forked child of what the parent uses; without a word to the other side."""

    def open(self, opening: Opening) -> None:
        """Make the spool of this process and begin to deliver."""
        self._abandon_in_child()
        self.close()
        self._pid = os.getpid()
        self.process = opening.process
        header = opening.header
        to = Destination(
            address=self.address,
            run=opening.run,
            process=opening.process.hex(),
            host=header.host,
            pid=header.pid,
            tags=opening.tags,
        )
        home = prepare_home(self._spool_dir or default_home())
        segment_bytes = min(SEGMENT_BYTES, self._limit_bytes // 8)
        spool = Spool.make(os.path.join(home, to.process), to, segment_bytes)
        shipper = Shipper(self, spool, home, self.gather_s)
        self._now = _Open(spool, Room(home, spool, self._limit_bytes), shipper)
        _watch_forks(self)
        shipper.start()

    def write(self, frame: Frame) -> None:
        """Spool a frame; it survives this process, and is delivered by it or by another one."""
        now = self._now
        if now is None:
            raise RuntimeError("a collector's sink has to be opened before it is written to")
        now.room.check(len(frame.data))
        now.spool.write(frame.data)
        now.shipper.wake()

    def close_by(self, deadline_s: float) -> None:
        """Say until when, by `time.monotonic`, the program that closes this sink will wait."""
        self._close_by_s = deadline_s

    def close(self) -> None:
        """Deliver for a moment longer; what is left stays in the spool."""
        now, self._now = self._now, None
        if now is None:
            return
        patience_s = _CLOSE_S
        deadline_s, self._close_by_s = self._close_by_s, None
        if deadline_s is not None:
            left_s = deadline_s - time.monotonic() - _CLOSE_SPARE_S
            patience_s = max(min(patience_s, left_s), 0.0)
        now.shipper.close(patience_s)
        waiting = now.spool.waiting_bytes
        if waiting > 0:
            tell_once(
                f"spool:{now.spool.path}",
                "Rollscope has not delivered all of run %r: %s wait in %s; they are sent by "
                "the next process that records to %s, or by `rollscope ship`",
                now.spool.to.run,
                say_bytes(waiting),
                now.spool.path,
                self.address,
            )

    def _abandon_in_child(self) -> None:
        """Let go of what is the parent's, if this is a child; the fork hook may come late."""
        if self._pid in (0, os.getpid()):
            return
        self._pid, self._close_by_s = 0, None
        now, self._now = self._now, None
        if now is not None:
            now.shipper.abandon()
            now.spool.let_go()
        self.abandon()


def _watch_forks(sink: CollectorSink) -> None:
    """See to it that a forked child does not hold what is its parent's: locks and connections."""
    global _is_hooked
    _sinks.add(sink)
    if not _is_hooked:
        _is_hooked = True
        os.register_at_fork(after_in_child=_abandon_all)


def _abandon_all() -> None:
    for sink in list(_sinks):
        sink._abandon_in_child()
