"""A receiver cuts a torn end off and writes on; whoever follows the log must not mind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollscope.store.batches import BatchFollower
from rollscope.store.intake import Intake
from tests.builders import frame_of, make_batch, make_header, make_row, span_batch, write_log

if TYPE_CHECKING:
    from pathlib import Path

FIRST = make_batch(0, header=make_header())
TORN = frame_of(span_batch(1, make_row(1), make_row(2)))[:70]
LATER = [span_batch(number, make_row(number)) for number in range(1, 5)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "log" / "a-1-00000001.rsl", [FIRST], tail=TORN)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_follower_reads_what_stands_where_the_torn_end_was(log: Path, count: int) -> None:
    follower = BatchFollower(log)
    assert [batch.number for batch in follower.poll()] == [0]
    assert follower.waiting_bytes == len(TORN)

    write_log(log, [FIRST, *LATER[:count]])
    assert [batch.number for batch in follower.poll()] == list(range(1, count + 1))
    assert (follower.damaged_bytes, follower.waiting_bytes, follower.problems) == (0, 0, [])


def test_the_spans_of_a_run_are_complete_and_nothing_is_wrong_with_it(log: Path) -> None:
    intake = Intake(log.parents[1])
    assert not any(table for taken in intake.poll() for table in taken.tables.get("spans", []))
    write_log(log, [FIRST, *LATER])
    found = [
        span_id
        for taken in intake.poll()
        for table in taken.tables.get("spans", [])
        for span_id in table["span_id"].to_pylist()
    ]
    assert (found, intake.problems, intake.damage()) == ([1, 2, 3, 4], [], {})


def test_a_frame_larger_than_a_piece_is_still_read(log: Path) -> None:
    write_log(log, [FIRST, span_batch(1, *(make_row(number) for number in range(1, 500)))])
    follower = BatchFollower(log)
    numbers: list[int] = []
    for _ in range(200):
        numbers += [batch.number for batch in follower.poll(max_bytes=256)]
        if not follower.has_more:
            break
    assert numbers == [0, 1]
