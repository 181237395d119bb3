"""`RayRunner`: the interface of `Runner`, with the work done by actors on many machines."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, cast

from msgspec.structs import replace

from rollscope.errors import SettingError
from rollscope.runner.guard import log
from rollscope.runner.ray.actor import ActorSettings
from rollscope.runner.ray.extra import need_ray
from rollscope.runner.ray.headside import HeadLimits, HeadTrace
from rollscope.runner.ray.launcher import Fleet, RayLauncher
from rollscope.runner.ray.member import Lease
from rollscope.runner.ray.placement import Placement, end_actors
from rollscope.runner.ray.slots import SlotsGate
from rollscope.runner.ray.values import (
    FetchingCodec,
    afetch_values,
    fetch_values,
    hand_out_references,
)
from rollscope.runner.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rollscope.runner.ending import CloseReport
    from rollscope.runner.kernel import Kernel, Launcher
    from rollscope.runner.outcome import Outcome
    from rollscope.runner.pausing import PauseMode
    from rollscope.runner.ray.member import ActorReport
    from rollscope.runner.reporting import HealthState, TaskReport
    from rollscope.runner.stats import Stats
    from rollscope.runner.steering import Pause
    from rollscope.runner.task import Task
    from rollscope.runner.waiters import Order

__all__ = ["RayRunner"]

_GRACE_S = 2.0
"""An actor gives a task up that does not end when told to; the head only if the actor does not."""


class RayRunner(Runner):
    """Runs coroutines on Ray actors, and gives exactly one outcome for each.

    The head, where this object lives, keeps everything but the running of tasks: what waits, the
    gates, tiers, groups and outcomes. Functions, arguments and values travel, so they have to be
    serialisable; of the context only trace ids and the variables named by `contextvars` cross.
    An execution may repeat if an actor is lost, an outcome never does.

    Args:
        actors: How many actors work.
        per_actor: How many tasks run at once on each.
        resources: What each actor needs, such as `{"CPU": 1, "GPU": 1}`; one CPU if not given.
        placement: `SPREAD`, `DEFAULT`, or a scheduling strategy of Ray's.
        contextvars: Which context variables cross, as `package.module:variable`.
        placement_s: How long the cluster may take to place the actors.
        lease_s: A task that its actor knows nothing of starts again after so long.
        heartbeat_s: How often actors are asked for a sign of life.
        silence_s: An actor that gave none for so long is replaced.
        **settings: As for `Runner`.
    """

    def __init__(
        self,
        *,
        actors: int,
        per_actor: int = 64,
        resources: Mapping[str, float] | None = None,
        placement: Any = "SPREAD",  # noqa: ANN401  (a name or a strategy of Ray's)
        contextvars: Iterable[str] = (),
        placement_s: float = 60.0,
        lease_s: float = 30.0,
        heartbeat_s: float = 2.0,
        silence_s: float = 10.0,
        **settings: Any,
    ) -> None:
        if actors < 1 or per_actor < 1:
            raise SettingError(
                f"a Ray runner needs actors and places on each, not {actors} with {per_actor}"
            )
        self._slots = SlotsGate()
        self._fleet = Fleet(
            actors=actors,
            placement=Placement(dict(resources or {"CPU": 1}), placement, placement_s),
            settings=self._settings_of,
            slots=per_actor,
            contextvars=tuple(contextvars),
            lease_s=lease_s,
            heartbeat_s=heartbeat_s,
            silence_s=silence_s,
        )
        settings["gates"] = (*settings.get("gates", ()), self._slots)
        super().__init__(**settings)

    def _set_up_keeping(self, *settings: Any) -> None:
        super()._set_up_keeping(*settings)
        self._codec = FetchingCodec(self._codec)

    def _settings_of(self, actor: str) -> ActorSettings:
        return ActorSettings(
            actor or f"{self.name}-actor-",
            self._fleet.slots,
            self._cleanup_s,
            self._probe_s,
            replace(self._retry, per_task=0),
        )

    def _make_launcher(self, kernel: Kernel) -> Launcher:
        kernel.trace = HeadTrace(self.name, self._tracer, self._gates)
        kernel.trace.use_timers(kernel.timers)
        kernel.limits = HeadLimits(kernel, self._cleanup_s + _GRACE_S)
        launcher = RayLauncher(kernel, self._fleet, self._slots)
        kernel.leftovers.cancel_orphans = launcher.cancel_orphans  # type: ignore[method-assign]
        return launcher

    @property
    def _launcher(self) -> RayLauncher:
        return cast("RayLauncher", self._kernel.launcher)

    # --- life ------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Place the actors and start the loop thread; returns once both are there.

        Raises:
            MissingExtra: Ray is not installed.
            PlacementTimeout: The cluster has no room; the message names what is missing.
        """
        if self._runs_already():
            return self
        self._prepare()
        made = self._launcher.make_actors(self._fleet.actors)
        try:
            hellos = self._fleet.placement.await_hello([handle for _, handle in made])
        except BaseException:
            end_actors(self._launcher.end(), close_s=0)
            raise
        self._launcher.enlist(made, hellos)
        return super().start()

    async def __aenter__(self) -> Self:
        if self._runs_already():
            return self
        await asyncio.get_running_loop().run_in_executor(None, self._prepare)
        made = self._launcher.make_actors(self._fleet.actors)
        try:
            hellos = await self._fleet.placement.ahello([handle for _, handle in made])
        except BaseException:
            end_actors(self._launcher.end(), close_s=0)
            raise
        self._launcher.enlist(made, hellos)
        return await super().__aenter__()

    def _prepare(self) -> None:
        """Join the cluster, and begin a life of its own if this is not the first."""
        ray = need_ray()
        if not ray.is_initialized():
            log.info("the runner %r starts or joins Ray", self.name)
            ray.init()
        if self._kernel.loop is not None or self._launcher._is_ending:
            self._begin_life()
        self._launcher.prepare()

    def close(self, timeout_s: float = 30.0) -> CloseReport:
        """As `Runner.close`; no actor is left."""
        report = super().close(timeout_s)
        end_actors(self._launcher.end())
        return report

    async def aclose(self, timeout_s: float = 30.0) -> CloseReport:
        """As `close`, for a runner on the caller's loop."""
        report = await super().aclose(timeout_s)
        handles = self._launcher.end()
        await asyncio.get_running_loop().run_in_executor(None, end_actors, handles)
        return report

    # --- outcomes --------------------------------------------------------------------------------

    def wait(
        self,
        count: int = 1,
        timeout_s: float | None = None,
        order: Order = "arrival",
        where: Callable[[Outcome], bool] | None = None,
        *,
        resolve: bool = True,
    ) -> list[Outcome]:
        """As `Runner.wait`.

        Args:
            count: How many.
            timeout_s: How long; for ever if not given.
            order: As for `Runner.wait`.
            where: Which outcomes count; a value over 100 KB is a `StoredValue` there.
            resolve: False hands out Ray's references to values over 100 KB.
        """
        return self._give(super().wait(count, timeout_s, order, where), resolve=resolve)

    async def await_outcomes(
        self,
        count: int = 1,
        timeout_s: float | None = None,
        order: Order = "arrival",
        where: Callable[[Outcome], bool] | None = None,
        *,
        resolve: bool = True,
    ) -> list[Outcome]:
        """As `wait`, for coroutines of any loop."""
        outcomes = await super().await_outcomes(count, timeout_s, order, where)
        return await self._agive(outcomes, resolve=resolve)

    def wait_for(
        self, task_id: int, timeout_s: float | None = None, *, resolve: bool = True
    ) -> Outcome:
        """As `Runner.wait_for`; `resolve` as for `wait`."""
        return self._give([super().wait_for(task_id, timeout_s)], resolve=resolve)[0]

    async def await_for(
        self, task_id: int, timeout_s: float | None = None, *, resolve: bool = True
    ) -> Outcome:
        """As `wait_for`, for coroutines of any loop."""
        outcomes = [await super().await_for(task_id, timeout_s)]
        return (await self._agive(outcomes, resolve=resolve))[0]

    def take_ready(self, limit: int | None = None, *, resolve: bool = True) -> list[Outcome]:
        """As `Runner.take_ready`; `resolve` as for `wait`."""
        return self._give(super().take_ready(limit), resolve=resolve)

    def _give(self, outcomes: list[Outcome], *, resolve: bool) -> list[Outcome]:
        """Hand outcomes out, or none of them if a signal handler interrupts that."""
        try:
            return fetch_values(outcomes) if resolve else hand_out_references(outcomes)
        except BaseException:
            self._put_back(outcomes)
            raise

    async def _agive(self, outcomes: list[Outcome], *, resolve: bool) -> list[Outcome]:
        """Hand outcomes out, or none of them if the coroutine is cancelled meanwhile."""
        try:
            return await afetch_values(outcomes) if resolve else hand_out_references(outcomes)
        except BaseException:
            self._put_back(outcomes)
            raise

    # --- steering --------------------------------------------------------------------------------

    def pause(self, owner: object | None = None, mode: PauseMode = "finish") -> Pause:
        """As `Runner.pause`; quiesced only when every live actor has confirmed."""
        pause = super().pause(owner, mode)
        self._kernel.call_loop(self._launcher.steer)
        return pause

    def resume(self, owner: object | None = None, *, all: bool = False) -> bool:
        """As `Runner.resume`."""
        is_resumed = super().resume(owner, all=all)
        self._kernel.call_loop(self._launcher.steer)
        return is_resumed

    def _is_quiet(self, mode: PauseMode) -> bool:
        return self._launcher.is_quiet(mode)

    def set_version(self, version: int) -> None:
        """As `Runner.set_version`; the actors are told."""
        super().set_version(version)
        self._kernel.call_loop(self._launcher.tell_version)

    # --- telling about itself --------------------------------------------------------------------

    def actors(self) -> list[ActorReport]:
        """Show the actors, each as of its last heartbeat."""
        return [member.describe() for member in list(self._launcher.members)]

    def stats(self) -> Stats:
        """As `Runner.stats`."""
        return replace(super().stats(), doubled_results=self._launcher.inbound.doubled)

    def _state(self) -> HealthState:
        state = super()._state()
        is_short = len(self._launcher.members) < self._fleet.actors
        return "degraded" if state == "running" and is_short else state

    def _report_task(self, task: Task, now_ns: int) -> TaskReport:
        report = super()._report_task(task, now_ns)
        seen = task.runs_in.seen if isinstance(task.runs_in, Lease) else None
        if seen is None:
            return report
        return replace(
            report,
            phase=seen.phase,
            frames=seen.frames,
            since_progress_s=seen.since_progress_s,
            children=seen.children,
        )
