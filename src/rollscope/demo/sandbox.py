"""The demo's tool: a calculator in processes of its own, a few of them, each used by one at a time.

A process that does not answer in time, or dies, is killed and replaced.
"""

import asyncio
import contextlib
import os
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import Final

import rollscope as rs

__all__ = ["Sandbox", "ToolError"]

_PROGRAM: Final = Path(__file__).with_name("calculator.py")
_LIMIT_S: Final = 10.0


class ToolError(Exception):
    """The calculator gave no answer."""


class Sandbox:
    """Runs the calculator.

    Args:
        size: How many may be used at once.
        hang_at: Which call, counted from 1, meets a calculator that hangs; it has no time limit.
    """

    def __init__(self, size: int = 4, hang_at: int | None = None) -> None:
        self._free = asyncio.Semaphore(size)
        self._idle: list[Process] = []
        self._all: set[Process] = set()
        self._calls = 0
        self._hang_at = hang_at

    async def multiply(self, problem: str) -> str:
        """Give the product.

        Raises:
            ToolError: There was none.
        """
        self._calls += 1
        hangs = self._calls == self._hang_at
        with rs.phase("toolcall", tool="calculator"):
            # One that hangs must not keep the others from the processes that are left.
            if hangs:
                return await self._ask("hang", limit_s=None)
            async with self._free:
                return await self._ask(problem, _LIMIT_S)

    async def _ask(self, text: str, limit_s: float | None) -> str:
        process = self._idle.pop() if self._idle else await self._start()
        try:
            answer = await asyncio.wait_for(self._exchange(process, text), limit_s)
        except BaseException as error:
            await self._end(process)
            if isinstance(error, TimeoutError | OSError):
                raise ToolError(f"the calculator did not answer: {error!r}") from error
            raise
        if not answer.isdecimal():
            await self._end(process)
            raise ToolError(f"the calculator said {answer[:40]!r}")
        self._idle.append(process)
        return answer

    async def _exchange(self, process: Process, text: str) -> str:
        if process.stdin is None or process.stdout is None:
            raise ToolError("the calculator has no pipes")
        process.stdin.write(text.encode() + b"\n")
        await process.stdin.drain()
        return (await process.stdout.readline()).decode().strip()

    async def _start(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_PROGRAM)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            cwd=tempfile.gettempdir(),
            env={"PATH": os.defpath},
            start_new_session=True,
        )
        self._all.add(process)
        return process

    async def _end(self, process: Process) -> None:
        self._all.discard(process)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await asyncio.shield(process.wait())

    async def close(self) -> None:
        """End all calculators."""
        for process in list(self._all):
            await self._end(process)
