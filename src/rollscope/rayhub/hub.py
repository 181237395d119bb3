"""The hub: an actor on the head of a Ray cluster that keeps the frames of all others.

There is one for each directory of runs. It is detached, so that it outlives the driver, and Ray
starts it again when it dies; what it had kept is in the logs, and what it had not is sent again.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rollscope.collect.collector import Collector
from rollscope.collect.exchange import Exchange
from rollscope.errors import CollectorBusy, IngestError
from rollscope.rayhub.sweeping import Sweeper

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NAMESPACE", "Hub", "HubAnswer", "find_hub", "hub_address", "hub_name"]

NAMESPACE: Final = "rollscope"
_MOST_WAITING_BYTES: Final = 64 * 1024 * 1024
_CALLS_AT_ONCE: Final = 64
_SWEEP_EVERY_S: Final = 5.0
_HEAD: Final = "node:__internal_head__"
"""A resource that only the head has."""


class HubAnswer(NamedTuple):
    """What the hub answers; no exception, since Ray would dress that up and log it."""

    refusal: str = ""
    """Why nothing was kept."""
    retry_after_s: float | None = None
    """When to send a refused part again; None: never."""
    received_ns: int = 0
    sent_ns: int = 0
    frames: int = 0
    doubled: int = 0


class Hub:
    """The code of the actor."""

    def __init__(self, directory: str) -> None:
        """Keep what comes in a directory of runs."""
        self._collector = Collector(Path(directory))
        self._sweeper = Sweeper(hub_address(directory), self._collector.keep)
        self._tasks: list[asyncio.Task[None]] = []

    async def keep(
        self,
        run: str,
        tags: Mapping[str, str],
        process: bytes,
        data: bytes,
        clock: tuple[int, ...] = (),
        home: str = "",
    ) -> HubAnswer:
        """Keep the frames of one process.

        Args:
            run: Their run.
            tags: Labels of the run, if it is new.
            process: Whose they are.
            data: Whole frames, or nothing.
            clock: What is known of the sender's clock; the numbers of an `Exchange`.
            home: Where processes like the sender leave what they could not send.
        """
        received_ns = time.time_ns()
        collector = self._collector
        self._sweeper.watch(home)
        self._begin()
        exchange = Exchange(*clock) if clock else None
        try:
            waiting = collector.waiting_bytes
            if waiting + len(data) > _MOST_WAITING_BYTES:
                raise CollectorBusy(f"{waiting >> 20} MiB wait to be kept")
            kept = await collector.do(
                len(data),
                lambda: collector.keep(
                    run, tags, process, data, exchange=exchange, received_ns=received_ns
                ),
            )
        except IngestError as error:
            return HubAnswer(str(error), error.retry_after_s, received_ns, time.time_ns())
        return HubAnswer("", None, received_ns, time.time_ns(), kept.frames, kept.doubled)

    async def pid(self) -> int:
        """Give the process that the hub lives in."""
        return os.getpid()

    def _begin(self) -> None:
        """Begin what is done beside the calls: the loop exists only now."""
        if not self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks = [
                loop.create_task(self._collector.tend()),
                loop.create_task(self._sweep()),
            ]

    async def _sweep(self) -> None:
        while True:
            has_more = await self._collector.do(0, self._sweeper.sweep)
            await asyncio.sleep(0 if has_more else _SWEEP_EVERY_S)  # callers come in between


def hub_name(directory: str) -> str:
    """Give the actor's name, which is found in the namespace `NAMESPACE`."""
    return f"hub of {directory}"


def hub_address(directory: str) -> str:
    """Give what spools to a hub are known by."""
    return f"ray:{directory}"


def find_hub(ray: Any, directory: str) -> Any:  # noqa: ANN401  (Ray's handles have no useful type)
    """Give the hub of a directory, made if there is none.

    Args:
        ray: Ray, initialised.
        directory: An absolute path on the head.
    """
    name = hub_name(directory)
    try:
        return ray.get_actor(name, namespace=NAMESPACE)
    except ValueError:  # there is none
        pass
    made = ray.remote(Hub).options(
        name=name,
        namespace=NAMESPACE,
        get_if_exists=True,  # others may make it at this moment
        lifetime="detached",
        num_cpus=0,
        max_restarts=-1,
        max_task_retries=0,  # senders do that
        max_concurrency=_CALLS_AT_ONCE,
        scheduling_strategy=_on_head(ray),
    )
    return made.remote(directory)


def _on_head(ray: Any) -> Any:  # noqa: ANN401
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    for node in ray.nodes():
        if node.get("Alive") and _HEAD in node.get("Resources", {}):
            return NodeAffinitySchedulingStrategy(node["NodeID"], soft=True)
    return "DEFAULT"
