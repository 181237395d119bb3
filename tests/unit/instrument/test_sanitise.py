from __future__ import annotations

import datetime
import decimal
import enum
import math
import pathlib
import time
import tracemalloc
import uuid
from typing import Any

import msgspec
import pytest

from rollscope.instrument.sanitise import clean_attrs, clean_text, clean_value
from tests.hostile import Hostile, Proxy

LIMIT = 4096


def clean(value: object, limit: int = LIMIT) -> Any:
    """Clean one value and see to it that it can be written."""
    cleaned = clean_attrs({"key": value}, limit)["key"]
    msgspec.msgpack.encode(cleaned)
    return cleaned


class HostileText(str):
    def _refuse(self, *args: object) -> Any:
        raise AssertionError("the host's code was run")

    __slots__ = ()
    __repr__ = __str__ = __len__ = __iter__ = __getitem__ = _refuse
    encode = isascii = _refuse  # type: ignore[assignment]


class HostileList(list[Any]):
    def _refuse(self, *args: object) -> Any:
        raise AssertionError("the host's code was run")

    __repr__ = __len__ = __iter__ = __getitem__ = _refuse


class HostileMap(dict[Any, Any]):
    def _refuse(self, *args: object) -> Any:
        raise AssertionError("the host's code was run")

    __repr__ = __len__ = __iter__ = __getitem__ = items = keys = values = _refuse


class Colour(enum.Enum):
    RED = "red"
    DEEP = {"a": [1]}  # noqa: RUF012  (an enum's value, not a class attribute)


class Level(enum.IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -(2**63),
        2**64 - 1,
        1.5,
        -0.0,
        math.inf,
        "",
        "text",
        "ünïcödé ✓ 🎉",
        "nul \0 and \x7f",
        [],
        {},
        [1, 2.5, None, "x", [True]],
        {"a": {"b": [1, {"c": None}]}},
    ],
    ids=repr,
)
def test_plain_values_stay_as_they_are(value: object) -> None:
    assert clean(value) == value
    assert type(clean(value)) is type(value)


def test_not_a_number_stays_so() -> None:
    assert math.isnan(clean(math.nan))


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [
        ((1, 2), [1, 2]),
        ({7}, [7]),
        (frozenset({7}), [7]),
        (b"\x01\xff", "01ff"),
        (bytearray(b"\x01"), "01"),
        pytest.param(memoryview(b"\x01\x02\x03\x04")[::1], "01020304", id="memoryview"),
        (2**64, "0x10000000000000000"),
        (-(2**63) - 1, "-0x8000000000000001"),
        ("\ud800", "\\ud800"),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (datetime.date(2024, 5, 6), "2024-05-06"),
        (datetime.datetime(2024, 5, 6, 7, 8, tzinfo=datetime.UTC), "2024-05-06 07:08:00+00:00"),
        (datetime.timedelta(seconds=90), "0:01:30"),
        (decimal.Decimal("1.10"), "1.10"),
        (pathlib.Path("/a/b"), "/a/b"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({1: "a", None: "b"}, {"1": "a", "NoneType": "b"}),
        (type("F", (float,), {})(2.5), 2.5),
        (type("I", (int,), {})(2), 2),
        (type("S", (str,), {})("s"), "s"),
        (type("L", (list,), {})([1]), [1]),
        (type("D", (dict,), {})(a=1), {"a": 1}),
    ],
    ids=repr,
)
def test_what_has_a_plain_form_takes_it(value: object, cleaned: object) -> None:
    assert clean(value) == cleaned
    assert type(clean(value)) is type(cleaned)


@pytest.mark.parametrize("kind", [Hostile, Proxy, object, complex, type(len), type], ids=str)
def test_an_object_becomes_the_name_of_its_type_and_none_of_its_code_runs(kind: type) -> None:
    odd: Any = {type: Hostile, type(len): len}.get(kind) or kind()
    name = f"<{kind.__module__}.{kind.__qualname__}>"
    assert clean(odd) == name
    assert clean([odd]) == [name]
    assert clean({"inner": odd}) == {"inner": name}


def test_containers_with_code_of_their_own_are_read_without_it() -> None:
    assert clean(HostileText("text")) == "text"
    assert clean(HostileList([1, 2])) == [1, 2]
    assert clean(HostileMap(a=1)) == {"a": 1}


def test_a_wait_that_a_repr_would_cost_is_not_paid() -> None:
    class Slow:
        def __repr__(self) -> str:
            time.sleep(3600)
            return "slow"

    assert str(clean(Slow())).endswith("Slow>")


@pytest.mark.parametrize("ndim", [0, 1])
def test_a_numpy_scalar_is_taken_for_its_value_and_an_array_is_not(ndim: int) -> None:
    shape = {"__module__": "numpy", "ndim": ndim, "item": lambda self: 2.5}
    value = type("float32", (), shape)()
    assert clean(value) == (2.5 if ndim == 0 else "<numpy.float32>")


def test_a_numpy_scalar_that_gives_no_plain_value_is_named() -> None:
    shape = {"__module__": "numpy", "ndim": 0, "item": lambda self: self}
    assert clean(type("void", (), shape)()) == "<numpy.void>"


def test_each_unknown_type_is_told_once_per_attribute(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        clean_attrs({"loss": Hostile(), "other": Hostile()}, LIMIT)
    assert len(caplog.messages) == 2
    assert "'loss'" in caplog.messages[0]
    assert "Hostile" in caplog.messages[0]


@pytest.mark.parametrize("limit", [64, 100, 4096])
@pytest.mark.parametrize("text", ["x", "ü", "✓", "🎉", "\ud800", "\0"])
def test_long_text_is_cut_to_the_limit_in_bytes_and_marked(text: str, limit: int) -> None:
    cut = clean(text * limit * 3, limit)
    assert len(cut.encode()) <= limit
    assert len(cut.encode()) > limit - 12
    assert cut.endswith("…")


@pytest.mark.parametrize("text", ["x", "ü", "✓", "🎉"])
def test_text_of_just_the_limit_stays_whole(text: str) -> None:
    whole = text * (64 // len(text.encode()))
    assert clean(whole, 64) == whole
    assert clean(whole + text, 64) != whole + text


def test_a_cut_is_told_once_with_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        clean("x" * 5000)
    assert len(caplog.messages) == 1
    assert "rollscope.payload" in caplog.messages[0]


@pytest.mark.parametrize("value", ["x", "ü", b"x", bytearray(b"x"), ["x"], ("x",)], ids=repr)
def test_huge_values_are_neither_copied_nor_worked_through(value: Any) -> None:
    huge = value * 20_000_000
    tracemalloc.start()
    try:
        cleaned = clean(huge)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(msgspec.msgpack.encode(cleaned)) <= LIMIT + 3
    assert peak_bytes < 200_000


def test_bytes_are_within_the_limit_as_text() -> None:
    assert len(clean(b"\xff" * 10_000, 64)) <= 64


def test_a_long_list_is_cut_and_says_how_long_it_was() -> None:
    cleaned = clean(list(range(1000)))
    assert cleaned[:64] == list(range(64))
    assert cleaned[64:] == ["… 1000 in all"]


def test_a_long_map_is_cut() -> None:
    assert len(clean({str(n): n for n in range(1000)})) == 64


def test_lists_and_maps_that_hold_themselves_come_to_an_end() -> None:
    endless: list[Any] = [1]
    endless.append(endless)
    circular: dict[str, Any] = {"list": endless}
    circular["self"] = circular
    assert clean(endless)[:1] == [1]
    assert "self" in clean(circular)


@pytest.mark.parametrize("width", [2, 64])
def test_what_unfolds_to_millions_of_items_is_bounded(width: int) -> None:
    bush: list[Any] = []
    bush.extend([bush] * width)
    thicket: dict[int, Any] = {}
    thicket.update(dict.fromkeys(range(width), thicket))
    deep: Any = "x" * 100
    for _ in range(10):
        deep = [deep] * width
    for value in (bush, thicket, deep):
        assert len(msgspec.msgpack.encode(clean(value))) < 32 * LIMIT


def test_nesting_beyond_reason_is_cut() -> None:
    deep: Any = "bottom"
    for _ in range(100_000):
        deep = [deep]
    assert "bottom" not in str(clean(deep))


def test_a_key_that_is_no_text_becomes_text() -> None:
    cleaned = clean_attrs({1: "a", Hostile: "b", "\ud800": "c", ("t",): "d"}, LIMIT)  # type: ignore[dict-item]
    assert set(cleaned.values()) == {"a", "b", "c", "d"}
    assert {"1", "\\ud800"} < set(cleaned)
    msgspec.msgpack.encode(cleaned)


def test_what_fails_while_it_is_read_does_not_take_the_others_along() -> None:
    released = memoryview(b"123")
    released.release()
    strided = memoryview(bytes(range(16)))[::2]
    cleaned = clean_attrs({"a": 1, "b": released, "c": strided, "d": 2}, LIMIT)
    assert (cleaned["a"], cleaned["d"]) == (1, 2)
    assert "memoryview" in cleaned["b"]


def test_a_name_that_is_no_text_becomes_text() -> None:
    assert clean_text(7, 64) == "7"
    assert clean_text(None, 64) == "None"
    assert clean_text(10**5000, 64).startswith("0x")
    assert clean_text(["a", 1], 64) == "['a', 1]"
    assert clean_text(Hostile(), 512).endswith("Hostile>")
    assert clean_text(Proxy(), 512).endswith("Proxy>")
    assert clean_text(HostileText("text"), 512) == "text"


def test_a_value_on_its_own_is_cleaned_in_the_same_way() -> None:
    assert clean_value((1, b"\1"), LIMIT, "somewhere") == [1, "01"]
