"""Programs that record while a page looks; `python -m browsing.programs NAME FOLDER` runs one.

Each reads lines from its input as orders, and writes what is known of it as lines of JSON.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import msgspec

import rollscope as rs

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BUSY_S", "COROUTINES", "RUN", "SPANS"]

RUN: Final = "live"
SPANS: Final = 40
"""Spans that are timed from their start to their pixel."""
BUSY_S: Final = 10.0
_BUSY_RATE: Final = 2_000
"""Spans a second that a busy program records."""
COROUTINES: Final = 2_000
_TICK_S: Final = 0.02


def _say(value: object) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def _order() -> str:
    return sys.stdin.readline().strip()


def _live() -> None:
    """Be idle; at `spans` begin one now and then, at `busy` record many for a while."""
    with rs.task("live/1"), rs.session(sample=0), rs.phase("generate"):
        rs.flush()
        _say("up")
        while order := _order():
            _say(_begin_spans() if order == "spans" else _be_busy())


def _begin_spans() -> list[float]:
    """Begin spans that stay open, at odd moments; give the wall clock at each."""
    source = random.Random(7)
    began = []
    with ExitStack() as open_spans:
        for number in range(SPANS):
            time.sleep(source.uniform(0.15, 0.45))
            began.append(time.time())
            open_spans.enter_context(rs.span("work", number=number))
        time.sleep(2)
    return began


def _be_busy() -> int:
    """Record spans at a rate; give how many."""
    began, recorded = time.perf_counter(), 0
    while (now := time.perf_counter()) - began < BUSY_S:
        due = int((now - began) * _BUSY_RATE)
        for number in range(recorded, due):
            with rs.span("work", number=number, host="h1"):
                pass
        recorded = due
        time.sleep(_TICK_S)
    return recorded


async def _wait_for_ever(gate: asyncio.Event) -> None:
    await gate.wait()


async def _roll_out(number: int, gate: asyncio.Event) -> None:
    async with rs.task(f"task/{number}"), rs.session(deadline_s=0.01):
        with rs.phase("toolcall", tool="browser"):
            await _wait_for_ever(gate)


async def _hang() -> None:
    """Hang in many coroutines until told otherwise."""
    gate = asyncio.Event()
    rs.gauge("slots", COROUTINES, pool="")
    hanging = [asyncio.create_task(_roll_out(number, gate)) for number in range(COROUTINES)]
    await asyncio.sleep(0.5)
    await asyncio.to_thread(rs.flush)
    _say("up")
    await asyncio.to_thread(_order)
    gate.set()
    await asyncio.gather(*hanging)


_PROGRAMS: Final[dict[str, Callable[[], None]]] = {
    "live": _live,
    "hang": lambda: asyncio.run(_hang()),
}

if __name__ == "__main__":
    rs.init(run=RUN, dir=sys.argv[2])
    _PROGRAMS[sys.argv[1]]()
    rs.shutdown()
