"""What a payload holds is told about, whatever it is, and without looking at more than needed."""

from __future__ import annotations

from typing import Any

import pytest

from rollscope.instrument.heldbytes import held_bytes

LIMIT = 1_000_000


def holding_itself() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


class Refusing:
    def __sizeof__(self) -> int:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("x" * 50_000, 50_000, 51_000),
        (b"x" * 50_000, 50_000, 51_000),
        ([{"role": "user", "content": ("x" * 10_000,)}] * 3, 30_000, 35_000),
        ({"tokens": list(range(1_000))}, 30_000, 40_000),
        (None, 1, 100),
        (Refusing(), 1, 100),
        (["x" * 900] * 100_000, LIMIT, 3 * LIMIT),
        (holding_itself(), LIMIT, 3 * LIMIT),
    ],
    ids=["text", "bytes", "messages", "tokens", "none", "odd", "too-much", "holding-itself"],
)
def test_the_bytes_that_a_value_holds_are_told_about(value: Any, least: int, most: int) -> None:
    assert least <= held_bytes(value, LIMIT) <= most
