from __future__ import annotations

import dataclasses
import datetime
import json
from typing import Any

import pytest

from rollscope.instrument.snapshot import snapshot_payload
from tests.hostile import Hostile

LIMIT = 10_000


@dataclasses.dataclass
class Message:
    role: str
    content: str


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1.5,
        "text",
        "ünï ✓ \0",
        [],
        {},
        [{"role": "user", "content": "hi"}] * 3,
        list(range(2000)),
        {"deep": [[[[[[[["x"]]]]]]]]},
    ],
    ids=range(10),
)
def test_a_payload_becomes_json_that_reads_back_equal(value: object) -> None:
    text, cut = snapshot_payload(value, LIMIT)
    assert json.loads(text) == value
    assert not cut


def test_common_types_have_their_usual_json_form() -> None:
    value = [Message("user", "hi"), (1, 2), {3}, datetime.date(2024, 5, 6), {7: "seven"}]
    text, cut = snapshot_payload(value, LIMIT)
    assert json.loads(text) == [
        {"role": "user", "content": "hi"},
        [1, 2],
        [3],
        "2024-05-06",
        {"7": "seven"},
    ]
    assert not cut


def test_an_object_inside_becomes_the_name_of_its_type() -> None:
    text, cut = snapshot_payload([1, Hostile(), 2], LIMIT)
    assert json.loads(text) == [1, "<tests.hostile.Hostile>", 2]
    assert not cut


@pytest.mark.parametrize("limit", [64, 100, 1000])
@pytest.mark.parametrize("value", ["x" * 5000, "✓" * 5000, ["🎉"] * 5000, {"a": "\n" * 5000}])
def test_a_long_payload_is_cut_to_the_limit_in_bytes(value: object, limit: int) -> None:
    text, cut = snapshot_payload(value, limit)
    assert cut
    assert limit - 4 <= len(text.encode()) <= limit


def test_a_payload_of_just_the_limit_is_whole() -> None:
    text, cut = snapshot_payload("x" * 62, 64)
    assert (len(text), cut) == (64, False)
    text, cut = snapshot_payload("x" * 63, 64)
    assert (len(text), cut) == (64, True)


def endless() -> list[Any]:
    value: list[Any] = [1]
    value.append(value)
    return value


def fallen() -> Message:
    message = Message("user", "hi")
    del message.content
    return message


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: ["\ud800", "kept"], "kept"),
        (lambda: [2**70, "kept"], "kept"),
        (lambda: {("a", "tuple"): "kept"}, "kept"),
        (lambda: [endless(), "kept"], "kept"),
        (lambda: [fallen(), "kept"], "kept"),
    ],
)
def test_what_json_cannot_hold_does_not_cost_the_rest(make: Any, expected: str) -> None:
    text, _ = snapshot_payload(make(), LIMIT)
    assert expected in text
    json.loads(text)


@pytest.mark.parametrize("odd", ["\ud800", 2**70])
def test_half_a_character_or_a_huge_number_does_not_shorten_a_conversation(odd: object) -> None:
    messages = [Message("user", f"message {n}") for n in range(200)]
    text, cut = snapshot_payload([*messages, odd], 1_000_000)
    assert json.loads(text) == [*map(dataclasses.asdict, messages), odd]
    assert not cut


def test_a_payload_that_lost_something_on_the_way_says_so() -> None:
    text, cut = snapshot_payload([*range(200), endless()], 1_000_000)
    assert len(json.loads(text)) < 201
    assert cut
