from __future__ import annotations

import msgspec
import numpy as np
import pytest

from rollscope.errors import FrameError
from rollscope.model.clockline import ClockLine, ClockMap
from rollscope.model.kinds import Status
from rollscope.store.rawrows import RawRows, find_rows, read_attrs, wall_times
from tests.builders import (
    EPOCH,
    LINE,
    SECOND,
    make_batch,
    make_columns,
    make_event,
    make_row,
    span_batch,
)


@pytest.fixture
def rows() -> RawRows:
    return RawRows(ClockMap([LINE]))


def test_rows_of_several_batches_stand_in_one_column_each(rows: RawRows) -> None:
    rows.add(span_batch(0, make_row(1, "a"), make_row(2, "b", attrs={"n": 1})))
    rows.add(make_batch(1))
    rows.add(span_batch(2, make_row(3, "b", fields={"lane": "x"}), make_row(4, "c")))
    rows.join()
    assert rows.size == 4
    assert rows.span_id.tolist() == [1, 2, 3, 4]
    assert [rows.names[code] for code in rows.name] == ["a", "b", "b", "c"]
    assert rows.fields == {2: {"lane": "x"}}
    assert [rows.attrs[code] for code in rows.attr] == [{}, {"n": 1}, {}, {}]
    assert len(rows.attrs) == 2
    assert rows.start_ns.tolist() == [EPOCH + SECOND] * 4


def test_a_clock_line_that_comes_later_does_not_move_what_was_taken_before() -> None:
    clock = ClockMap([LINE])
    rows = RawRows(clock)
    rows.add(span_batch(0, make_row(1)))
    clock.add(ClockLine(LINE.mono_ns, LINE.wall_ns + SECOND))
    rows.add(span_batch(1, make_row(2), make_row(3)))
    rows.join()
    assert rows.start_ns.tolist() == [EPOCH + SECOND, EPOCH + 2 * SECOND, EPOCH + 2 * SECOND]
    assert (rows.end_ns - rows.start_ns).min() > 0


def test_narrow_and_wide_columns_of_several_batches_are_joined(rows: RawRows) -> None:
    rows.add(span_batch(0, make_row(1, "a"), make_row(2, "b")))
    rows.add(span_batch(1, *(make_row(n + 3, f"name{n}") for n in range(300))), is_late=True)
    rows.join()
    names = ["a", "b", *(f"name{n}" for n in range(300))]
    assert [rows.names[code] for code in rows.name] == names
    assert rows.is_late.tolist() == [False] * 2 + [True] * 300
    assert rows.scope.max() < len(rows.scopes)


def test_attributes_of_starts_are_kept_as_they_came(rows: RawRows) -> None:
    rows.add(
        span_batch(
            0,
            make_row(1, attrs={"a": 1}),
            make_row(2, status=Status.OPEN, attrs={"b": 2}),
            make_event(3, attrs={"c": 3}),
        )
    )
    rows.join()
    assert rows.is_complete.tolist() == [True, False, True]
    assert rows.attrs == [{"a": 1}, {"c": 3}]
    assert read_attrs(rows.start_attrs) == [{"b": 2}]


def test_many_names_and_scopes_need_wider_columns(rows: RawRows) -> None:
    rows.add(span_batch(0, *(make_row(n + 1, f"name{n}") for n in range(300))))
    rows.join()
    assert [rows.names[code] for code in rows.name] == [f"name{n}" for n in range(300)]


@pytest.mark.parametrize("attrs", [[{}], [1, {}], 3, [{1: 2}, {}]])
def test_a_batch_whose_attributes_make_no_sense_adds_nothing(rows: RawRows, attrs: object) -> None:
    columns = make_columns(make_row(1), make_row(2))
    columns.attrs = msgspec.Raw(msgspec.msgpack.encode(attrs))
    with pytest.raises(FrameError, match="attributes"):
        rows.add(make_batch(spans=columns))
    assert (rows.size, rows.attrs) == (0, [])


def test_after_a_batch_that_makes_no_sense_attributes_are_still_told_apart(rows: RawRows) -> None:
    rows.add(span_batch(0, make_row(1, attrs={"a": 1})))
    columns = make_columns(make_row(2), make_row(3))
    columns.attrs = msgspec.Raw(msgspec.msgpack.encode([{"b": 2}, {1: 2}]))
    with pytest.raises(FrameError, match="attributes"):
        rows.add(make_batch(1, spans=columns))
    rows.add(span_batch(2, make_row(4, attrs={"c": 3}), make_row(5, attrs={"b": 2})))
    rows.join()
    assert [rows.attrs[code] for code in rows.attr] == [{"a": 1}, {"c": 3}, {"b": 2}]


@pytest.mark.parametrize("outcome", ["odd", 1, ["accepted"], {}])
def test_a_batch_with_an_unknown_outcome_adds_nothing(rows: RawRows, outcome: object) -> None:
    columns = make_columns(make_row(1))
    columns.fields = {0: {"outcome": outcome}}
    with pytest.raises(FrameError, match="outcome"):
        rows.add(make_batch(spans=columns))
    assert rows.size == 0


def test_fields_of_rows_that_are_not_there_are_nobodys(rows: RawRows) -> None:
    columns = make_columns(make_row(1))
    columns.fields = {1: {"lane": "x"}, -1: {"lane": "y"}}
    rows.add(make_batch(spans=columns))
    rows.add(span_batch(1, make_row(2)))
    assert rows.fields == {}


def test_times_on_several_lines_are_those_of_the_lines() -> None:
    lines = [
        ClockLine(0, EPOCH),
        ClockLine(10 * SECOND, EPOCH + 10 * SECOND, 123_457),
        ClockLine(20 * SECOND, EPOCH + 21 * SECOND, -999_999_999),
    ]
    clock = ClockMap(lines)
    times = [-5, 0, 10 * SECOND - 1, 10 * SECOND, 15 * SECOND + 7, 20 * SECOND, 4_000_000 * SECOND]
    found = wall_times(clock, np.array(times))
    assert found.tolist() == [clock.wall_at(time) for time in times]


@pytest.mark.parametrize("ids", [[5, 6, 9], [2**63, 3, 2**64 - 1], [2**64 - 1], []])
def test_rows_are_found_among_close_and_scattered_ids(ids: list[int]) -> None:
    wanted = [*ids, 7, 0, 2**64 - 2]
    found = find_rows(np.array(ids, np.uint64), np.array(wanted, np.uint64))
    assert found.tolist() == [ids.index(i) if i in ids else -1 for i in wanted]


def test_ids_outside_of_the_table_are_not_found() -> None:
    ids = np.array([2**63 + 5, 2**63 + 2], np.uint64)
    wanted = np.array([0, 1, 2**63 + 1, 2**63 + 2, 2**63 + 3, 2**63 + 6, 2**64 - 1], np.uint64)
    assert find_rows(ids, wanted).tolist() == [-1, -1, -1, 1, -1, -1, -1]


@pytest.mark.parametrize(
    "attrs",
    [
        pytest.param(b"\x81\xa1\xff\x01", id="no UTF-8"),
        pytest.param(b"\x81\xa1a" + b"\x91" * 100_000 + b"\x01", id="deep"),
        pytest.param(b"\x01", id="no map"),
    ],
)
def test_attributes_that_cannot_be_read_are_damage(attrs: bytes) -> None:
    with pytest.raises(FrameError, match="cannot be read"):
        read_attrs([attrs])
