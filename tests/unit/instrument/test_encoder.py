from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rollscope.model.batch import decode_batch, encode_batch
from rollscope.model.kinds import Kind, Status
from rollscope.model.records import SpanRecord
from rollscope.model.scope import Scope
from tests.builders import make_batch, make_columns, make_row, records_of
from tests.hostile import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable


def read_back(*rows: tuple[Any, ...], attr_max_bytes: int = 4096) -> list[SpanRecord]:
    """Encode rows and read them as a reader would."""
    columns = make_columns(*rows, attr_max_bytes=attr_max_bytes)
    batch = decode_batch(encode_batch(make_batch(spans=columns)))
    return [record for record in records_of(batch) if isinstance(record, SpanRecord)]


SESSION = Scope(b"s" * 16, 41, "gsm8k/1", "group", 7, 3)
PLAIN = [
    make_row(1, "a", attrs={"n": 1, "f": 0.5, "t": "text", "b": True, "none": None}),
    make_row(2, "b", kind=Kind.SESSION, scope=SESSION, fields={"outcome": "accepted"}),
    make_row(3, "a", kind=Kind.STATE, status=Status.ERROR, fields={"lane": "l", "reason": "r"}),
    make_row(4, "c", status=Status.OPEN, parent_id=2, attrs={"unicode": "ünï ✓"}),
    make_row(2**63, "d", scope=SESSION, attrs={"big": 2**64 - 1, "small": -(2**63)}),
]
ODD = make_row(99, "odd", attrs={"needs": {"the": ["slow", "way"]}})


def test_rows_come_back_as_they_were_recorded() -> None:
    spans = read_back(*PLAIN)
    assert [span.name for span in spans] == ["a", "b", "a", "c", "d"]
    assert [span.attrs for span in spans] == [row[8] for row in PLAIN]
    assert [span.status for span in spans] == ["ok", "ok", "error", "open", "ok"]
    assert (spans[1].task_key, spans[1].sample, spans[1].step) == ("gsm8k/1", 3, 41)
    assert spans[1].outcome == "accepted"
    assert (spans[2].lane, spans[2].reason) == ("l", "r")
    assert spans[4].span_id == "8000000000000000"


def test_the_slow_way_gives_the_same_records_as_the_fast_one() -> None:
    fast = read_back(*PLAIN)
    *slow, odd = read_back(*PLAIN, ODD)
    assert slow == fast
    assert odd.attrs == {"needs": {"the": ["slow", "way"]}}


def test_each_row_gives_the_same_record_alone_and_beside_an_odd_one() -> None:
    for row in PLAIN:
        (alone,) = read_back(row)
        beside, _ = read_back(row, ODD)
        assert alone == beside


@pytest.mark.parametrize("count", [1, 15, 16, 17, 31, 32, 33, 100, 70_000])
def test_any_number_of_rows_has_its_attributes_in_order(count: int) -> None:
    spans = read_back(*[make_row(number, attrs={"n": number}) for number in range(1, count + 1)])
    assert [span.attrs for span in spans] == [{"n": number} for number in range(1, count + 1)]


def test_a_long_value_among_many_short_ones_is_cut() -> None:
    rows = [make_row(number, attrs={"t": "short"}) for number in range(1, 101)]
    rows[70] = make_row(71, attrs={"t": "x" * 5000, "n": 3})
    spans = read_back(*rows)
    assert {span.attrs["t"] for span in [*spans[:70], *spans[71:]]} == {"short"}
    assert 4000 < len(spans[70].attrs["t"].encode()) <= 4096
    assert spans[70].attrs["n"] == 3


def test_no_rows_make_no_columns_to_speak_of() -> None:
    assert read_back() == []


@pytest.mark.parametrize(
    "odd",
    [
        lambda: make_row(2, name=Proxy()),
        lambda: make_row(2, name=["a", "list"]),
        lambda: make_row(2, name="\ud800"),
        lambda: make_row(2, name=None),
        lambda: make_row(2, name=7),
        lambda: make_row(2, name="x" * 100_000),
        lambda: make_row(2, attrs={"a": Proxy()}),
        lambda: make_row(2, attrs={"a": [Proxy()]}),
        lambda: make_row(2, attrs={"a": 2**64}),
        lambda: make_row(2, attrs={"a": "\udfff"}),
        lambda: make_row(2, attrs={"\udfff": 1}),
        lambda: make_row(2, scope=Scope(b"t" * 16, Proxy(), Proxy(), Proxy(), 1, "x")),  # type: ignore[arg-type]
        lambda: make_row(2, scope=Scope(b"t" * 16, 2**70, "\ud800", "\ud800", 1, 1.5)),  # type: ignore[arg-type]
        lambda: make_row(2, fields={"lane": Proxy(), "reason": 7, "version_start": "x"}),
        lambda: make_row(2, fields={"version_start": 2**70, "version_end": Proxy()}),
    ],
)
def test_an_odd_row_is_recorded_somehow_and_harms_no_other(
    odd: Callable[[], tuple[Any, ...]],
) -> None:
    first, second, third = read_back(PLAIN[0], odd(), PLAIN[4])
    assert [first, third] == read_back(PLAIN[0], PLAIN[4])
    assert second.span_id == f"{2:016x}"
    assert isinstance(second.name, str)
    assert len(second.name.encode()) <= 512


def test_names_of_any_length_fit_their_field() -> None:
    (span,) = read_back(
        make_row(name="é" * 1000, scope=Scope(b"t" * 16, 1, "k" * 1000, "g" * 1000))
    )
    for text in (span.name, span.task_key, span.group):
        assert text is not None
        assert len(text.encode()) <= 512
        assert text.endswith("…")


def test_a_step_that_is_no_number_is_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    scope = Scope(b"t" * 16, "37")  # type: ignore[arg-type]  # that is the point
    (span,) = read_back(make_row(scope=scope))
    assert span.step is None
    assert len(caplog.messages) == 1
    assert "step" in caplog.messages[0]


def test_whole_numbers_of_any_sort_are_taken() -> None:
    shape = {"__module__": "numpy", "ndim": 0, "item": lambda self: 37}
    number: Any = type("int64", (), shape)()
    scope = Scope(b"t" * 16, number, None, None, None, type("Sample", (int,), {})(3))
    (span,) = read_back(make_row(scope=scope, fields={"version_start": number}))
    assert (span.step, span.sample, span.version_start) == (37, 3, 37)


def test_a_long_value_is_cut_and_its_neighbours_are_not() -> None:
    long, short = read_back(
        make_row(1, attrs={"a": "x" * 1000}), make_row(2, attrs={"a": "y" * 64}), attr_max_bytes=64
    )
    assert long.attrs == {"a": "x" * 61 + "…"}
    assert short.attrs == {"a": "y" * 64}


@pytest.mark.parametrize("character", ["x", "ü", "✓", "🎉"])
def test_no_value_is_longer_than_its_limit_in_bytes(character: str) -> None:
    for length in range(70):
        (span,) = read_back(make_row(attrs={"a": character * length}), attr_max_bytes=64)
        whole = character * length
        size = len(whole.encode())
        assert span.attrs["a"] == whole if size <= 64 else len(span.attrs["a"].encode()) <= 64


def test_more_names_and_scopes_than_a_byte_can_count_come_back() -> None:
    rows = [make_row(n, f"n{n}", scope=Scope(b"t" * 16, n)) for n in range(1, 1001)]
    spans = read_back(*rows)
    assert [(span.name, span.step) for span in spans] == [(f"n{n}", n) for n in range(1, 1001)]


def test_rows_of_one_name_and_scope_name_them_once() -> None:
    columns = make_columns(*(make_row(n) for n in range(1, 101)))
    assert columns.names == ["work"]
    assert len(columns.scopes) == 1
    assert bytes(columns.attrs) == b"\xc0"
