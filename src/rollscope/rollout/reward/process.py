"""One worker process as its owner sees it: start it, give it a call, end it.

It is a fresh interpreter, never a fork: the owner has threads and perhaps a GPU.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Final

from rollscope.rollout.reward.failure import Reason
from rollscope.rollout.reward.function import host_main
from rollscope.rollout.reward.wire import HEADER_BYTES, Answer, decode_answer, frame, frame_length

__all__ = ["WorkerLost", "WorkerProcess"]

_LOAD_S: Final = 120.0
"""To start, to import the function and to read its arguments: some import torch."""
_EXIT_S: Final = 0.2
"""How long a process whose socket is closed may take to be gone; it takes about a millisecond."""
_PROGRAM: Final = (
    "import json, sys; fd, path, main = json.loads(sys.argv[1]); sys.path[:] = path; "
    "from rollscope.rollout.reward.worker import serve; serve(fd, tuple(main))"
)


class WorkerLost(Exception):
    """A call did not end with an answer; its process must be killed."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason: Reason = reason
        self.detail = detail


class WorkerProcess:
    """A process that works out one reward at a time. Starts when made."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        try:
            self._socket.setblocking(False)
            about = json.dumps([theirs.fileno(), sys.path, host_main()])
            self._process = subprocess.Popen(  # noqa: S603  (our own interpreter and program)
                [sys.executable, "-c", _PROGRAM, about],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                # A group of its own: Ctrl-C is for the owner, and what the function started is
                # killed along with it.
                start_new_session=True,
            )
        except BaseException:
            self._socket.close()
            raise
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Say whether the process still runs."""
        return self._process.poll() is None

    async def call(self, request: bytes, timeout_s: float) -> Answer:
        """Send a call and wait for its answer.

        Args:
            request: The call, encoded.
            timeout_s: How long the function may take, once it is loaded.

        Raises:
            WorkerLost: There was no answer in time, or the process died.
        """
        doing, limit_s = "load", _LOAD_S
        try:
            async with asyncio.timeout(limit_s):
                loop = asyncio.get_running_loop()
                await loop.sock_sendall(self._socket, frame(request))
                answer = await self._receive()
            if answer.kind != "running":
                return answer
            doing, limit_s = "return", timeout_s
            async with asyncio.timeout(limit_s):
                return await self._receive()
        except TimeoutError as error:
            detail = f"the function did not {doing} within {limit_s:g} s; its process was killed"
            raise WorkerLost("reward_timeout", detail) from error
        except (OSError, EOFError) as error:
            raise WorkerLost("reward_error", self._describe_death()) from error

    async def _receive(self) -> Answer:
        return decode_answer(await self._read(frame_length(await self._read(HEADER_BYTES))))

    async def _read(self, length: int) -> bytes:
        loop = asyncio.get_running_loop()
        parts = b""
        while len(parts) < length:
            part = await loop.sock_recv(self._socket, length - len(parts))
            if not part:
                raise EOFError
            parts += part
        return parts

    def _describe_death(self) -> str:
        self.interrupt()
        try:
            code = self._process.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            return "the worker process was lost"
        if code >= 0:
            return f"the worker process ended with exit code {code} before the function returned"
        return f"the worker process was ended by {signal.Signals(-code).name}"

    def kill(self) -> None:
        """End the process and whatever it started, without waiting for it."""
        self.interrupt()
        self._socket.close()
        if self._process.poll() is None:
            # A kill can take long to be done, if the process hangs in a system call.
            threading.Thread(
                target=self._process.wait, name="rollscope-reward-reaper", daemon=True
            ).start()

    def interrupt(self) -> None:
        """Kill the process and no more; a call that runs in it notices, and tidies up."""
        # Once it was waited for, its number may be another's.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def forget(self) -> None:
        """Let go of a process that belongs to the process we were forked from."""
        self._socket.close()
        self._process.returncode = 0  # else it would be waited for when collected
