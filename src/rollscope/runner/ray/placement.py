"""Making actors, and saying what is missing when the cluster has no place for them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rollscope.errors import PlacementTimeout
from rollscope.runner.ray.actor import ActorHost
from rollscope.runner.ray.extra import need_ray

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollscope.runner.ray.actor import ActorSettings, Hello

__all__ = ["Placement", "control", "end_actors"]

_CONTROL: Final = "control"
_CONTROL_CALLS: Final = 16
_CLOSE_S: Final = 3.0


class Placement(msgspec.Struct, frozen=True):
    """Where actors go."""

    resources: Mapping[str, float]
    """What each of them needs, by Ray's names: `CPU`, `GPU`, `memory` or any of your own."""
    strategy: Any
    """`SPREAD`, `DEFAULT`, or a scheduling strategy of Ray's."""
    timeout_s: float

    def make_actor(self, settings: ActorSettings) -> Any:  # noqa: ANN401  (Ray's handle)
        """Ask for an actor; it is not placed yet."""
        ray = need_ray()
        own = {k: v for k, v in self.resources.items() if k not in ("CPU", "GPU", "memory")}
        remote = ray.remote(concurrency_groups={_CONTROL: _CONTROL_CALLS})(ActorHost)
        return remote.options(
            num_cpus=self.resources.get("CPU", 0),
            num_gpus=self.resources.get("GPU", 0),
            memory=self.resources.get("memory"),
            resources=own or None,
            scheduling_strategy=self.strategy,
            max_restarts=0,  # a replacement gets a name and leases of its own
            max_concurrency=1_000,
        ).remote(settings)

    def await_hello(self, handles: list[Any]) -> list[Hello]:
        """Wait in a thread until actors are placed.

        Raises:
            PlacementTimeout: Not all of them were, in time.
        """
        ray = need_ray()
        try:
            hellos: list[Hello] = ray.get(
                [handle.hello.remote() for handle in handles], timeout=self.timeout_s
            )
        except ray.exceptions.GetTimeoutError:
            raise self.timed_out(len(handles)) from None
        return hellos

    async def ahello(self, handles: list[Any]) -> list[Hello]:
        """As `await_hello`, for coroutines."""
        calls = [handle.hello.remote() for handle in handles]
        try:
            async with asyncio.timeout(self.timeout_s):
                return [await call for call in calls]
        except TimeoutError:
            raise self.timed_out(len(handles)) from None

    def timed_out(self, actors: int) -> PlacementTimeout:
        """Make the error, with what each resource lacks."""
        ray = need_ray()
        total, free = ray.cluster_resources(), ray.available_resources()
        missing = [
            f"{name} (each needs {need:g}, the cluster has {total.get(name, 0):g}, "
            f"{free.get(name, 0):g} of it free)"
            for name, need in self.resources.items()
            if need and free.get(name, 0) < need * actors
        ]
        lacking = ", ".join(missing) or "none that Ray reports; look at `ray status`"
        return PlacementTimeout(
            f"{actors} actors were not placed within {self.timeout_s:g} s; "
            f"missing resources: {lacking}"
        )


def control(method: Any, **options: Any) -> Any:  # noqa: ANN401  (Ray's method)
    """Give a method that is called in the control group."""
    return method.options(concurrency_group=_CONTROL, **options)


def end_actors(handles: list[Any], close_s: float = _CLOSE_S) -> None:
    """Let actors write out what they have, then end them; from a thread.

    Args:
        handles: Which actors.
        close_s: How long they have for that; 0 asks nothing of them.
    """
    ray = need_ray()
    if not handles or not ray.is_initialized():
        return
    if close_s:
        closing = [handle.close.remote() for handle in handles]
        ray.wait(closing, num_returns=len(closing), timeout=close_s)
    for handle in handles:
        ray.kill(handle, no_restart=True)
