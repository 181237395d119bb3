"""Whole numbers in the spellings that programs hand over."""

from typing import Any

import numpy as np
import pytest

from rollscope.integrations.wholes import whole
from tests.hostile import Hostile, Proxy


@pytest.mark.parametrize("value", [7, 7.0, "7", "7.0", np.int64(7), np.float32(7)])
def test_every_spelling_is_read_alike(value: Any) -> None:
    assert whole(value) == 7


@pytest.mark.parametrize("value", [None, True, 7.5, "x", "", float("nan"), 2**70, b"7", [7]])
def test_what_is_no_whole_number_is_none(value: Any) -> None:
    assert whole(value) is None


def test_nothing_is_asked_of_the_hosts_objects() -> None:
    assert whole(Hostile()) is None
    assert whole(Proxy()) is None
