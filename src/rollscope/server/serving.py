"""A server that comes up, answers, and ends cleanly."""

import asyncio
import gc
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

import uvicorn

from rollscope.collect.collector import Collector
from rollscope.collect.scraping import ScrapeSettings
from rollscope.exposing.pushing import Pushed
from rollscope.server.access import Access
from rollscope.server.app import make_app, make_collector
from rollscope.server.hub import Hub
from rollscope.server.library import Library
from rollscope.server.listening import Listening
from rollscope.server.monitors import Monitors
from rollscope.server.opened import THREAD_PREFIX

__all__ = ["Served", "run_server", "serving"]

_GRACE_S: Final = 1
_KEEP_ALIVE_S: Final = 75
"""Longer than the silence of a sender that has little to say."""
_LEAVE_S: Final = 1.7
"""How long threads amid an answer, which nobody waits for any more, may keep the process."""
_YOUNG_OBJECTS: Final = 50_000


class Served:
    """A server that is up."""

    def __init__(self, server: uvicorn.Server, hub: Hub, collector: Collector) -> None:
        self._server = server
        self._hub = hub
        self.collector = collector

    def stop(self) -> None:
        """End it; streams of events first, since they never end by themselves.

        Who sends on a connection that is still open is told to come again later.
        """
        self.collector.stop()
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


@asynccontextmanager
async def serving(
    library: Library,
    access: Access,
    listening: Listening,
    scrape: ScrapeSettings | None = None,
    monitors: Monitors | None = None,
    pushed: Pushed | None = None,
) -> AsyncIterator[Served]:
    """Serve while the block runs; leaving it waits until everything is let go of."""
    collector = make_collector(library)
    config = uvicorn.Config(
        make_app(library, access, collector, scrape, monitors, pushed),
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
        ssl_certfile=listening.certfile,
        ssl_keyfile=listening.keyfile,
    )
    server = _QuietServer(config)
    served = Served(server, library.hub, collector)
    task = asyncio.create_task(server.serve(sockets=listening.sockets))
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
    listening: Listening,
    *,
    is_single: bool,
    when_up: Callable[[int | None], None],
    until: Callable[[], Awaitable[None]] | None = None,
    scrape: ScrapeSettings | None = None,
    monitors: Monitors | None = None,
    pushed: Pushed | None = None,
) -> None:
    """Serve until SIGINT, SIGTERM, or until something else ends.

    Args:
        place: A run, or a directory of runs.
        access: Who may ask.
        listening: Where.
        is_single: Whether the place is a run.
        when_up: Called once requests are answered, with the port for gRPC, if any.
        until: Ends the server when it returns.
        scrape: Who is asked for metrics.
        monitors: Which monitoring programs stand beside it.
        pushed: Who is sent the metrics of all runs.
    """
    _log_faults()
    _collect_rarely()
    leaving = threading.Timer(_LEAVE_S, os._exit, (0,))
    leaving.daemon = True
    with suppress(KeyboardInterrupt):
        asyncio.run(
            _serve(
                place,
                access,
                listening,
                is_single,
                when_up,
                until,
                leaving.start,
                scrape,
                monitors,
                pushed,
            )
        )
    # The interpreter must not be taken down under a thread that is inside a library.
    for thread in threading.enumerate():
        if thread.name.startswith(THREAD_PREFIX):
            thread.join()
    leaving.cancel()


async def _serve(
    place: Path,
    access: Access,
    listening: Listening,
    is_single: bool,
    when_up: Callable[[int | None], None],
    until: Callable[[], Awaitable[None]] | None,
    when_stopping: Callable[[], None],
    scrape: ScrapeSettings | None,
    monitors: Monitors | None,
    pushed: Pushed | None,
) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    library = Library(place, Hub(), is_single=is_single)
    async with (
        serving(library, access, listening, scrape, monitors, pushed) as served,
        _serving_grpc(listening, access, served.collector) as grpc_port,
    ):
        when_up(grpc_port)
        waits: list[asyncio.Future[object]] = [asyncio.ensure_future(stopping.wait())]
        if until is not None:
            waits.append(asyncio.ensure_future(until()))
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for each in waits:
            each.cancel()
        # Answers that are now broken off are no faults.
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
        served.collector.stop()
        when_stopping()


@asynccontextmanager
async def _serving_grpc(
    listening: Listening, access: Access, collector: Collector
) -> AsyncIterator[int | None]:
    """Take OTLP over gRPC too, if that is asked for, and give the port."""
    if listening.grpc_port is None:
        yield None
        return
    from rollscope.otlp.grpcserver import serving_grpc
    from rollscope.server.routes.otlp import grpc_taker

    async with serving_grpc(
        grpc_taker(collector),
        host=listening.host,
        port=listening.grpc_port,
        token=access.token,
        certificate=await asyncio.to_thread(listening.certificate),
    ) as port:
        yield port


def _collect_rarely() -> None:
    """Look for garbage less often: every look goes over the rows that an answer is made from.

    It was a fifth of what answers took about a step with thousands of sessions in flight.
    """
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])


def _log_faults() -> None:
    """Let faults of ours be seen in the terminal, and nothing else."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("rollscope: %(message)s"))
    log = logging.getLogger("uvicorn")
    log.handlers = [handler]
    log.setLevel(logging.ERROR)
