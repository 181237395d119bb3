from __future__ import annotations

import asyncio
import copy
import os
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from rollscope.rollout.reward import AsyncRewardWrapper, RewardFailed, default_workers
from tests.unit.rollout.reward import functions


def _nested() -> Any:
    def reward() -> float:
        return 1.0

    return reward


@pytest.mark.parametrize("function", [lambda: 1.0, _nested(), threading.Lock().acquire])
def test_a_function_that_cannot_travel_is_refused_with_what_to_do(function: Any) -> None:
    with pytest.raises(TypeError, match="top level of a module"):
        AsyncRewardWrapper(function)


@pytest.mark.parametrize("path", ["length", "a b.c", "", "pkg..f"])
def test_text_that_is_no_import_path_is_refused(path: str) -> None:
    with pytest.raises(TypeError, match="import path"):
        AsyncRewardWrapper(path)


def test_something_that_cannot_be_called_is_refused() -> None:
    nothing: Any = 3
    with pytest.raises(TypeError, match="int"):
        AsyncRewardWrapper(nothing)


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout_seconds": 0},
        {"timeout_seconds": float("nan")},
        {"timeout_seconds": float("inf")},
        {"max_workers": 0},
        {"max_retries": -1},
        {"on_failure": "ignore"},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        AsyncRewardWrapper(functions.length, **wrong)


def test_an_argument_that_cannot_travel_is_the_callers_error_and_starts_nothing() -> None:
    with pytest.raises(TypeError, match="plain values"):
        asyncio.run(AsyncRewardWrapper(functions.length, max_workers=31)(threading.Lock()))


def test_the_error_says_reason_and_tries_and_can_travel() -> None:
    failure = copy.copy(RewardFailed("reward_timeout", 4, "too slow"))  # as pickle does
    assert (failure.reason, failure.attempts, failure.detail) == ("reward_timeout", 4, "too slow")
    assert str(failure) == "reward_timeout after 4 tries: too slow"


@pytest.mark.parametrize(
    ("cpus", "devices", "workers"), [(16, "", 8), (16, "0,1", 4), (1, "", 1), (4, "0,1,2,3", 1)]
)
def test_half_of_the_cpus_per_device_work_but_at_least_one(
    monkeypatch: pytest.MonkeyPatch, cpus: int, devices: str, workers: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cpus)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", devices)
    assert default_workers() == workers


def test_devices_are_counted_by_torch_where_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimpleNamespace(is_available=lambda: True, device_count=lambda: 4)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(32)))
    assert default_workers() == 4
