"""Everyone who runs tasks here, behind one small interface: ours, the least code, and others."""

from __future__ import annotations

import asyncio
import itertools
import queue
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from running.works import IN_THREADS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    Work = Callable[..., Coroutine[Any, Any, Any]]

__all__ = ["LOOPS", "NotOffered", "Subject", "find_subjects"]


class NotOffered(Exception):
    """A subject has nothing that could be measured here."""


class Subject(Protocol):
    """Runs tasks for a caller in another thread."""

    def submit(self, work: Work, *args: object) -> object:
        """Hand a task over."""

    def take(self, count: int) -> list[Any]:
        """Wait for the values of `count` finished tasks."""

    def close(self) -> None:
        """End, with all that is parked."""


def _uvloop() -> asyncio.AbstractEventLoop:
    import uvloop

    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


LOOPS: Final[dict[str, Callable[[], asyncio.AbstractEventLoop]]] = {
    "uvloop": _uvloop,
    "asyncio": asyncio.new_event_loop,
}


class Bridge:
    """The least code with this contract: a loop in a thread, and a queue of results.

    It bounds nothing, keeps no account, and a failing task is as silent as it can be.
    """

    def __init__(self, slots: int | None, *, loop: str) -> None:
        if slots is not None:
            raise NotOffered("has no slots")
        self._loop = LOOPS[loop]()
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def submit(self, work: Work, *args: object) -> None:
        """Hand a task over."""
        self._loop.call_soon_threadsafe(self._start, work, args)

    def _start(self, work: Work, args: tuple[object, ...]) -> None:
        task = self._loop.create_task(work(*args))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            self._results.put(task.result())

    def take(self, count: int) -> list[Any]:
        """Wait for values."""
        get = self._results.get
        return [get() for _ in range(count)]

    def close(self) -> None:
        """Cancel everything and end the thread."""
        self._loop.call_soon_threadsafe(self._cancel_all)
        self._thread.join()
        self._loop.close()

    def _cancel_all(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._loop.call_soon(self._loop.call_soon, self._loop.stop)


class _InLoop:
    """A task group inside of a loop in a thread; what starts a task is the group's own."""

    def __init__(self, run: Callable[[_InLoop], Coroutine[Any, Any, None]], loop: str) -> None:
        self.results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.start: Callable[..., object]
        self.ended: asyncio.Event
        self.loop: asyncio.AbstractEventLoop
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._main, args=(run, loop), daemon=True)
        self._thread.start()
        self._ready.wait()

    def _main(self, run: Callable[[_InLoop], Coroutine[Any, Any, None]], loop: str) -> None:
        with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
            runner.run(run(self))

    def is_ready(self, start: Callable[..., object]) -> None:
        """Let the caller go on."""
        self.start = start
        self.loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()
        self._ready.set()

    def submit(self, work: Work, *args: object) -> None:
        """Hand a task over."""
        self.loop.call_soon_threadsafe(self.start, work, args)

    def take(self, count: int) -> list[Any]:
        """Wait for values."""
        get = self.results.get
        return [get() for _ in range(count)]

    def close(self) -> None:
        """Cancel the group and end the thread."""
        self.loop.call_soon_threadsafe(self.ended.set)
        self._thread.join()


def make_task_group(slots: int | None, loop: str = "uvloop") -> Subject:
    """Run tasks in asyncio's task group, with a semaphore for slots."""

    async def run(owner: _InLoop) -> None:
        slot = asyncio.Semaphore(slots) if slots else None

        async def one(work: Work, args: tuple[object, ...]) -> None:
            if slot is None:
                owner.results.put(await work(*args))
                return
            async with slot:
                owner.results.put(await work(*args))

        tasks: set[asyncio.Task[None]] = set()

        def start(work: Work, args: tuple[object, ...]) -> None:
            task = group.create_task(one(work, args))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        async with asyncio.TaskGroup() as group:
            owner.is_ready(start)
            await owner.ended.wait()
            for task in tasks:
                task.cancel()

    return _InLoop(run, loop)


class AnyioPortal:
    """A portal of anyio's into a loop in a thread, with its limiter for slots."""

    def __init__(self, slots: int | None) -> None:
        try:
            import anyio
            from anyio.from_thread import start_blocking_portal
        except ImportError as error:
            raise NotOffered("anyio is not installed") from error
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._portal_opening = start_blocking_portal(backend_options={"use_uvloop": True})
        self._portal = self._portal_opening.__enter__()
        self._slots = anyio.CapacityLimiter(slots) if slots else None

    async def _one(self, work: Work, args: tuple[object, ...]) -> None:
        if self._slots is None:
            self._results.put(await work(*args))
            return
        async with self._slots:
            self._results.put(await work(*args))

    def submit(self, work: Work, *args: object) -> None:
        """Hand a task over."""
        self._portal.start_task_soon(self._one, work, args)

    def take(self, count: int) -> list[Any]:
        """Wait for values."""
        return [self._results.get() for _ in range(count)]

    def close(self) -> None:
        """Cancel everything and end the thread."""
        self._portal.start_task_soon(self._portal.stop, True)
        self._portal_opening.__exit__(None, None, None)


class ThreadPool:
    """A thread for each slot; 64 where tasks need none."""

    def __init__(self, slots: int | None) -> None:
        self._pool = ThreadPoolExecutor(slots or 64)
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def submit(self, work: Work, *args: object) -> None:
        """Hand a task over."""
        in_thread = IN_THREADS.get(work)
        if in_thread is None:
            raise NotOffered("threads cannot park by the thousand")
        future = self._pool.submit(in_thread, *args)
        future.add_done_callback(lambda done: self._results.put(done.result()))

    def take(self, count: int) -> list[Any]:
        """Wait for values."""
        return [self._results.get() for _ in range(count)]

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)


class Ours:
    """Rollscope's runner, with everything it always does; traced, if asked."""

    def __init__(
        self, slots: int | None, *, loop: Literal["uvloop", "asyncio"], traced: bool
    ) -> None:
        from rollscope.runner import Runner

        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if traced:
            import rollscope

            self._folder = tempfile.TemporaryDirectory()
            rollscope.init(dir=self._folder.name, run="bench")
        self.runner = Runner(concurrency=slots, inbox=1_000_000, loop=loop)
        self.runner.start()

    def submit(self, work: Work, *args: object) -> object:
        """Hand a task over."""
        return self.runner.submit(work, *args)

    def take(self, count: int) -> list[Any]:
        """Wait for values."""
        return [outcome.value for outcome in self.runner.wait(count)]

    def pause(self) -> None:
        """Let nothing start."""
        self.runner.pause("bench")

    def resume(self) -> None:
        """Let tasks start again."""
        self.runner.resume("bench")

    def close(self) -> None:
        """Cancel what is parked; end the recording."""
        self.runner.close()
        if self._folder is not None:
            import rollscope

            rollscope.shutdown()
            self._folder.cleanup()


class Areal:
    """AReaL's task runner, from a checkout."""

    def __init__(self, slots: int | None, *, checkout: Path | None) -> None:
        if checkout is None:
            raise NotOffered("not given (--areal PATH)")
        if slots is not None:
            raise NotOffered("has no slots")
        from overhead.rivals import _load_alone

        places = ("areal/infra/async_task_runner.py", "areal/core/async_task_runner.py")
        file = next((checkout / place for place in places if (checkout / place).exists()), None)
        if file is None:
            raise NotOffered("the checkout has no task runner")
        self._runner = _load_alone(file).AsyncTaskRunner(max_queue_size=100_000)
        self._runner.initialize()
        self._ids = itertools.count()
        self.pause, self.resume = self._runner.pause, self._runner.resume

    def submit(self, work: Work, *args: object) -> None:
        """Hand a task over."""
        self._runner.submit(work, *args, task_id=next(self._ids))

    def take(self, count: int) -> list[Any]:
        """Wait for values."""
        values: list[Any] = self._runner.wait(count)
        return values

    def close(self) -> None:
        """End the thread."""
        self._runner.destroy()


def find_subjects(areal: Path | None) -> dict[str, Callable[[int | None], Subject]]:
    """Name everyone who is measured, in the order of the table."""
    return {
        "ours": partial(Ours, loop="uvloop", traced=True),
        "ours, off": partial(Ours, loop="uvloop", traced=False),
        "bridge": partial(Bridge, loop="uvloop"),
        "ours, asyncio": partial(Ours, loop="asyncio", traced=True),
        "bridge, asyncio": partial(Bridge, loop="asyncio"),
        "task group": make_task_group,
        "anyio": AnyioPortal,
        "threads": ThreadPool,
        "AReaL": partial(Areal, checkout=areal),
    }
