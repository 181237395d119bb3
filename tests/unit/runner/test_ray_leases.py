"""What both ends make of messages that are late, doubled or lost; without a cluster."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import Any
from unittest.mock import MagicMock

import pytest
from ray.exceptions import ActorDiedError, ActorUnavailableError

from rollscope.runner import Reason, Status
from rollscope.runner.ray import inbound
from rollscope.runner.ray.inbound import Inbound
from rollscope.runner.ray.lodging import Lodging
from rollscope.runner.ray.member import Lease
from rollscope.runner.ray.packing import CallPacker
from rollscope.runner.ray.wire import (
    Done,
    LeaseBatch,
    LeasedCall,
    Report,
    decode_report,
)
from rollscope.runner.task import RUNNING, Task, TaskOptions


class Head:
    """One task, leased to an actor, from which its large value cannot be fetched."""

    def __init__(self, error: Exception) -> None:
        self.kernel = MagicMock(keeper=None, clock=lambda: 9)
        self.member = MagicMock(leases={}, held=set(), is_lost=False)
        self.task = Task(asyncio.sleep, (), {}, None, TaskOptions(), 0, id=7, state=RUNNING)
        self.lease = Lease(1, self.member, self.task, 0)
        self.member.leases[1] = self.task.runs_in = self.lease
        self._error = error

    async def take_end(self) -> None:
        async def fail() -> None:
            raise self._error

        self.member.fetch.remote = lambda _: (None, asyncio.ensure_future(fail()))
        taken = Inbound(self.kernel)
        done = Done(1, Status.OK, Reason.ACCEPTED, 5, stored_bytes=200_000)
        taken.take(self.member, Report(1, [], [], [done], [], None))
        await asyncio.gather(*taken._fetching)


def test_a_value_that_died_with_its_actor_leaves_the_task_to_start_again() -> None:
    head = Head(ActorDiedError())
    asyncio.run(head.take_end())
    head.kernel.ended.assert_not_called()
    assert head.member.leases == {1: head.lease}, "whoever sees the actor gone starts it again"


def test_a_value_that_cannot_be_reached_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    recovered: list[Lease] = []
    monkeypatch.setattr(inbound, "recover", lambda _, lease, __: recovered.append(lease))
    head = Head(ActorUnavailableError("cut off", None))
    asyncio.run(head.take_end())
    assert (recovered, head.member.leases) == ([head.lease], {})


def test_a_value_that_is_refused_by_its_actor_ends_the_task() -> None:
    head = Head(ValueError("not to be pickled"))
    asyncio.run(head.take_end())
    head.kernel.ended.assert_called_once_with(head.task)
    assert (head.task.status, head.task.reason) == (Status.FAILED, Reason.EXCEPTION)


def test_a_lease_that_comes_twice_runs_once() -> None:
    runs: list[int] = []

    async def run(release: asyncio.Event) -> int:
        runs.append(1)
        await release.wait()
        return 5

    async def main() -> Any:
        release = asyncio.Event()
        lodging = Lodging("actor-0", concurrency=2, probe_s=None, breaker=None)
        # In the same process objects need not be packed.
        lodging._make_task = lambda call: _task_of(lodging, call, run, release)  # type: ignore[method-assign]
        packer = CallPacker(())
        call = LeasedCall(1, 7, 1, b"", b"", packer.pack_options(TaskOptions()), None, {}, None)
        async with lodging.runner:
            lodging.take(LeaseBatch([call], None, 0))
            await asyncio.sleep(0)
            lodging.take(LeaseBatch([call], None, 0))
            await asyncio.sleep(0)
            release.set()
            return decode_report(await lodging.mailbox.read(0))

    report = asyncio.run(main())
    assert runs == [1]
    assert [(one.lease, one.status) for one in report.done] == [(1, Status.OK)]


def _task_of(lodging: Lodging, call: LeasedCall, fn: Any, *args: Any) -> Task:
    lodging.leases[call.id] = call.lease
    return Task(fn, args, {}, copy_context(), TaskOptions(), 0, id=call.id)
