from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rollscope.store.ledger import Ledger
from rollscope.store.ledgerstate import LedgerState
from rollscope.store.paths import PathTable
from rollscope.store.schema import SPANS
from rollscope.store.segments import is_sound, read_segment, write_segment
from tests.builders import EPOCH, PROCESS, SECOND, make_row, span_batch

if TYPE_CHECKING:
    from pathlib import Path


def spans(*rows: tuple[Any, ...]) -> pa.Table:
    ledger = Ledger(LedgerState(process=PROCESS), PathTable())
    taken, _ = ledger.take([span_batch(0, *rows)])
    return taken.tables["spans"][0]


@pytest.fixture
def table() -> pa.Table:
    rows = [
        make_row(n + 1, f"n{n % 3}", start_ns=(9 - n) * SECOND, end_ns=20 * SECOND, attrs={"n": n})
        for n in range(5)
    ]
    return spans(*rows)


def test_what_was_written_is_read_back_in_order_of_time(tmp_path: Path, table: pa.Table) -> None:
    segment = write_segment(tmp_path, "spans", [table])
    again = read_segment(tmp_path, segment)
    assert again.schema == SPANS
    assert again.to_pylist() == sorted(table.to_pylist(), key=lambda row: row["start_ns"])
    assert (segment.rows, segment.size) == (5, (tmp_path / segment.file).stat().st_size)
    assert (segment.low_ns, segment.high_ns) == (EPOCH + 5 * SECOND, EPOCH + 20 * SECOND)


def test_pieces_with_words_of_their_own_become_one_segment(tmp_path: Path, table: pa.Table) -> None:
    other = spans(make_row(100, "another", attrs={"tool": "python"}))
    segment = write_segment(tmp_path, "spans", [table, other])
    names = read_segment(tmp_path, segment)["name"].to_pylist()
    assert sorted(names) == ["another", "n0", "n0", "n1", "n1", "n2"]


def test_a_column_that_a_segment_does_not_have_yet_is_null(tmp_path: Path, table: pa.Table) -> None:
    segment = write_segment(tmp_path, "spans", [table])
    path = tmp_path / segment.file
    pq.write_table(pq.read_table(path).drop_columns(["reward", "lane"]), path)
    again = read_segment(tmp_path, segment)
    assert again["reward"].null_count == again["lane"].null_count == 5
    assert again.schema == SPANS


def test_a_segment_is_sound_until_something_happens_to_it(tmp_path: Path, table: pa.Table) -> None:
    segment = write_segment(tmp_path, "spans", [table])
    path = tmp_path / segment.file
    data = path.read_bytes()
    assert is_sound(tmp_path, segment)
    assert is_sound(tmp_path, segment, deep=True)
    path.write_bytes(data[:-1])
    assert not is_sound(tmp_path, segment)
    path.write_bytes(bytes(len(data)))
    assert not is_sound(tmp_path, segment)
    path.write_bytes(data[:8] + bytes(len(data) - 16) + data[-8:])
    assert is_sound(tmp_path, segment)
    assert not is_sound(tmp_path, segment, deep=True)
    path.unlink()
    assert not is_sound(tmp_path, segment)


def test_a_segment_that_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, table: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_segment(tmp_path, "spans", [table])
    assert list(tmp_path.iterdir()) == []
