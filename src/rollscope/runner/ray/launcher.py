"""Leases tasks to actors instead of running them, and keeps the actors alive and in step.

Everything here runs on the head's loop thread. An attempt is lent to one actor; only that actor
can end it, by its id and number, so that no message that comes late or twice ends it again.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rollscope.errors import PlacementTimeout
from rollscope.runner.guard import log, quietly
from rollscope.runner.outcome import Failure, Reason, Status, describe_failure
from rollscope.runner.ray.extra import lasts, need_ray
from rollscope.runner.ray.headside import HeadTrace
from rollscope.runner.ray.inbound import Inbound
from rollscope.runner.ray.leases import recover
from rollscope.runner.ray.member import Lease, Member
from rollscope.runner.ray.packing import CallPacker, name_of
from rollscope.runner.ray.wire import LeasedCall, decode_heartbeat, decode_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.runner.kernel import Kernel
    from rollscope.runner.pausing import PauseMode
    from rollscope.runner.ray.actor import ActorSettings, Hello
    from rollscope.runner.ray.placement import Placement
    from rollscope.runner.ray.slots import SlotsGate
    from rollscope.runner.task import Task

__all__ = ["Fleet", "RayLauncher"]

_AGAIN_S: Final = 0.5
"""How long to wait after a call that failed for no lasting reason."""


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """How many actors there are, and how they are watched."""

    actors: int
    placement: Placement
    settings: Callable[[str], ActorSettings]
    """What an actor of some name is made with."""
    slots: int
    contextvars: tuple[str, ...]
    lease_s: float
    heartbeat_s: float
    silence_s: float


class RayLauncher:
    """Has tasks executed by actors."""

    def __init__(self, kernel: Kernel, fleet: Fleet, gate: SlotsGate) -> None:
        self._kernel = kernel
        self._fleet = fleet
        self._gate = gate
        self.inbound = Inbound(kernel)
        self.members: list[Member] = []
        self.handles: list[Any] = []
        """Of all actors that live or are being placed."""
        self.lost = 0
        self._new: list[Member] = []
        self._names = itertools.count()
        self._numbers = itertools.count(1)
        self._packer: CallPacker
        self._loop: asyncio.AbstractEventLoop
        self._work: set[asyncio.Task[None]] = set()
        self._flush_due = False
        self._is_ending = False
        self._epoch = 0
        self._change = 0

    # --- actors come -----------------------------------------------------------------------------

    def prepare(self) -> None:
        """Find what crosses to the actors, before there are any."""
        self._packer = CallPacker(self._fleet.contextvars)

    def make_actors(self, count: int) -> list[tuple[str, Any]]:
        """Ask for actors; the loop need not run yet."""
        made = []
        for _ in range(count):
            name = f"{self._fleet.settings('').name}{next(self._names)}"
            handle = self._fleet.placement.make_actor(self._fleet.settings(name))
            self.handles.append(handle)
            made.append((name, handle))
        return made

    def enlist(self, made: list[tuple[str, Any]], hellos: list[Hello]) -> None:
        """Use actors that are placed, as soon as the loop runs."""
        self._new += [
            Member(name, handle, hello, self._fleet.slots)
            for (name, handle), hello in zip(made, hellos, strict=True)
        ]

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Use this loop."""
        self._loop = loop
        new, self._new = self._new, []
        for member in new:
            self._join(member)

    def _join(self, member: Member) -> None:
        self.members.append(member)
        member.heard_s = time.monotonic()
        member.work = [self._spawn(self._beat(member)), self._spawn(self._listen(member))]
        pauses = self._kernel.pauses
        member.set_version.remote(self._change, self._kernel.version)
        if pauses.is_paused or self._epoch:
            member.steer.remote(
                self._epoch, is_paused=pauses.is_paused, is_holding=pauses.is_holding
            )
        self._count_slots()

    def _spawn(self, coroutine: Any) -> asyncio.Task[None]:  # noqa: ANN401
        task: asyncio.Task[None] = asyncio.Task(coroutine, loop=self._loop)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    def _count_slots(self) -> None:
        self._gate.set_capacity(sum(member.capacity for member in self.members))

    # --- work goes out ---------------------------------------------------------------------------

    def launch(self, task: Task) -> None:
        """Lease an attempt to the actor that has the most room."""
        member = min(self.members, key=lambda one: one.load)
        lease = Lease(next(self._numbers), member, task, self._kernel.clock())
        lease.expires_s = time.monotonic() + self._fleet.lease_s
        task.runs_in = lease
        try:
            call = self._pack(lease)
        except Exception as error:
            self._refuse(task, error)
            return
        member.leases[lease.number] = lease
        member.outgoing.append((lease, call))
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    def _pack(self, lease: Lease) -> LeasedCall:
        task = lease.task
        rare, started_ns = task.rare, task.started_ns
        partial = None
        if rare is not None and rare.partial is not None:
            partial = need_ray().cloudpickle.dumps(rare.partial)
        trace = self._kernel.trace
        return LeasedCall(
            lease.number,
            task.id,
            task.attempt,
            self._packer.pack_function(task.fn),
            self._packer.pack_arguments(task),
            self._packer.pack_options(task.options),
            partial,
            trace.lease(task) if isinstance(trace, HeadTrace) else {},
            None if started_ns is None else (lease.leased_ns - started_ns) * 1e-9,
        )

    def _refuse(self, task: Task, error: Exception) -> None:
        """End a task that cannot be sent."""
        failure = describe_failure(error)
        text = f"{name_of(task.fn)} cannot be sent to an actor with its arguments: {failure.text}"
        failure = Failure("data", failure.type_name, text, failure.traceback_text)
        task.finished_ns = self._kernel.clock()
        task.end(Status.FAILED, Reason.BAD_CALL, failure=failure)
        self._kernel.ended(task)

    def _flush(self) -> None:
        self._flush_due = False
        for member in self.members:
            while member.is_exchanging and member.outgoing:
                member.lease.remote(self._take_batch(member))

    def _take_batch(self, member: Member) -> bytes | None:
        if not member.outgoing:
            return None
        kernel, trace = self._kernel, self._kernel.trace
        recording = trace.recording() if isinstance(trace, HeadTrace) else None
        return member.take_batch(kernel.version, self._change, recording)

    # --- control ---------------------------------------------------------------------------------

    def stop(self, task: Task) -> None:
        """Tell the actor of an attempt to end it."""
        lease: Lease = task.runs_in
        status, reason = task.stop or (Status.CANCELLED, Reason.REQUESTED)
        if lease.is_sent:
            lease.member.cancel.remote([(lease.number, str(status), str(reason))])
            return
        member = lease.member
        member.leases.pop(lease.number, None)
        member.outgoing = [one for one in member.outgoing if one[0] is not lease]
        task.finished_ns = self._kernel.clock()
        task.end(status, reason)
        self._kernel.ended(task)

    def cancel_orphans(self) -> None:
        """End what tasks have left behind on their actors."""
        for member in self.members:
            member.cancel_orphans.remote()

    def steer(self) -> None:
        """Tell all actors whether they are paused; each confirms when it is quiet."""
        self._epoch += 1
        pauses = self._kernel.pauses
        for member in self.members:
            member.held.clear()
            member.steer.remote(
                self._epoch, is_paused=pauses.is_paused, is_holding=pauses.is_holding
            )

    def tell_version(self) -> None:
        """Tell all actors the weight version."""
        self._change += 1
        for member in self.members:
            member.set_version.remote(self._change, self._kernel.version)

    def is_quiet(self, mode: PauseMode) -> bool:
        """Whether every actor has confirmed the pause, and no task touches the engine."""
        if any(member.quiet_epoch != self._epoch for member in self.members):
            return False
        if mode != "hold":
            return not self._kernel.running
        held = {task for member in self.members for task in member.held}
        return all(task in held for task in self._kernel.running_tasks())

    # --- reports come in -------------------------------------------------------------------------

    async def _listen(self, member: Member) -> None:
        while not member.is_lost:
            await asyncio.sleep(0)  # what has ended makes room, and leases ride along
            batch = self._take_batch(member)
            member.is_exchanging = True
            if member.outgoing:
                self._flush()
            try:
                data = await member.exchange.remote(member.confirmed, batch)
            except Exception as error:
                if lasts(error):
                    self._lose(member, f"its actor has died: {_last_line(error)}")
                    return
                await asyncio.sleep(_AGAIN_S)
                continue
            finally:
                member.is_exchanging = False
            if data and not member.is_lost:
                report = decode_report(data)
                member.confirmed = report.number
                self.inbound.take(member, report)
                self._count_slots()

    async def _beat(self, member: Member) -> None:
        """Ask an actor for its heartbeat, and give it up when none comes."""
        fleet, clock = self._fleet, self._kernel.clock
        while not member.is_lost:
            asked_s, sent_ns, zombies = time.monotonic(), clock(), set(member.zombies)
            try:
                async with asyncio.timeout(member.heard_s + fleet.silence_s - asked_s):
                    data = await member.heartbeat.remote()
            except TimeoutError:
                self._lose(member, f"its actor was not heard for {fleet.silence_s:g} s")
                return
            except Exception as error:
                if lasts(error):
                    self._lose(member, f"its actor has died: {_last_line(error)}")
                    return
                await asyncio.sleep(_AGAIN_S)
                continue
            member.heard_s = time.monotonic()
            member.last = beat = decode_heartbeat(data)
            member.learn_clock(sent_ns, beat.now_ns, clock())
            self._renew(member, zombies)
            await asyncio.sleep(fleet.heartbeat_s - (time.monotonic() - asked_s))

    def _renew(self, member: Member, zombies: set[int]) -> None:
        """Renew the leases that an actor still holds, and take back those it knows nothing of."""
        beat, kernel = member.last, self._kernel
        assert beat is not None  # noqa: S101  (one has just come)
        now_s = time.monotonic()
        for number in beat.leased:
            lease = member.leases.get(number)
            if lease is not None:
                lease.expires_s = now_s + self._fleet.lease_s
        for seen in beat.seen:
            if seen.lease in member.leases:
                member.leases[seen.lease].seen = seen
        for number in zombies - set(beat.zombies):
            kernel.ended(member.zombies.pop(number))  # at last; what it gave is nobody's
        for lease in [one for one in member.leases.values() if one.expires_s <= now_s]:
            del member.leases[lease.number]
            recover(kernel, lease, f"its lease on {member.name} was not renewed")
        member.count_ended(0)
        self._count_slots()

    # --- actors go -------------------------------------------------------------------------------

    def _lose(self, member: Member, why: str) -> None:
        """Give an actor up: its tasks start again elsewhere, and another one takes its place."""
        if member.is_lost or self._is_ending:
            return
        log.warning(
            "the actor %s (pid %d on %s) is lost: %s", member.name, member.pid, member.node, why
        )
        member.is_lost = True
        self.lost += 1
        self.members.remove(member)
        self.handles.remove(member.handle)
        with quietly("ending a lost actor"):
            need_ray().kill(member.handle, no_restart=True)
        me = asyncio.current_task()
        for work in member.work:
            if work is not me:
                work.cancel()
        self._count_slots()
        self._kernel.leftovers.zombies.difference_update(member.zombies.values())
        for lease in list(member.leases.values()):
            recover(self._kernel, lease, why)
        member.leases.clear()
        self._kernel.signal()
        self._spawn(self._replace())

    async def _replace(self) -> None:
        """Start an actor in the place of one that is lost, as soon as the cluster has room."""
        while not self._is_ending:
            try:
                (made,) = self.make_actors(1)
            except Exception as error:
                log.error("no actor can be asked for in the place of a lost one: %s", error)
                await asyncio.sleep(_AGAIN_S)
                continue
            waiting = asyncio.ensure_future(self._fleet.placement.ahello([made[1]]))
            try:
                hello = await waiting
            except PlacementTimeout as error:
                if not self.members:
                    self._kernel.die(error)
                    return
                log.error("no actor in the place of a lost one yet: %s", error)
            except Exception as error:
                log.warning("an actor died while it started: %s", error)
            else:
                self.enlist([made], hello)
                self._join(self._new.pop())
                return
            self.handles.remove(made[1])
            need_ray().kill(made[1], no_restart=True)
            await asyncio.sleep(_AGAIN_S)

    def end(self) -> list[Any]:
        """Watch over actors no more; give all that are there."""
        self._is_ending = True
        for work in list(self._work):
            self._kernel.call_loop(work.cancel)
        handles, self.handles = self.handles, []
        self.members = []
        return handles


def _last_line(error: Exception) -> str:
    """Give what an error of Ray's says in the end; before that come the actor's own frames."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__qualname__}: {lines[-1].strip()[:300]}"
