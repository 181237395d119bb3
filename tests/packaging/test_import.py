from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

TRIES = 20
LIMIT_MS = 50


def probe(code: str) -> Any:
    """Run code in a fresh interpreter that may write bytecode, and read what it prints."""
    hidden = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
    environ = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, timeout=60, check=True
    )
    assert done.stderr == b""
    return json.loads(done.stdout)


LOADED = """
import json, sys
before = set(sys.modules)
import rollscope
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    return set(probe(LOADED))


@pytest.mark.parametrize(
    "name",
    [
        "asyncio",
        "concurrent.futures",
        "ctypes",
        "dataclasses",
        "duckdb",
        "inspect",
        "json",
        "logging",
        "multiprocessing",
        "numpy",
        "pyarrow",
        "ray",
        "rich",
        "socket",
        "starlette",
        "torch",
        "urllib",
        "uvicorn",
    ],
)
def test_importing_loads_nothing_that_a_trainer_would_notice(loaded: set[str], name: str) -> None:
    assert name not in loaded


@pytest.mark.parametrize(
    "part", ["cli", "reports", "screens", "server", "store", "testing", "timeline", "tui", "webui"]
)
def test_importing_loads_no_reader(loaded: set[str], part: str) -> None:
    assert not [name for name in loaded if name.startswith(f"rollscope.{part}")]


def test_importing_does_nothing_but_define() -> None:
    code = """
import atexit, gc, json, os, signal, sys, threading, warnings
def state():
    return {
        "threads": threading.active_count(),
        "environ": dict(os.environ),
        "atexit": atexit._ncallbacks(),
        "sigterm": str(signal.getsignal(signal.SIGTERM)),
        "wakeup": signal.set_wakeup_fd(-1),
        "filters": len(warnings.filters),
        "files": sorted(os.listdir("/proc/self/fd")),
        "cwd": os.listdir("."),
        "collecting": gc.isenabled(),
        "hooks": [str(sys.excepthook), str(threading.excepthook), str(sys.displayhook)],
    }
before = state()
import rollscope
with rollscope.span("x", a=1):
    rollscope.count("n")
after = state()
print(json.dumps({key: [before[key], after[key]] for key in before if before[key] != after[key]}))
"""
    assert probe(code) == {}


def test_importing_takes_less_than_fifty_milliseconds() -> None:
    code = """
import json, time
started = time.perf_counter()
import rollscope
print(json.dumps((time.perf_counter() - started) * 1000))
"""
    best = min_until(lambda: float(probe(code)))
    assert best < LIMIT_MS


def min_until(measure: Any) -> float:
    """Give the best of several tries, the first to be good enough at the latest.

    The first try writes bytecode, and other work may disturb any of them.
    """
    best = measure()
    for _ in range(TRIES):
        if best < LIMIT_MS:
            break
        best = min(best, measure())
    return float(best)
