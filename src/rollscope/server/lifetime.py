"""How long a viewer stays that a training program has started: as long as its run."""

import asyncio
import sys
from pathlib import Path
from typing import Final

from rollscope.server.listing import has_living_process

__all__ = ["input_closed", "run_ended"]

_LOOK_EVERY_S: Final = 1.0


async def run_ended(run: Path) -> None:
    """Wait until the program that started us has stopped recording, and all others of the run too.

    The program holds the other end of our standard input for as long as it records; however it
    ends, the kernel closes it.
    """
    await input_closed()
    while await asyncio.to_thread(_goes_on, run):  # noqa: ASYNC110  (only the files can tell)
        await asyncio.sleep(_LOOK_EVERY_S)


async def input_closed() -> None:
    """Wait until whoever holds the other end of our standard input lets go of it, or is gone."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
    )
    try:
        while await reader.read(1024):
            pass
    finally:
        transport.close()


def _goes_on(run: Path) -> bool:
    try:
        return has_living_process(run)
    except OSError:  # the run was deleted
        return False
