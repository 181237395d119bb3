from __future__ import annotations

import importlib
import os
import subprocess
import sys
from typing import Any

import pytest

from rollscope.errors import MissingExtra
from rollscope.rollout import arrays
from rollscope.rollout.arrays import Arrays, Dtype, arrays_of, choose_arrays, is_array


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "bool"])
def test_an_array_has_the_type_asked_for(dtype: Dtype) -> None:
    made = choose_arrays().array([[1, 0, 1]], dtype)
    assert (tuple(made.shape), made.ndim) == ((1, 3), 2)
    assert str(made.dtype).rpartition(".")[2] == dtype


def test_a_filled_array_holds_the_values_of_all_it_is_like(chosen_arrays: Arrays) -> None:
    whole = chosen_arrays.array([1], "int32")
    broken = chosen_arrays.array([0.5], "float32")
    made: Any = chosen_arrays.full([2, 2], 0.25, [whole, broken])
    assert made.tolist() == [[0.25, 0.25], [0.25, 0.25]]


def test_an_array_knows_its_library(chosen_arrays: Arrays) -> None:
    made = chosen_arrays.array([1], "int32")
    assert arrays_of(made).kind == chosen_arrays.kind
    assert is_array(made)
    assert not is_array([1])


def test_the_choice_stays_until_another_is_made(chosen_arrays: Arrays) -> None:
    assert choose_arrays() is chosen_arrays
    assert choose_arrays("numpy").kind == "numpy"
    assert choose_arrays().kind == "numpy"


def test_torch_is_chosen_where_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", sys.modules.get("torch", os))
    assert arrays._best_kind() == "torch"


def test_a_missing_library_is_told_with_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", fail)
    arrays._load.cache_clear()
    with pytest.raises(MissingExtra, match=r"rollscope\[rollout\]"):
        choose_arrays("numpy")


def test_importing_the_package_loads_no_library_and_starts_no_thread() -> None:
    program = (
        "import sys, threading, rollscope.rollout\n"
        "heavy = {'numpy', 'torch', 'PIL', 'ray', 'openai', 'aiohttp', 'uvloop'}\n"
        "print(sorted(heavy & set(sys.modules)), threading.active_count())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[0] == "[] 1"
