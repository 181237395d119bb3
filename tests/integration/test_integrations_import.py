"""Every module of `rollscope.integrations` in a fresh interpreter: importing does nothing else."""

from __future__ import annotations

import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rollscope.integrations

ORIGINALS = ("areal", "opentelemetry", "rl_insight", "slime", "trl", "verifiers", "verl", "xtuner")
HEAVY = (
    *("aiohttp", "duckdb", "fastapi", "grpc", "httpx", "numpy", "omegaconf", "openai", "pandas"),
    *("prometheus_client", "pyarrow", "pydantic", "ray", "starlette", "torch", "transformers"),
    *("uvicorn", "yaml"),
)
INSTALLING = "installed"
"""The last word of modules whose import is a wish to take the original's name."""
MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(rollscope.integrations.__path__, "rollscope.integrations.")
)
PACKAGES = sorted({".".join(name.split(".")[:3]) for name in MODULES})

PROBE = """
import atexit, importlib, json, logging, os, sys, threading, warnings

def state():
    return {
        "threads": threading.active_count(),
        "environ": dict(os.environ),
        "atexit": atexit._ncallbacks(),
        "filters": len(warnings.filters),
        "level": logging.getLogger().level,
        "handlers": len(logging.getLogger().handlers),
        "files": len(os.listdir("/proc/self/fd")),
    }

before = state()
for name in sys.argv[1:]:
    importlib.import_module(name)
after = state()
changed = {key: [before[key], after[key]] for key in before if before[key] != after[key]}
print(json.dumps({"loaded": sorted(sys.modules), "changed": changed}))
"""


def probe(names: list[str]) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *names],
        capture_output=True,
        cwd=Path(__file__).parent,
        env={**os.environ, "ROLLSCOPE": "off"},
        timeout=60,
        check=True,
    )
    assert done.stderr == b""
    return json.loads(done.stdout)


def test_the_walk_finds_the_three_stand_ins() -> None:
    names = ("areal", "rl_insight", "xtuner")
    assert {f"rollscope.integrations.{name}" for name in names} <= set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_every_module_loads_no_original_and_starts_nothing(package: str) -> None:
    names = [
        name
        for name in MODULES
        if f"{name}.".startswith(f"{package}.") and not name.endswith(f".{INSTALLING}")
    ]
    found = probe(names)
    roots = {name.partition(".")[0] for name in found["loaded"]}
    assert roots & {*ORIGINALS, *HEAVY} == set()
    assert found["changed"] == {}
