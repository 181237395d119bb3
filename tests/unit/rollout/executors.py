"""What tests of the executor share: a workflow that does as the item says, and an engine."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from rollscope.rollout import RolloutWorkflow, context
from rollscope.rollout.arrays import choose_arrays
from rollscope.rollout.executor import WorkflowExecutor
from rollscope.rollout.trajectory import Trajectory

PATIENCE_S = 20.0


def until(is_so: Callable[[], object]) -> None:
    """Wait for something that another thread does in a moment."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


class Engine:
    """Has a version, and nothing to say."""

    def __init__(self, version: int = 0) -> None:
        self.version = version

    async def agenerate(self, req: Any) -> Any:
        raise NotImplementedError

    def get_version(self) -> int:
        return self.version


class Scripted(RolloutWorkflow):
    """Does what `data["do"]` says; a list is done item by item, run by run."""

    def __init__(self) -> None:
        self.runs: Counter[Any] = Counter()
        self.seen: list[Any] = []
        self.started = threading.Semaphore(0)
        self._is_open = False
        self._go = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def arun_episode(self, engine: Any, data: Any) -> Any:
        key, script = data.get("id"), data.get("do", "ok")
        run = self.runs[key]
        self.runs[key] += 1
        self.seen.append(context())
        self._loop = asyncio.get_running_loop()
        self.started.release()
        done = script[run % len(script)] if isinstance(script, list) else script
        return await getattr(self, f"do_{done}")(data)

    async def do_ok(self, data: Any) -> Trajectory:
        version = context().version
        return sample(data.get("tokens", 3), -1 if version is None else version, data)

    async def do_none(self, data: Any) -> None:
        return None

    async def do_raise(self, data: Any) -> None:
        raise KeyError("broken on purpose")

    async def do_exit(self, data: Any) -> None:
        raise SystemExit(3)

    async def do_cancel(self, data: Any) -> None:
        raise asyncio.CancelledError

    async def do_text(self, data: Any) -> str:
        return "no trajectory"

    async def do_hold(self, data: Any) -> Trajectory:
        if not self._is_open:
            await self._go.wait()
        return await self.do_ok(data)

    def let_go(self) -> None:
        self._is_open = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._go.set)

    def await_starts(self, count: int) -> None:
        for _ in range(count):
            assert self.started.acquire(timeout=PATIENCE_S)


def sample(tokens: int, version: int, data: Any) -> Trajectory:
    array = choose_arrays().array
    prompt = 1
    return {
        "input_ids": array([list(range(tokens))], "int32"),
        "attention_mask": array([[True] * tokens], "bool"),
        "loss_mask": array([[0] * prompt + [1] * (tokens - prompt)], "int32"),
        "versions": array([[-1] * prompt + [version] * (tokens - prompt)], "int32"),
        "rewards": array([float(data.get("reward", 1.0))], "float32"),
        "item": data.get("id"),
    }


class Loader(list[list[dict[str, Any]]]):
    """Batches of items, with a size."""

    def __init__(self, count: int, batch_size: int, **fields: Any) -> None:
        items = [{"id": number, **fields} for number in range(count)]
        super().__init__(items[at : at + batch_size] for at in range(0, count, batch_size))
        self.batch_size = batch_size


def configured(**settings: Any) -> SimpleNamespace:
    defaults = {"consumer_batch_size": 4, "max_concurrent_rollouts": 8, "max_head_offpolicyness": 1}
    return SimpleNamespace(**defaults | settings)


def started(engine: Engine | None = None, manager: Any = None, **settings: Any) -> WorkflowExecutor:
    executor = WorkflowExecutor(configured(**settings), engine or Engine(), manager)
    executor.initialize(train_data_parallel_size=1)
    return executor


def items_of(batch: list[Trajectory]) -> list[Any]:
    return sorted(trajectory["item"] for trajectory in batch)
