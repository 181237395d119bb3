"""What verifiers 0.4 shows of itself: environments, episodes, traces that call back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

OnTrace = Callable[[Any], None] | None
Script = Callable[["Env", Callable[[str], "Trace"]], Awaitable[None]]


class Trace:
    """One agent's run, which tells its watcher of every change."""

    def __init__(self, name: str) -> None:
        stages = ("boot", "setup", "agent", "finalize", "scoring")
        self.id = f"trace-of-{name}"
        self.agent = SimpleNamespace(name=name, trainable=True)
        self.timing = SimpleNamespace(**{s: SimpleNamespace(start=0.0, end=0.0) for s in stages})
        self.calls: list[Any] = []
        self.errors: list[Any] = []
        self.rewards: dict[str, Any] = {}
        self.reward = 0.0
        self.ok = True
        self.is_timeout = False
        self.stop_condition: str | None = None
        self.num_turns = 0
        self._on_change: Callable[[Trace], None] | None = None
        self._pending: dict[int, list[Any]] = {}

    @property
    def last_error(self) -> Any:
        return self.errors[-1] if self.errors else None

    def watch(self, on_change: Callable[[Trace], None]) -> None:
        self._on_change = on_change

    def notify(self) -> None:
        if self._on_change is not None:
            self._on_change(self)

    def begin(self, stage: str) -> None:
        """Enter a stage, as it is done where it begins."""
        getattr(self.timing, stage).start = time.time()
        self.notify()

    def end(self, stage: str, then: str = "") -> None:
        """Leave a stage, for another one at once if that is named."""
        getattr(self.timing, stage).end = time.time()
        if then:
            getattr(self.timing, then).start = time.time()
        self.notify()

    def ask(self, request: int) -> None:
        """Send a request to the model."""
        self._pending[request] = []
        self.notify()

    def answer(self, request: int, error: Any = None, **usage: int) -> None:
        """Take the answer to it."""
        del self._pending[request]
        told = SimpleNamespace(cached_input_tokens=None, **usage) if usage else None
        call = {"model": "policy", "finish_reason": "stop", "usage": told, "error": error}
        self.calls.append(SimpleNamespace(**call))
        self.num_turns += error is None
        self.notify()

    def score(self, value: float) -> None:
        """Give it a reward."""
        self.rewards, self.reward = {"correct": object()}, value


class Env:
    """An environment whose episodes do what a script says."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.config = SimpleNamespace(env_id="sums")

    async def run_episode(
        self, task: Any, ctx: Any, *, on_trace: OnTrace = None, on_discard: OnTrace = None
    ) -> Any:
        """Run one, as the real one does: what goes wrong is in the result."""
        traces: list[Trace] = []

        def mint(name: str) -> Trace:
            trace = Trace(name)
            traces.append(trace)
            if on_trace is not None:
                on_trace(trace)
            return trace

        episode = SimpleNamespace(id="e0", traces=traces, errors=[], ok=False, is_timeout=False)
        episode.last_error, episode.usage, episode.num_turns = None, None, 0
        episode.on_discard = on_discard
        self.episode = episode
        await self.script(self, mint)
        episode.ok = not episode.errors and all(trace.ok for trace in traces)
        episode.last_error = episode.errors[-1] if episode.errors else None
        episode.num_turns = sum(trace.num_turns for trace in traces)
        return episode


def task(key: str) -> Any:
    """Give a task of a key."""
    return SimpleNamespace(key=key, data=SimpleNamespace(name=None))


def run(*episodes: Awaitable[Any]) -> list[Any]:
    """Run episodes at once."""

    async def together() -> list[Any]:
        return list(await asyncio.gather(*episodes))

    return asyncio.run(together())
