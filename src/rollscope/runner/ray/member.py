"""One actor as the head sees it: its leases, its clock, how fast it is, when it was last heard."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from rollscope.runner.ray.placement import control
from rollscope.runner.ray.wire import MAX_BATCH, LeaseBatch, encode
from rollscope.runner.task import RUNNING

if TYPE_CHECKING:
    import asyncio

    from rollscope.runner.ray.actor import Hello
    from rollscope.runner.ray.wire import Heartbeat, LeasedCall, Seen
    from rollscope.runner.task import Task

__all__ = ["ActorReport", "Lease", "Member"]

_AHEAD_S: Final = 0.04
"""Work that an actor has beyond its slots: as much as it ends while a message goes to and fro."""
_AHEAD_MOST: Final = 64
_WINDOW_S: Final = 0.1


class ActorReport(msgspec.Struct, frozen=True, kw_only=True):
    """One actor, as it was at its last heartbeat."""

    name: str
    state: Literal["live", "lost"]
    node: str
    pid: int
    leased: int
    running: int
    finished: int
    loop_lag_s: float
    heard_s: float
    """How long ago the last heartbeat came."""


class Lease:
    """One attempt, lent to one actor."""

    __slots__ = (
        "actor",
        "expires_s",
        "has_started",
        "is_ending",
        "is_sent",
        "leased_ns",
        "member",
        "number",
        "seen",
        "task",
    )

    def __init__(self, number: int, member: Member, task: Task, leased_ns: int) -> None:
        self.number = number
        self.actor = member.name
        self.member = member
        self.task = task
        self.leased_ns = leased_ns
        self.expires_s = 0.0
        self.is_sent = False
        self.has_started = False
        self.is_ending = False
        """Its actor has reported its end, and its value is on the way."""
        self.seen: Seen | None = None

    @property
    def is_current(self) -> bool:
        """Whether its task still waits for this very attempt."""
        return self.task.state == RUNNING and self.task.runs_in is self


class Member:
    """A live actor."""

    def __init__(self, name: str, handle: Any, hello: Hello, slots: int) -> None:  # noqa: ANN401
        self.name = name
        self.handle = handle
        self.pid, self.node = hello.pid, hello.node
        self.exchange = handle.exchange
        self.lease = handle.lease.options(num_returns=0)
        self.fetch = handle.fetch.options(num_returns=2)
        self.heartbeat = control(handle.heartbeat)
        self.cancel = control(handle.cancel, num_returns=0)
        self.steer = control(handle.steer, num_returns=0)
        self.set_version = control(handle.set_version, num_returns=0)
        self.cancel_orphans = control(handle.cancel_orphans, num_returns=0)
        self.leases: dict[int, Lease] = {}
        self.outgoing: list[tuple[Lease, LeasedCall]] = []
        self.is_lost = False
        self.is_exchanging = False
        """A call for its next report is under way, so leases need a message of their own."""
        self.confirmed = 0
        self.quiet_epoch = 0
        self.zombies: dict[int, Task] = {}
        """Attempts that still run there, although they were given up."""
        self.held: set[Task] = set()
        """Tasks that wait there at a pause point."""
        self.work: list[asyncio.Task[None]] = []
        self.heard_s = time.monotonic()
        self.last: Heartbeat | None = None
        self._slots = slots
        self._rate = 0.0
        self._ended = 0
        self._window_s = self.heard_s
        self._offset_ns = 0
        self._round_trip_ns: int | None = None

    @property
    def capacity(self) -> int:
        """How many leases it is given: its slots, and what keeps them busy meanwhile."""
        return self._slots + min(_AHEAD_MOST, round(self._rate * _AHEAD_S))

    @property
    def load(self) -> float:
        """How full it is."""
        return len(self.leases) / self._slots

    def count_ended(self, count: int) -> None:
        """Keep track of how fast it is."""
        self._ended += count
        spent_s = time.monotonic() - self._window_s
        if spent_s >= _WINDOW_S:
            self._rate = (self._rate + self._ended / spent_s) / 2
            self._ended, self._window_s = 0, time.monotonic()

    def learn_clock(self, sent_ns: int, there_ns: int, back_ns: int) -> None:
        """Compare clocks by a call's round trip; the quickest one tells the most.

        A reading from within the round trip is of our own clock, since it is on the same host:
        those of two hosts, which count from when each was started, do not meet by chance.
        """
        round_trip_ns = back_ns - sent_ns
        if self._round_trip_ns is None or round_trip_ns < self._round_trip_ns:
            self._round_trip_ns = round_trip_ns
            is_ours = sent_ns <= there_ns <= back_ns
            self._offset_ns = 0 if is_ours else (sent_ns + back_ns) // 2 - there_ns

    def here_ns(self, there_ns: int, earliest_ns: int, latest_ns: int) -> int:
        """Move a time of its clock to ours, between what is known for certain."""
        return min(max(there_ns + self._offset_ns, earliest_ns), latest_ns)

    def take_batch(
        self, version: int | None, change: int, recording: dict[str, Any] | None
    ) -> bytes:
        """Take a message's worth of leases that wait to be sent."""
        batch, self.outgoing = self.outgoing[:MAX_BATCH], self.outgoing[MAX_BATCH:]
        for lease, _ in batch:
            lease.is_sent = True
        return encode(LeaseBatch([call for _, call in batch], version, change, recording))

    def describe(self) -> ActorReport:
        """Tell about it."""
        last = self.last
        return ActorReport(
            name=self.name,
            state="lost" if self.is_lost else "live",
            node=self.node,
            pid=self.pid,
            leased=len(self.leases),
            running=0 if last is None else last.running,
            finished=0 if last is None else last.finished,
            loop_lag_s=0.0 if last is None else last.loop_lag_s,
            heard_s=time.monotonic() - self.heard_s,
        )
