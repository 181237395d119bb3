"""Two sorted parts put together are what sorting all of it gives."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rollscope.timeline.columns import Part, Rows
from rollscope.timeline.merging import merge_parts

if TYPE_CHECKING:
    from collections.abc import Sequence


def spans_apart(source: Random) -> list[tuple[int, int, int, int]]:
    """Give lane, row, start and end of spans that do not overlap, some without length."""
    spans = []
    for line in range(source.randint(1, 5)):
        time = 0
        for _ in range(source.randint(1, 12)):
            start = time + source.choice((0, 0, 1, 3))
            time = start + source.choice((0, 1, 4))
            spans.append((line // 2, line % 2, start, time))
    return spans


def make_part(spans: Sequence[tuple[int, int, int, int]]) -> Part:
    lane, row, start, end = np.array(spans, np.int64).reshape(-1, 4).T
    count = np.arange(len(spans))
    return Part(
        Rows(
            start=start,
            end=end,
            session=count.astype(np.uint32),
            name=count.astype(np.uint16),
            flags=(start % 7).astype(np.uint8),
            lane=lane.astype(np.uint32),
            row=row.astype(np.uint16),
        )
    )


@pytest.mark.parametrize("seed", range(30))
def test_merged_parts_are_what_sorting_gives(seed: int) -> None:
    source = Random(seed)
    spans = spans_apart(source)
    old = [span for span in spans if source.random() < 0.6]
    new = [span for span in spans if span not in old]
    merged, whole = merge_parts(make_part(old), make_part(new)), make_part([*old, *new])
    for column in ("start", "end", "line_lane", "line_row", "bounds", "line_flags"):
        assert getattr(merged, column).tolist() == getattr(whole, column).tolist()
    assert len(merged) == len(old) + len(new)
