"""The ways to run a runner that the conformance suite goes through.

Another one joins by a subclass of `Backend` and a fixture called `backend` of its own.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rollscope.runner import CloseReport, Runner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["PATIENCE_S", "Backend", "InLoop", "OwnThread", "eventually"]

PATIENCE_S = 20.0
"""How long something may take that takes a moment; only a failing test waits for it."""


class Backend:
    """Makes runners that have started, and closes them."""

    name = ""
    is_local = True
    """Whether tasks run in this very process."""

    def __init__(self) -> None:
        self._made: list[Runner] = []

    def make(self, **settings: Any) -> Runner:
        """Give a runner that has started."""
        # The thread that watches the loop is tested elsewhere, and takes a while to end.
        runner = self.start(**{"probe_s": None, **settings})
        self._made.append(runner)
        return runner

    def start(self, **settings: Any) -> Runner:
        """Make a runner and start it."""
        raise NotImplementedError

    def close(self, runner: Runner, timeout_s: float = PATIENCE_S) -> CloseReport:
        """Close a runner, from a thread that may block."""
        return runner.close(timeout_s)

    def close_all(self) -> None:
        """Close what a test has left open."""
        for runner in self._made:
            self.close(runner, 2.0)


class OwnThread(Backend):
    """A runner with a loop thread of its own."""

    def __init__(self, loop: str) -> None:
        super().__init__()
        self.name = f"thread-{loop}"
        self._loop = loop

    def start(self, **settings: Any) -> Runner:
        return Runner(loop=self._loop, **settings).start()  # type: ignore[arg-type]


class InLoop(Backend):
    """A runner on somebody else's running loop, used from another thread."""

    name = "in-loop"

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def start(self, **settings: Any) -> Runner:
        runner = Runner(**settings)
        asyncio.run_coroutine_threadsafe(runner.__aenter__(), self._loop).result(PATIENCE_S)
        return runner

    def close(self, runner: Runner, timeout_s: float = PATIENCE_S) -> CloseReport:
        closing = asyncio.run_coroutine_threadsafe(runner.aclose(timeout_s), self._loop)
        return closing.result(timeout_s + PATIENCE_S)

    def close_all(self) -> None:
        super().close_all()
        asyncio.run_coroutine_threadsafe(self._cancel_rest(), self._loop).result(PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _cancel_rest(self) -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await asyncio.gather(*rest, return_exceptions=True)


def eventually(condition: Callable[[], Any], what: str) -> Any:
    """Wait until a condition gives something true, and give that."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.002)
    return found


class Signals:
    """Files by which a test and its tasks tell each other things, wherever the tasks run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: str) -> str:
        """Give what a task is told to wait for or to make."""
        return str(self._folder / name)

    def send(self, name: str) -> None:
        """Let tasks that wait for it go on."""
        (self._folder / name).touch()

    def wait(self, name: str) -> None:
        """Wait until a task has sent it."""
        eventually((self._folder / name).exists, f"signal {name}")

    def count(self, prefix: str) -> int:
        """Count the signals whose names begin like this."""
        return len(list(self._folder.glob(f"{prefix}*")))
