"""The leases of one actor: taken in, run on its runner, told about, stopped, handed back.

Everything here runs on the loop that the tasks run on.
"""

from __future__ import annotations

import asyncio
import pickle
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from rollscope.runner.guard import log
from rollscope.runner.outcome import Failure, Reason, Status, describe_failure
from rollscope.runner.ray.guest import GuestRunner
from rollscope.runner.ray.mailbox import Mailbox
from rollscope.runner.ray.packing import Unpacker, name_of, pack_value, unpack_arguments
from rollscope.runner.ray.wire import Done, Quiet, Saved, Start
from rollscope.runner.task import QUEUED, Task

if TYPE_CHECKING:
    from rollscope.runner.outcome import Outcome
    from rollscope.runner.ray.wire import LeaseBatch, LeasedCall
    from rollscope.runner.task import TaskOptions

__all__ = ["Lodging"]

_EARLY_CANCELS: Final = 4_096
_QUEUED_NS: Final = 1_000_000_000
"""A lease that found no slot for so long is handed back: another actor may have one."""


class Lodging:
    """Keeps the tasks that an actor has on lease."""

    def __init__(self, actor: str, **settings: Any) -> None:
        """Begin with nothing.

        Args:
            actor: What the actor is called.
            **settings: For its runner.
        """
        self._actor = actor
        self.runner = GuestRunner(self, name=actor, **settings)
        self.mailbox = Mailbox()
        self.leases: dict[int, int] = {}
        """Numbers of the leases that are held, by task."""
        self.zombies: dict[int, Task] = {}
        self.large: dict[int, Any] = {}
        """Values that the head has yet to fetch."""
        self.finished = 0
        self._unpacker = Unpacker()
        self._cancelled: OrderedDict[int, tuple[Status, Reason]] = OrderedDict()
        """Told to stop before their lease arrived."""
        self._behind: dict[int, LeasedCall] = {}
        """Attempts that wait for an earlier one of the same task to end."""
        self._returning: set[int] = set()
        self._epoch = 0
        self._change = -1
        self._warned: set[str] = set()
        self._watching: set[asyncio.Task[None]] = set()

    # --- leases come -----------------------------------------------------------------------------

    def take(self, batch: LeaseBatch) -> None:
        """Take leases in."""
        self.learn_version(batch.change, batch.version)
        self._submit([task for call in batch.calls if (task := self._accept(call)) is not None])

    def _submit(self, tasks: list[Task]) -> None:
        kernel = self.runner._kernel
        with kernel.lock:
            is_first = self.runner._enlist(tasks)
        if is_first:
            kernel.call_loop(kernel.turn)

    def _accept(self, call: LeasedCall) -> Task | None:
        """Make a task of a lease; None if it is not to run, or not yet."""
        kernel = self.runner._kernel
        told = self._cancelled.pop(call.lease, None)
        if told is not None:
            self.mailbox.done(Done(call.lease, *told, kernel.clock()))
        elif self.leases.get(call.id) == call.lease:
            pass  # its message came twice
        elif kernel.pauses.is_paused:
            self.mailbox.returned(call.lease)
        elif call.id in self.leases:
            self._behind[call.id] = call
            kernel.stops.stop(kernel.live[call.id], Status.CANCELLED, Reason.REQUESTED)
        else:
            return self._make_task(call)
        return None

    def _make_task(self, call: LeasedCall) -> Task | None:
        try:
            function = self._unpacker.unpack(call.function)
            options: TaskOptions = self._unpacker.unpack(call.options)
            args, kwargs, context = unpack_arguments(call.arguments)
            partial = None if call.partial is None else pickle.loads(call.partial)  # noqa: S301
        except Exception as error:
            said = describe_failure(error)
            text = (
                f"the call cannot be read on the actor {self._actor}: {said.text}; "
                f"is its module installed there?"
            )
            done = Done(call.lease, Status.FAILED, Reason.BAD_CALL, self.runner._clock())
            done.failure = Failure("data", said.type_name, text, said.traceback_text)
            self.mailbox.done(done)
            return None
        now_ns = self.runner._clock()
        task = Task(function, args, kwargs, context, options, now_ns)
        task.id, task.span = call.id, call.carrier
        self.leases[call.id] = call.lease
        if partial is not None:
            task.more().partial = partial
        if call.attempt > 1:
            task.more().attempt = call.attempt
        if call.spent_s is not None:
            task.more().started_ns = now_ns - int(call.spent_s * 1e9)
        return task

    # --- told by the head ------------------------------------------------------------------------

    def cancel(self, orders: list[tuple[int, str, str]]) -> None:
        """Tell attempts to stop, each with a status and a reason."""
        kernel = self.runner._kernel
        task_of = {lease: task_id for task_id, lease in self.leases.items()}
        behind_of = {call.lease: call for call in self._behind.values()}
        for lease, status, reason in orders:
            why = (Status(status), Reason(reason))
            if lease in task_of:
                kernel.stops.stop(kernel.live[task_of[lease]], *why)
                continue
            # The call may have overtaken its lease; one for an attempt that has ended is never
            # looked at, and goes when there are too many.
            self._cancelled[lease] = why
            if lease in behind_of:
                self._accept(self._behind.pop(behind_of[lease].id))
        while len(self._cancelled) > _EARLY_CANCELS:
            self._cancelled.popitem(last=False)

    def return_old(self) -> None:
        """Hand leases back that have waited for a slot for long."""
        self._return_queued(_QUEUED_NS)

    def _return_queued(self, waiting_ns: int) -> None:
        kernel = self.runner._kernel
        since_ns = kernel.clock() - waiting_ns
        with kernel.lock:
            waiting = [
                task
                for task in kernel.live.values()
                if task.state == QUEUED and task.submitted_ns <= since_ns
            ]
        if waiting:
            self._returning = {task.id for task in waiting}
            kernel.stops.end_waiting(waiting, Status.CANCELLED, Reason.REQUESTED)
            self._returning = set()

    def learn_version(self, change: int, version: int | None) -> None:
        """Note the weight version, unless a later one is known."""
        if version is not None and change > self._change:
            self._change = change
            self.runner.set_version(version)

    def steer(self, epoch: int, *, is_paused: bool, is_holding: bool) -> None:
        """Pause or resume; a pause is confirmed when it is quiet."""
        if epoch <= self._epoch:  # overtaken by a later one
            return
        self._epoch = epoch
        self.runner.resume(all=True)
        if is_paused:
            pause = self.runner.pause("head", "hold" if is_holding else "finish")
            self._return_queued(0)
            watching = asyncio.get_running_loop().create_task(self._await_quiet(epoch, pause))
            self._watching.add(watching)
            watching.add_done_callback(self._watching.discard)

    async def _await_quiet(self, epoch: int, pause: Any) -> None:  # noqa: ANN401  (a `Pause`)
        await pause.aquiesced()
        if epoch == self._epoch:
            held = [self.leases[task.id] for task in self.runner._kernel.pauses.held]
            self.mailbox.quiet(Quiet(epoch, held))

    # --- told by the runner ----------------------------------------------------------------------

    def note_start(self, task: Task) -> None:
        """Tell the head that an attempt has begun."""
        assert task.attempt_ns is not None  # noqa: S101  (it has just been set)
        self.mailbox.started(Start(self.leases[task.id], task.attempt_ns, task.version_start))

    def note_checkpoint(self, task: Task) -> None:
        """Send the head what a later attempt can go on from, as it is now."""
        lease = self.leases.get(task.id)
        if lease is None:  # given up, and still at it
            return
        state = task.more().partial
        try:
            data = pack_value(state, large_bytes=None).data
        except Exception as error:
            name = name_of(task.fn)
            if name not in self._warned:
                self._warned.add(name)
                log.warning("a checkpoint of %s cannot be sent to the head: %s", name, error)
            return
        assert data is not None  # noqa: S101  (no limit was given)
        self.mailbox.saved(Saved(lease, data))

    def note_end(self, task: Task, outcome: Outcome) -> None:
        """Tell the head how an attempt ended, or hand it back."""
        lease = self.leases.pop(task.id)
        if task.id in self._returning:
            self.mailbox.returned(lease)
        else:
            self.finished += 1
            self.mailbox.done(self._describe(lease, task, outcome))
        behind = self._behind.pop(task.id, None)
        if behind is not None:
            self.runner._kernel.call_loop(lambda: self._go_on_with(behind))

    def _describe(self, lease: int, task: Task, outcome: Outcome) -> Done:
        done = Done(
            lease,
            outcome.status,
            outcome.reason,
            outcome.finished_ns,
            task.attempt_ns,
            failure=outcome.error,
            detail=outcome.detail,
            version=outcome.version_start,
            versions=outcome.versions[1:],
            is_zombie=task in self.runner._kernel.leftovers.zombies,
        )
        if done.is_zombie:
            self.zombies[lease] = task
        self._add_value(done, outcome.value)
        return done

    def _add_value(self, done: Done, value: object) -> None:
        try:
            packed = pack_value(value)
        except Exception as error:
            said = describe_failure(error)
            text = (
                f"the task returned a {type(value).__qualname__}, which cannot be sent to the "
                f"head: {said.text}; return plain data"
            )
            done.status, done.reason = Status.FAILED, Reason.EXCEPTION
            done.failure = Failure("data", said.type_name, text, said.traceback_text)
            return
        if packed.data is None:
            self.large[done.lease] = value
            done.stored_bytes = packed.size
        else:
            done.value = packed.data

    def _go_on_with(self, call: LeasedCall) -> None:
        task = self._accept(call)
        if task is not None:
            self._submit([task])

    # --- what is held ----------------------------------------------------------------------------

    def held(self) -> list[int]:
        """Give the leases that are held; from any thread."""
        waiting = [call.lease for call in list(self._behind.values())]
        return [*list(self.leases.values()), *waiting, *list(self.large)]

    def living_zombies(self) -> list[int]:
        """Give the leases of attempts that were given up and still run; from any thread."""
        living = self.runner._kernel.leftovers.zombies
        self.zombies = {lease: task for lease, task in self.zombies.items() if task in living}
        return list(self.zombies)
