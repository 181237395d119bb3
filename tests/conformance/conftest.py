"""Fixtures of the suite that every backend of the runner has to pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rollscope.runner import CloseReport, Runner
from tests.conformance.backends import Backend, InLoop, OwnThread, Signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_BACKENDS: dict[str, Callable[[], Backend]] = {
    "thread-asyncio": lambda: OwnThread("asyncio"),
    "thread-uvloop": lambda: OwnThread("uvloop"),
    "in-loop": InLoop,
}


@pytest.fixture(params=_BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Give each way to run a runner."""
    backend = _BACKENDS[request.param]()
    yield backend
    backend.close_all()


@pytest.fixture
def make_runner(backend: Backend) -> Callable[..., Runner]:
    """Make runners that have started, with the settings of `Runner`."""
    return backend.make


@pytest.fixture
def runner(make_runner: Callable[..., Runner]) -> Runner:
    """Give a runner without any limits."""
    return make_runner()


@pytest.fixture
def close(backend: Backend) -> Callable[..., CloseReport]:
    """Close a runner of the backend."""

    def close(runner: Runner, **settings: Any) -> CloseReport:
        return backend.close(runner, **settings)

    return close


@pytest.fixture
def signals(tmp_path: Path) -> Signals:
    """Give a way to talk to tasks in any process."""
    return Signals(tmp_path)
