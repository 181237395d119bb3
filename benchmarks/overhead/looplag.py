"""What tracing does to an event loop: how late the loop wakes those who sleep.

Many coroutines sleep, wake and do a little work, as rollouts do between requests. Traced and
untraced stretches alternate in one process, so that whatever else the machine does hits both; and
they are short and many, so that the median passes over the noisy ones.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter, process_time
from typing import Final

import rollscope as rs
from overhead.measure import Result, Scale

__all__ = ["loop_lag"]

_ROLLOUTS: Final = 200
_SLEEP_S: Final = (0.03, 0.07)
_PIECES: Final = 4
"""Pieces of work per wake-up. Traced each, they make five spans of it, 20,000 a second in all."""
_PROBES: Final = 8
_PROBE_S: Final = 0.005
_SETTLE_S: Final = 0.1
"""Probes wait until the rollouts, which all start at once, have gone out of step."""

_SPIN: Final = """
import os
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while os.getppid() == {parent}:
    sum(range(100_000))
"""

Rollout = Callable[[int, float], Awaitable[int]]


@contextmanager
def _awake_processors() -> Iterator[None]:
    """Keep the processors from going to sleep, where the system can.

    To wake a virtual one takes a busy host up to ten milliseconds, more than all that is measured
    here. What keeps them awake runs at idle priority: everything else goes first.
    """
    count = len(os.sched_getaffinity(0)) if hasattr(os, "SCHED_IDLE") else 0
    command = [sys.executable, "-c", _SPIN.format(parent=os.getpid())]
    spinners = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def _work() -> int:
    """Keep the processor busy for some ten microseconds."""
    return sum(range(600))


async def _plain_rollout(number: int, until: float) -> int:
    dice = random.Random(number)
    while perf_counter() < until:
        await asyncio.sleep(dice.uniform(*_SLEEP_S))
        for _ in range(_PIECES):
            _work()
    return 0


async def _traced_rollout(number: int, until: float, *, pieces_too: bool) -> int:
    """Trace the phases: 4,000 a second, which is what thousands of real rollouts make.

    With every piece of work traced too, 4 us of tracing go on 10 us of work.
    """
    dice = random.Random(number)
    recorded = 0
    with rs.task("bench"), rs.session(sample=number):
        while perf_counter() < until:
            with rs.phase("generate", tokens=number):
                await asyncio.sleep(dice.uniform(*_SLEEP_S))
            recorded += 1
            for piece in range(_PIECES):
                if pieces_too:
                    with rs.span("parse", category="compute", bytes=piece, host="h1"):
                        _work()
                    recorded += 1
                else:
                    _work()
    return recorded


async def _probe(number: int, until: float) -> list[float]:
    """Measure how many seconds too late the loop comes back."""
    await asyncio.sleep(_SETTLE_S + _PROBE_S * number / _PROBES)
    late = []
    while (began := perf_counter()) < until:
        await asyncio.sleep(_PROBE_S)
        late.append(perf_counter() - began - _PROBE_S)
    return late


async def _stretch(rollout: Rollout, duration_s: float) -> tuple[float, int]:
    """Give the 99th percentile of the lag in seconds, and how many spans were recorded."""
    until = perf_counter() + duration_s
    probes = asyncio.gather(*(_probe(number, until) for number in range(_PROBES)))
    recorded = sum(await asyncio.gather(*(rollout(n, until) for n in range(_ROLLOUTS))))
    late = [lag for lags in await probes for lag in lags]
    return statistics.quantiles(late, n=100)[98], recorded


def _run_plain(duration_s: float) -> dict[str, float]:
    cpu, wall = process_time(), perf_counter()
    lag_s, _ = asyncio.run(_stretch(_plain_rollout, duration_s))
    busy = (process_time() - cpu) / (perf_counter() - wall)
    return {"lag_plain_ms": lag_s * 1e3, "busy_plain": busy}


def _run_traced(duration_s: float) -> dict[str, float]:
    return _run_recorded(partial(_traced_rollout, pieces_too=False), "traced", duration_s)


def _run_heavily_traced(duration_s: float) -> dict[str, float]:
    return _run_recorded(partial(_traced_rollout, pieces_too=True), "heavy", duration_s)


def _run_recorded(rollout: Rollout, name: str, duration_s: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory:
        rs.init(run="bench", dir=directory)
        cpu, wall = process_time(), perf_counter()
        lag_s, recorded = asyncio.run(_stretch(rollout, duration_s))
        took = perf_counter() - wall
        busy = (process_time() - cpu) / took
        rs.shutdown()
    return {
        f"lag_{name}_ms": lag_s * 1e3,
        f"busy_{name}": busy,
        f"spans_per_s_{name}": recorded / took,
    }


def loop_lag(scale: Scale) -> Result:
    """Measure the 99th percentile of the loop's lag with and without tracing."""
    result = Result()
    # Who goes first alternates too: a machine that gets busier must not favour one side.
    runs = [_run_plain, _run_traced, _run_heavily_traced]
    with _awake_processors():
        for number in range(scale.lag_pairs * len(runs)):
            if number % len(runs) == 0:
                runs.reverse()
            run = runs[number % len(runs)]
            for name, value in run(scale.lag_s).items():
                result.figures.setdefault(name, []).append(value)
    return result
