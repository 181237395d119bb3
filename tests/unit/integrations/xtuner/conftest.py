"""A traced program's folder, and what was written there."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.integrations import xtuner
from rollscope.store.fold import read_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollscope.store.fold import Folded


@dataclass
class State:
    """A rollout state with the fields of both generations that a test needs."""

    uid: int = 1
    status: str = "init"
    task_name: str | None = "gsm8k"
    session_uid: int | None = 7
    group_id: int | None = None
    error_msg: str | None = None
    reward: Any = None
    prompt_ids: list[int] | None = None
    response_ids: list[int] | None = None
    extra_fields: dict[str, Any] = field(default_factory=dict)


class Site:
    """Where a test traces to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runtime: xtuner.TraceRuntime | None = None

    def configure(self, **fields: Any) -> xtuner.TraceRuntime:
        given = {"enabled": True, "output_dir": self.folder, "viewer_enabled": False} | fields
        self.runtime = xtuner.configure_trace(given)
        return self.runtime

    def otel(self, **fields: Any) -> xtuner.TraceRuntime:
        return self.configure(classic="otlp", enable_rollout_trace=True, **fields)

    def run(self) -> Folded:
        assert self.runtime is not None
        place = self.runtime.run_dir
        xtuner.close_trace()
        return read_run(place)

    def events(self) -> list[dict[str, Any]]:
        xtuner.close_trace()
        files = sorted(self.folder.glob("producer_trace_*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def spans(self) -> list[dict[str, Any]]:
        assert self.runtime is not None
        path = self.runtime.trace_jsonl_path
        xtuner.close_trace()
        return [
            span
            for line in path.read_text().splitlines()
            for part in json.loads(line)["resourceSpans"]
            for scope in part["scopeSpans"]
            for span in scope["spans"]
        ]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    for name in list(os.environ):
        if name.startswith(("XTUNER_", "OTEL_")):
            monkeypatch.delenv(name)
    xtuner.close_trace()
    yield Site(tmp_path / "out")
    xtuner.close_trace()


@pytest.fixture
def new_state() -> type[State]:
    return State


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are coroutines."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
