"""Pools of worker processes, shared by all reward functions of this process.

A pool serves any number of event loops and threads. Between calls nothing watches a worker; during
a call the loop of the caller does.
"""

import asyncio
import atexit
import os
import sys
import threading
from collections import deque
from typing import Final

from rollscope.rollout.reward.process import WorkerProcess
from rollscope.rollout.reward.wire import Answer

__all__ = ["Pool", "close_pools", "default_workers", "shared_pool"]


class Pool:
    """Some number of places for calls, each with a process that is started when first needed."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._lock = threading.Lock()
        self._free = size
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
        self._closed = False

    async def call(self, request: bytes, timeout_s: float) -> Answer:
        """Run one call in a worker; waiting for a free one does not count against the time.

        Raises:
            WorkerLost: The worker hung or died. It is killed; the next call gets a new one.
            OSError: No process could be started.
        """
        await self._enter()
        try:
            worker = self._take()
            try:
                answer = await worker.call(request, timeout_s)
            except BaseException:  # a cancelled call leaves its function running
                self._discard(worker)
                raise
            self._keep(worker)
            return answer
        finally:
            self._leave()

    def pids(self) -> list[int]:
        """Give the process ids of all workers."""
        with self._lock:
            return [worker.pid for worker in (*self._idle, *self._busy)]

    def close(self) -> None:
        """Kill every worker; calls that run now fail."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for worker in self._busy:
                worker.interrupt()
        for worker in idle:
            worker.kill()

    def forget(self) -> None:
        """Let go of workers that belong to the process we were forked from."""
        for worker in (*self._idle, *self._busy):
            worker.forget()

    async def _enter(self) -> None:
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = loop.create_future()
            self._waiting.append((loop, turn))
        try:
            await turn
        except asyncio.CancelledError:
            with self._lock:
                gave_up = (loop, turn) in self._waiting
                if gave_up:
                    self._waiting.remove((loop, turn))
            if not gave_up:  # the place was on its way to us
                self._leave()
            raise

    def _leave(self) -> None:
        with self._lock:
            while self._waiting:
                loop, turn = self._waiting.popleft()
                try:
                    loop.call_soon_threadsafe(_grant, turn)
                except RuntimeError:  # that loop was closed; nobody waits there any more
                    continue
                return
            self._free += 1

    def _take(self) -> WorkerProcess:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive():
                    break
                worker.kill()
            else:
                worker = WorkerProcess()
            self._busy.add(worker)
            return worker

    def _keep(self, worker: WorkerProcess) -> None:
        with self._lock:
            self._busy.discard(worker)
            if not self._closed:
                self._idle.append(worker)
                return
        worker.kill()

    def _discard(self, worker: WorkerProcess) -> None:
        with self._lock:
            self._busy.discard(worker)
        worker.kill()


def _grant(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


_pools: Final[dict[int, Pool]] = {}
_lock: Final = threading.Lock()
_owner: list[int] = []
"""The process whose pools these are; empty before the first one."""


def shared_pool(size: int) -> Pool:
    """Give the pool of that size, which all who ask for the same size share."""
    with _lock:
        _notice_fork()
        if size not in _pools:
            _pools[size] = Pool(size)
        return _pools[size]


def close_pools() -> None:
    """Kill all workers of this process; whoever asks for a reward later starts new ones.

    Happens by itself when the program ends.
    """
    with _lock:
        pools = list(_pools.values()) if _owner == [os.getpid()] else []
        _pools.clear()
    for pool in pools:
        pool.close()


def _notice_fork() -> None:
    if not _owner:
        atexit.register(close_pools)
    elif _owner != [os.getpid()]:
        for pool in _pools.values():
            pool.forget()
        _pools.clear()
    _owner[:] = [os.getpid()]


def default_workers() -> int:
    """Give half of the CPUs that fall to one device, at least 1."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cpus // _devices() // 2)


def _devices() -> int:
    torch = sys.modules.get("torch")  # not worth importing for this
    if torch is not None and torch.cuda.is_available():
        return int(torch.cuda.device_count())
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return max(1, len([device for device in visible.split(",") if device.strip()]))
