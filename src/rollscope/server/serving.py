"""Listening: a port, the lines that say where, and a server that ends cleanly."""

import asyncio
import getpass
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

import uvicorn

from rollscope.errors import CommandError
from rollscope.server.access import Access, is_loopback
from rollscope.server.app import make_app
from rollscope.server.hub import Hub
from rollscope.server.library import Library
from rollscope.server.opened import THREAD_PREFIX

__all__ = ["DEFAULT_PORT", "Served", "address_lines", "bind", "run_server", "serving"]

DEFAULT_PORT: Final = 7077
_GRACE_S: Final = 1
_LEAVE_S: Final = 1.7
"""How long threads amid an answer, which nobody waits for any more, may keep the process."""
_BACKLOG: Final = 128


class Served:
    """A server that is up."""

    def __init__(self, server: uvicorn.Server, hub: Hub) -> None:
        self._server = server
        self._hub = hub

    def stop(self) -> None:
        """End it; streams of events first, since they never end by themselves."""
        self._hub.close()
        self._server.should_exit = True


class _QuietServer(uvicorn.Server):
    """Leaves signals to whoever runs it: its own way ends with the signal raised again."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bind(host: str, port: int | None) -> socket.socket:
    """Take a port: the one that was asked for, else the usual one if it is free, else any.

    Raises:
        CommandError: It cannot be had.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise CommandError(f"cannot listen on {host!r}: {error.strerror}") from error
    wanted = (DEFAULT_PORT, 0) if port is None else (port,)
    for number in wanted:
        # Named as TCP, or asyncio would leave Nagle's algorithm on: 40 ms for every answer.
        taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((address[0], number))
            taken.listen(_BACKLOG)
        except OSError as error:
            taken.close()
            if number == wanted[-1]:
                why = error.strerror or str(error)
                raise CommandError(
                    f"cannot listen on port {number} of {host}: {why}; --port 0 takes a free one"
                ) from error
        else:
            return taken
    raise AssertionError  # the last port was taken, or an error raised


def address_lines(access: Access, host: str) -> list[str]:
    """Say where the page is, and how to get there from another machine."""
    shown = host
    if host in ("0.0.0.0", "::"):  # noqa: S104  (only compared)
        shown = socket.gethostname()
    if ":" in shown:
        shown = f"[{shown}]"
    query = "" if access.token is None else f"?token={quote(access.token, safe='')}"
    lines = [f"http://{shown}:{access.port}/{query}"]
    if is_loopback(host):
        there = f"{_user()}@{socket.gethostname()}"
        lines.append(f"From another machine: ssh -L {access.port}:localhost:{access.port} {there}")
    return lines


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may know its user by number only
        return "user"


@asynccontextmanager
async def serving(
    library: Library, access: Access, listening: socket.socket
) -> AsyncIterator[Served]:
    """Serve while the block runs; leaving it waits until everything is let go of."""
    config = uvicorn.Config(
        make_app(library, access),
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = _QuietServer(config)
    served = Served(server, library.hub)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        up = asyncio.create_task(server.is_up.wait())
        await asyncio.wait((up, task), return_when=asyncio.FIRST_COMPLETED)
        up.cancel()
        yield served
    finally:
        served.stop()
        await task


def run_server(
    place: Path,
    access: Access,
    listening: socket.socket,
    *,
    is_single: bool,
    when_up: Callable[[], None],
    until: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serve until SIGINT, SIGTERM, or until something else ends.

    Args:
        place: A run, or a directory of runs.
        access: Who may ask.
        listening: Where.
        is_single: Whether the place is a run.
        when_up: Called once requests are answered.
        until: Ends the server when it returns.
    """
    _log_faults()
    leaving = threading.Timer(_LEAVE_S, os._exit, (0,))
    leaving.daemon = True
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(place, access, listening, is_single, when_up, until, leaving.start))
    # The interpreter must not be taken down under a thread that is inside a library.
    for thread in threading.enumerate():
        if thread.name.startswith(THREAD_PREFIX):
            thread.join()
    leaving.cancel()


async def _serve(
    place: Path,
    access: Access,
    listening: socket.socket,
    is_single: bool,
    when_up: Callable[[], None],
    until: Callable[[], Awaitable[None]] | None,
    when_stopping: Callable[[], None],
) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    library = Library(place, Hub(), is_single=is_single)
    async with serving(library, access, listening):
        when_up()
        waits: list[asyncio.Future[object]] = [asyncio.ensure_future(stopping.wait())]
        if until is not None:
            waits.append(asyncio.ensure_future(until()))
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for each in waits:
            each.cancel()
        # Answers that are now broken off are no faults.
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
        when_stopping()


def _log_faults() -> None:
    """Let faults of ours be seen in the terminal, and nothing else."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("rollscope: %(message)s"))
    log = logging.getLogger("uvicorn")
    log.handlers = [handler]
    log.setLevel(logging.ERROR)
