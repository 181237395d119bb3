"""One actor, as Ray sees it: the calls that the head makes.

Tasks run on a loop thread of their own. `heartbeat`, `cancel`, `steer`, `set_version` and
`cancel_orphans` are in a concurrency group, and so a thread, of theirs: they answer while tasks
run and while messages wait, even if a task blocks its loop.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from rollscope.instrument import default
from rollscope.instrument.guard import guarded
from rollscope.runner.ray.lodging import Lodging
from rollscope.runner.ray.wire import Heartbeat, Seen, decode_batch, encode
from rollscope.runner.retry import Retry

if TYPE_CHECKING:
    from rollscope.instrument.tracer import Tracer

__all__ = ["ActorHost", "ActorSettings", "Hello"]

_SEEN: Final = 20


class ActorSettings(msgspec.Struct, frozen=True):
    """What an actor is made with."""

    name: str
    per_actor: int
    cleanup_s: float
    probe_s: float | None
    retry: Retry
    """Only its rules matter: what an exception tells about."""


class Hello(msgspec.Struct, frozen=True):
    """Who an actor is."""

    pid: int
    node: str


class ActorHost:
    """The code of an actor."""

    def __init__(self, settings: ActorSettings) -> None:
        self._settings = settings
        self._lodging: Lodging
        self._records_into: str | None = None
        self._tracer: Tracer | None = None

    async def hello(self) -> Hello:
        """Begin; comes before everything else."""
        settings = self._settings
        self._lodging = lodging = Lodging(
            settings.name,
            concurrency=settings.per_actor,
            cleanup_s=settings.cleanup_s,
            probe_s=settings.probe_s,
            retry=replace(settings.retry, per_task=0),
            breaker=None,
        )
        lodging.runner.start()
        return Hello(os.getpid(), os.uname().nodename)

    async def exchange(self, confirmed: int, batch: bytes | None) -> bytes:
        """Take leases, if there are any, and give the next report."""
        if batch is not None:
            await self.lease(batch)
        loop = self._lodging.runner._kernel.loop
        assert loop is not None  # noqa: S101  (`hello` has started it)
        reading = self._lodging.mailbox.read(confirmed)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(reading, loop))

    async def lease(self, batch: bytes) -> None:
        """Take leases."""
        told = decode_batch(batch)
        if told.recording is not None:
            self._record(told.recording)
        self._later(lambda: self._lodging.take(told))

    def _record(self, settings: dict[str, Any]) -> None:
        """Record into the run of the head, unless the program here has begun a run itself."""
        if settings["run"] == self._records_into:
            return
        self._records_into = settings["run"]
        if default.enabled() and default._tracer is not self._tracer:
            return
        if "ROLLSCOPE_ROLE" not in os.environ:
            settings = {**settings, "role": "rollout"}
        with guarded("recording on an actor"):
            self._tracer = default.init(**settings)

    async def fetch(self, lease: int) -> tuple[Any, bool]:
        """Give a large value as the result of the call, so that the head owns it."""
        return self._lodging.large.pop(lease), True

    async def close(self) -> None:
        """End, and write out what was recorded."""
        await asyncio.get_running_loop().run_in_executor(None, self._end)

    def _end(self) -> None:
        self._lodging.runner.close(timeout_s=1.0)
        default.shutdown()

    # --- in the control group --------------------------------------------------------------------

    async def heartbeat(self) -> bytes:
        """Say what is held, and where the longest-running tasks are."""
        lodging = self._lodging
        runner, kernel = lodging.runner, lodging.runner._kernel
        if kernel.error is not None:
            raise kernel.broken()
        kernel.call_loop(lodging.return_old)
        seen = [
            Seen(lease, one.phase, one.frames, one.since_progress_s, one.children)
            for one in runner.inspect(_SEEN)
            if one.state == "running" and (lease := lodging.leases.get(one.id)) is not None
        ]
        return encode(
            Heartbeat(
                now_ns=kernel.clock(),
                leased=lodging.held(),
                running=kernel.running,
                finished=lodging.finished,
                zombies=lodging.living_zombies(),
                loop_lag_s=max(runner._watcher.lag_s, runner._watcher.blocked_for_s()),
                seen=seen,
            )
        )

    async def cancel(self, orders: list[tuple[int, str, str]]) -> None:
        """Tell attempts to stop, each by its lease with a status and a reason."""
        self._later(lambda: self._lodging.cancel(orders))

    async def steer(self, epoch: int, *, is_paused: bool, is_holding: bool) -> None:
        """Pause or resume."""
        self._later(lambda: self._lodging.steer(epoch, is_paused=is_paused, is_holding=is_holding))

    async def set_version(self, change: int, version: int | None) -> None:
        """Tell that the weights were updated."""
        self._later(lambda: self._lodging.learn_version(change, version))

    async def cancel_orphans(self) -> None:
        """End what tasks have left behind."""
        self._later(self._lodging.runner._kernel.leftovers.cancel_orphans)

    def _later(self, act: Any) -> None:  # noqa: ANN401  (a call for its effect)
        self._lodging.runner._kernel.call_loop(act)
