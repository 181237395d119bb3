"""Takes in what actors report: starts, checkpoints, ends, leases handed back."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rollscope.runner.guard import log
from rollscope.runner.outcome import Failure, Reason, Status, describe_failure
from rollscope.runner.ray.extra import lasts, need_ray
from rollscope.runner.ray.leases import hand_back, recover
from rollscope.runner.ray.values import StoredValue
from rollscope.runner.ray.wire import Start
from rollscope.runner.task import DONE

if TYPE_CHECKING:
    from rollscope.runner.kernel import Kernel
    from rollscope.runner.ray.member import Lease, Member
    from rollscope.runner.ray.wire import Done, Report, Saved

__all__ = ["Inbound"]


class Inbound:
    """Turns reports into what the kernel is told; belongs to the loop thread."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.doubled = 0
        """Ends of attempts that had ended already, or run elsewhere by now."""
        self._fetching: set[asyncio.Task[None]] = set()

    def take(self, member: Member, report: Report) -> None:
        """Take a report in."""
        for start in report.starts:
            self._start(member, start)
        for saved in report.saved:
            self._save(member, saved)
        for done in report.done:
            self._end(member, done)
        for number in report.returned:
            lease = member.leases.pop(number, None)
            if lease is not None:
                hand_back(self._kernel, lease)
        if report.quiet is not None:
            member.quiet_epoch = report.quiet.epoch
            held = [member.leases[one] for one in report.quiet.held if one in member.leases]
            member.held = {lease.task for lease in held}
            self._kernel.signal()
        member.count_ended(len(report.done))

    def _start(self, member: Member, start: Start) -> None:
        lease = member.leases.get(start.lease)
        if lease is None or lease.has_started or not lease.is_current:
            return
        task, kernel = lease.task, self._kernel
        lease.has_started = True
        task.attempt_ns = member.here_ns(start.started_ns, lease.leased_ns, kernel.clock())
        kernel.started(task, start.version)

    def _save(self, member: Member, saved: Saved) -> None:
        lease = member.leases.get(saved.lease)
        if lease is None or not lease.is_current:
            return
        task = lease.task
        try:
            state = pickle.loads(saved.state)  # noqa: S301  (sent by our own actor)
        except Exception as error:
            log.warning("a checkpoint of task %d cannot be read here: %s", task.id, error)
            return
        task.more().partial = state
        self._kernel.note_progress(task)
        self._kernel.checkpointed(task)

    def _end(self, member: Member, done: Done) -> None:
        lease = member.leases.get(done.lease)
        if lease is None or lease.is_ending:
            self.doubled += 1
            return
        if done.started_ns is not None:
            self._start(member, Start(done.lease, done.started_ns, done.version))
        if done.stored_bytes:
            lease.is_ending = True
            fetching = asyncio.Task(self._fetch(lease, done), loop=asyncio.get_running_loop())
            self._fetching.add(fetching)
            fetching.add_done_callback(self._fetching.discard)
            return
        value = None
        if done.value is not None:
            try:
                value = pickle.loads(done.value)  # noqa: S301  (sent by our own actor)
            except Exception as error:
                _refuse(done, error)
        self._finish(lease, done, value)

    async def _fetch(self, lease: Lease, done: Done) -> None:
        """Have a large value made an object of ours; the lease lives until that is so."""
        keeper = self._kernel.keeper
        try:
            value, is_there = lease.member.fetch.remote(done.lease)
            await is_there
            if keeper is not None and keeper.journal is not None:
                await value  # it is here then, and written without a wait
        except need_ray().exceptions.RayActorError as error:
            # Its tasks start again elsewhere once that is noticed, or were already; a value that
            # was on its way when the network failed may be lost although its actor lives.
            if lasts(error) or lease.member.leases.pop(lease.number, None) is None:
                return
            recover(self._kernel, lease, f"its value could not be fetched: {error}")
        except Exception as error:
            _refuse(done, error)
            self._finish(lease, done, None)
        else:
            self._finish(lease, done, StoredValue(value, done.stored_bytes))

    def _finish(self, lease: Lease, done: Done, value: Any) -> None:  # noqa: ANN401
        """End an attempt as its actor says."""
        member, task, kernel = lease.member, lease.task, self._kernel
        if member.leases.pop(lease.number, None) is None:
            self.doubled += 1
            return
        member.held.discard(task)
        if not lease.is_current:  # given up meanwhile
            if task.state == DONE:
                kernel.ended(task)
            else:
                kernel.leftovers.attempt_returned(lease)
            return
        task.end(done.status, done.reason, value, done.failure, done.detail)
        if task.stop is not None:
            task.status, task.reason = task.stop
        if done.versions:
            task.more().versions += done.versions
        earliest_ns = task.attempt_ns or lease.leased_ns
        task.finished_ns = member.here_ns(done.finished_ns, earliest_ns, kernel.clock())
        if done.is_zombie:
            is_aborted = task.rare is not None and task.rare.is_aborted
            zombie = replace(task, state=DONE) if is_aborted else task
            member.zombies[lease.number] = zombie
            kernel.leftovers.zombies.add(zombie)
        kernel.ended(task)


def _refuse(done: Done, error: Exception) -> None:
    failure = describe_failure(error)
    text = f"its value cannot be read on the head: {failure.text}"
    done.status, done.reason = Status.FAILED, Reason.EXCEPTION
    done.failure = Failure("data", failure.type_name, text, failure.traceback_text)
