from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollscope.store.views import _moved

processes = st.integers(0, 2**64 - 1)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as opened:
        yield opened


def move(
    connection: duckdb.DuckDBPyConnection, times: dict[int, int], offsets: dict[int, int]
) -> dict[int, int]:
    """Let the engine move a time of each process."""
    rows = ", ".join(f"({process}::UBIGINT, {time}::BIGINT)" for process, time in times.items())
    sql = f"SELECT process, {_moved('r.at_ns', offsets)} FROM (VALUES {rows}) r(process, at_ns)"  # noqa: S608
    return dict(connection.execute(sql).fetchall())


@given(st.dictionaries(processes, st.integers(-(10**12), 10**12), max_size=12), processes)
def test_times_are_moved_by_the_offset_of_their_process_only(
    connection: duckdb.DuckDBPyConnection, offsets: dict[int, int], other: int
) -> None:
    times = dict.fromkeys([*offsets, other], 1_700_000_000_000_000_000)
    expected = {process: time + offsets.get(process, 0) for process, time in times.items()}
    assert move(connection, times, offsets) == expected


def test_times_of_a_run_with_good_clocks_are_read_as_they_stand() -> None:
    assert _moved("r.start_ns", {}) == "r.start_ns"
