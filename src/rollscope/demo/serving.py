"""What the demo's small HTTP servers share: a port of their own, and an end with their parent."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable

from aiohttp import web
from aiohttp.log import server_logger

__all__ = ["serve"]


async def serve(app: web.Application, until: Callable[[], bool] = lambda: False) -> None:
    """Serve on a free port, tell it as the first line of output, and end when stdin closes.

    Whoever started the process holds the other end of stdin; the kernel closes it if they die.
    """
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    (address,) = runner.addresses
    sys.stdout.write(f"{address[1]}\n")
    sys.stdout.flush()
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    loop.add_reader(sys.stdin.fileno(), _read_end, over)
    with contextlib.suppress(asyncio.CancelledError):
        while not over.is_set() and not until():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), 0.5)
    loop.remove_reader(sys.stdin.fileno())
    # A request that ends just as its connection is closed is none of the user's troubles.
    server_logger.disabled = True
    await runner.cleanup()


def _read_end(over: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        over.set()
