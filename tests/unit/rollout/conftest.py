"""Which arrays the tests of rollouts are run with: numpy's, or those that a variable names.

`ROLLSCOPE_TEST_ARRAYS=torch` runs the same tests with tensors.
"""

from __future__ import annotations

import os
from typing import cast

import pytest

from rollscope.rollout import arrays

# Read here, since each test starts with the settings of the environment taken away.
_KIND = cast("arrays.ArrayKind", os.environ.get("ROLLSCOPE_TEST_ARRAYS", "numpy"))


@pytest.fixture(autouse=True)
def chosen_arrays(monkeypatch: pytest.MonkeyPatch) -> arrays.Arrays:
    """Make arrays of the kind that is tested, whatever else is installed."""
    monkeypatch.setattr(arrays, "_chosen", None)
    return arrays.choose_arrays(_KIND)
