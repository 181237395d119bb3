from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from rollscope.store import rowgroups
from rollscope.store.rowgroups import row_groups, sort_rows
from rollscope.store.schema import TABLES


def spans(*runs: tuple[str, int, int], first: int = 0) -> pa.Table:
    """Make spans: so many of a kind of a process, and so on, each with a task of its own."""
    kinds = [kind for kind, _, count in runs for _ in range(count)]
    columns = {
        "kind": pa.array(kinds).dictionary_encode(),
        "process": pa.array([p for _, p, count in runs for _ in range(count)], pa.uint64()),
        "start_ns": pa.array(np.arange(first, first + len(kinds))),
        "task_key": pa.array([f"task/{n}" for n in range(len(kinds))]).dictionary_encode(),
    }
    arrays = [
        columns[field.name] if field.name in columns else pa.nulls(len(kinds), field.type)
        for field in TABLES["spans"]
    ]
    return pa.table(arrays, schema=TABLES["spans"])


def contents(groups: list[pa.Table]) -> list[list[tuple[str, int]]]:
    """Say of what kinds and processes each group is made."""
    return [
        list(dict.fromkeys(zip(*(g[c].to_pylist() for c in ("kind", "process")), strict=True)))
        for g in groups
    ]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowgroups, "_LEAST_SPANS", 10)
    monkeypatch.setattr(rowgroups, "_MOST_SPANS", 20)
    monkeypatch.setattr(rowgroups, "_OTHERS", 8)


def test_rows_in_order_are_left_alone() -> None:
    ordered = sort_rows("spans", spans(("phase", 2, 3), ("phase", 1, 3)))
    assert ordered["process"].to_pylist() == [1, 1, 1, 2, 2, 2]
    assert sort_rows("spans", ordered) is ordered


def test_groups_of_spans_end_with_the_rows_of_a_process() -> None:
    pieces = [spans(("phase", p, 8), ("session", p, 2), first=100 * p) for p in (2, 1)]
    later = [spans(("phase", p, 8), ("session", p, 2), first=1000 * p) for p in (1, 2)]
    groups = list(row_groups("spans", pieces + later))
    assert contents(groups) == [[("phase", 1)], [("phase", 2)], [("session", 1), ("session", 2)]]
    assert [group.num_rows for group in groups] == [16, 16, 8]


@pytest.mark.parametrize("least_piece", [1, 1000])
def test_pieces_that_were_joined_give_the_same_groups(
    monkeypatch: pytest.MonkeyPatch, least_piece: int
) -> None:
    monkeypatch.setattr(rowgroups, "_LEAST_PIECE", least_piece)
    pieces = [
        spans(("phase", p, 12), ("session", p, 12), first=100 * p + 1000 * n)
        for n in range(3)
        for p in (2, 1)
    ]
    joined = [pa.concat_tables(pieces).unify_dictionaries()]
    expected = [group.to_pylist() for group in row_groups("spans", pieces)]
    assert [group.to_pylist() for group in row_groups("spans", joined)] == expected


def test_a_process_with_many_rows_has_groups_of_one_size() -> None:
    (one, *others) = row_groups("spans", [spans(("phase", 1, 41))])
    assert [one.num_rows, *(group.num_rows for group in others)] == [13, 14, 14]


def test_a_group_knows_only_the_words_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowgroups, "_FEW_WORDS", 1)
    table = spans(("phase", 1, 15), ("phase", 2, 15))
    no_task = pa.array([True] + [False] * 29)
    keys = pa.DictionaryArray.from_arrays(
        pa.array(table["task_key"].chunk(0).indices.to_numpy(), mask=no_task.to_numpy(False)),
        table["task_key"].chunk(0).dictionary,
    )
    place = table.schema.get_field_index("task_key")
    table = table.set_column(place, table.schema.field(place), keys)
    groups = list(row_groups("spans", [table]))
    assert [len(group["task_key"].chunk(0).dictionary) for group in groups] == [14, 15]
    assert pa.concat_tables(groups).to_pylist() == table.to_pylist()


def test_other_tables_are_cut_wherever_a_group_is_full() -> None:
    schema = TABLES["facts"]
    ids = {"span_id": pa.array(range(20, 0, -1), pa.uint64()), "time_ns": pa.array(range(20))}
    facts = pa.table(
        [ids[f.name] if f.name in ids else pa.nulls(20, f.type) for f in schema], schema=schema
    )
    groups = list(row_groups("facts", [facts]))
    assert [group.num_rows for group in groups] == [6, 7, 7]
    assert pa.concat_tables(groups)["span_id"].to_pylist() == list(range(1, 21))
