"""Executors for tests, and which arrays they are run with: numpy's, or those that a variable names.

`ROLLSCOPE_TEST_ARRAYS=torch` runs the same tests with tensors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from rollscope.rollout import arrays
from rollscope.rollout.executor import WorkflowExecutor
from tests.unit.rollout.executors import Scripted, started

# Read here, since each test starts with the settings of the environment taken away.
_KIND = cast("arrays.ArrayKind", os.environ.get("ROLLSCOPE_TEST_ARRAYS", "numpy"))


@pytest.fixture(autouse=True)
def chosen_arrays(monkeypatch: pytest.MonkeyPatch) -> arrays.Arrays:
    """Make arrays of the kind that is tested, whatever else is installed."""
    monkeypatch.setattr(arrays, "_chosen", None)
    return arrays.choose_arrays(_KIND)


@pytest.fixture
def make() -> Iterator[Callable[..., WorkflowExecutor]]:
    made: list[WorkflowExecutor] = []

    def make(*args: Any, **settings: Any) -> WorkflowExecutor:
        made.append(started(*args, **settings))
        return made[-1]

    yield make
    for executor in made:
        executor.destroy()


@pytest.fixture
def executor(make: Callable[..., WorkflowExecutor]) -> WorkflowExecutor:
    return make()


@pytest.fixture
def workflow() -> Scripted:
    return Scripted()
