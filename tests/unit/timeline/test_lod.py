from __future__ import annotations

from collections import defaultdict
from random import Random

import numpy as np
import pytest

from rollscope.timeline import lod
from rollscope.timeline.lod import Cells, Small, join_cells, join_small, make_cells

ROLES = [0, 1, 1, 2, 0]
Span = tuple[int, int, int, int]
"""Cell, name, length, flags."""


def small(spans: list[Span]) -> Small:
    columns = np.array(spans, np.int64).reshape(-1, 4).T
    return join_small(
        [
            Small(
                columns[0],
                columns[1].astype(np.uint16),
                columns[2],
                columns[3].astype(np.uint8),
            )
        ]
    )


def rows_of(cells: Cells) -> list[tuple[int, ...]]:
    columns = [getattr(cells, field).tolist() for field in Cells.__struct_fields__]
    return list(zip(*columns, strict=True))


def by_hand(spans: list[Span]) -> list[tuple[int, ...]]:
    """Apply the rule span by span."""
    held: dict[int, list[Span]] = defaultdict(list)
    for span in spans:
        held[span[0]].append(span)
    rows: list[tuple[int, ...]] = []
    for cell, inside in sorted(held.items()):
        by_name: dict[int, int] = defaultdict(int)
        by_role: dict[int, int] = defaultdict(int)
        flags = 0
        for _, name, length, flag in inside:
            by_name[name] += length
            by_role[ROLES[name]] += length
            flags |= flag
        name = min(by_name, key=lambda one: (-by_name[one], one))
        role = min(by_role, key=lambda one: (-by_role[one], one))
        lengths = [length for _, _, length, _ in inside]
        rows.append((cell, name, role, sum(lengths), len(inside), max(lengths), flags))
    return rows


def some_spans(source: Random) -> list[Span]:
    return [
        (source.randrange(12), source.randrange(1, 5), source.choice([0, 0, 3, 5]), 1 << cell % 8)
        for cell in range(source.randrange(60))
    ]


@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_cells_follow_the_rule_by_table_and_by_sorting(
    seed: int, is_sorted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_sorted:
        monkeypatch.setattr(lod, "_EXACT", -1)
    spans = some_spans(Random(seed))
    assert rows_of(make_cells(small(spans), ROLES)) == by_hand(spans)


def test_spans_without_length_have_the_lowest_name_and_role_among_them() -> None:
    (cell,) = rows_of(make_cells(small([(7, 3, 0, 0), (7, 2, 0, 0)]), ROLES))
    assert cell[:3] == (7, 2, 1)


def test_times_too_long_for_exact_sums_are_still_told_apart() -> None:
    spans = [(0, 1, 2**60, 0), (0, 3, 2**60 + 1, 0)]
    assert rows_of(make_cells(small(spans), ROLES)) == by_hand(spans)


def test_cells_of_several_turns_are_joined_as_they_come() -> None:
    first, last = [(0, 1, 4, 0), (0, 2, 5, 1)], [(3, 4, 1, 0)]
    parts = [make_cells(small(spans), ROLES) for spans in (first, last)]
    assert rows_of(join_cells(parts)) == by_hand(first + last)
