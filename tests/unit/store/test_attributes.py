from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pytest

from rollscope.store.attributes import PROMOTED, family_of, json_column, read_columns, whole_number
from rollscope.store.schema import SPANS


def promoted(*maps: dict[str, Any]) -> dict[str, list[Any]]:
    return {
        name: column.to_pylist() for name, column in read_columns(maps, PROMOTED, SPANS).items()
    }


@pytest.mark.parametrize(
    ("column", "attrs", "value"),
    [
        ("detail", {"tool": "python"}, "python"),
        ("detail", {"service": 7}, "7"),
        ("detail", {"env": "a", "tool": "b"}, "b"),
        ("detail", {"tool": ["x"]}, None),
        ("tokens_out", {"tokens": 7}, 7),
        ("tokens_out", {"tokens": 7.0}, 7),
        ("tokens_out", {"tokens": 7.5}, None),
        ("tokens_out", {"tokens": True}, None),
        ("tokens_out", {"tokens": "7"}, None),
        ("tokens_out", {"tokens": 2**63}, None),
        ("tokens_out", {"tokens": -(2**63)}, -(2**63)),
        ("tokens_in", {"prompt_tokens": 3}, 3),
        ("waited_ns", {"queue_wait_s": 0.5}, 500_000_000),
        ("waited_ns", {"queue_wait_s": 2}, 2_000_000_000),
        ("waited_ns", {"queue_wait_s": math.nan}, None),
        ("waited_ns", {"queue_wait_s": math.inf}, None),
        ("waited_ns", {"queue_wait_s": 1e300}, None),
        ("link", {"waits_for": "00000000000000ff"}, 255),
        ("link", {"waits_for": "ff"}, None),
        ("link", {"waits_for": "zz" * 8}, None),
        ("reward", {"reward": 1}, 1.0),
        ("reward", {"reward": "high"}, None),
    ],
)
def test_a_column_is_read_from_what_programs_call_it(
    column: str, attrs: dict[str, Any], value: object
) -> None:
    assert promoted(attrs)[column] == [value]
    # The same among others, which may be read in one go.
    assert promoted({}, {"tokens": 1, "reward": 0.5}, attrs, {})[column][2] == value


def test_one_value_that_fits_no_column_does_not_spoil_the_others() -> None:
    found = promoted({"tokens": 1}, {"tokens": 2**64 - 1}, {"tokens": 3})
    assert found["tokens_out"] == [1, None, 3]


def test_columns_of_some_rows_are_null_elsewhere() -> None:
    found = read_columns(
        [{"reward": 1.0}, {"reward": 2.0}],
        PROMOTED,
        SPANS,
        places=np.array([3, 1]),
        size=5,
    )
    assert found["reward"].to_pylist() == [None, 2.0, None, 1.0, None]
    assert found["detail"].null_count == 5


@pytest.mark.parametrize(("value", "number"), [(3, 3), (3.0, 3), (True, None), (None, None)])
def test_a_whole_number_is_told_from_the_rest(value: object, number: int | None) -> None:
    assert whole_number(value) == number


def test_each_value_is_json_of_its_own() -> None:
    values: list[Any] = [{}, {"a": "two\nlines\r\n"}, [1, None], {"ü": {"b": [True]}}, "", {}]
    assert [json.loads(text) for text in json_column(values).to_pylist()] == values
    assert json_column([]).to_pylist() == []


@pytest.mark.parametrize(
    "value",
    [
        b"\xff\x00",
        math.nan,
        datetime(2026, 1, 1, tzinfo=UTC),
        {1: 2},
        msgspec.msgpack.Ext(5, b"x"),
    ],
)
def test_whatever_a_frame_may_hold_becomes_json(value: object) -> None:
    (text,) = json_column([{"a": value}]).to_pylist()
    assert "a" in json.loads(text)


@pytest.mark.parametrize(
    ("key", "family"), [("math/1", "math"), ("a/b/c", "a"), ("plain", None), (None, None)]
)
def test_a_family_is_what_precedes_the_first_slash(key: str | None, family: str | None) -> None:
    assert family_of(key) == family
