from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from rollscope.store.embedded import RunStore
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from rollscope.timeline import TileQuery, TimelineIndex, cutting
from rollscope.timeline.cutting import Held, Window, turns
from rollscope.timeline.framing import name_roles
from rollscope.timeline.tiles import Tile, cut_tile
from tests.unit.timeline.oracle import brute_cells, brute_exact

if TYPE_CHECKING:
    from collections.abc import Iterator

SHAPE = RunShape(steps=2, tasks_per_step=8, parallel_tools=2, stuck_sessions=1, replicas=2)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TimelineIndex]:
    run = tmp_path_factory.mktemp("cutting") / "run"
    truth = generate_run(run, SHAPE)
    with RunStore(run, threads=1, now_ns=truth.end_ns) as store:
        yield TimelineIndex(store, "outcome")


def part_of(index: TimelineIndex, share: float, width: int = 40) -> TileQuery:
    length = index.last_ns - index.t0_ns
    t0_ns = index.t0_ns + int((1 - share) / 2 * length)
    return TileQuery(t0_ns=t0_ns, t1_ns=t0_ns + int(share * length) + 1, width=width, lanes=1024)


def exact_rows(tile: Tile) -> list[tuple[int, ...]]:
    rows = tile.rows
    columns = (rows.start, rows.end, rows.lane, rows.row, rows.name, rows.flags)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def cells_of(tile: Tile) -> dict[Any, tuple[int, ...]]:
    cells = tile.cells
    places = (tile.cell_lane, tile.cell_row, tile.cell_pixel)
    values = (cells.name, cells.role, cells.covered, cells.count, cells.longest, cells.flags)
    return dict(
        zip(
            zip(*(column.tolist() for column in places), strict=True),
            zip(*(column.tolist() for column in values), strict=True),
            strict=True,
        )
    )


@pytest.mark.parametrize("at_once", [1, 40, 10**6])
@pytest.mark.parametrize("least_range", [1, 10**6])
@pytest.mark.parametrize("share", [1.0, 0.4, 0.01])
def test_a_tile_is_the_same_however_it_is_cut(
    index: TimelineIndex,
    monkeypatch: pytest.MonkeyPatch,
    share: float,
    at_once: int,
    least_range: int,
) -> None:
    monkeypatch.setattr(cutting, "_MOST_AT_ONCE", at_once)
    monkeypatch.setattr(cutting, "_LEAST_RANGE", least_range)
    query = part_of(index, share)
    tile = cut_tile(index, query)
    assert exact_rows(tile) == sorted(brute_exact(index, query).elements())
    assert cells_of(tile) == brute_cells(index, query, name_roles(index.names.words))
    assert (np.diff(tile.cells.cell) > 0).all()


def test_turns_cover_every_lane_once_and_hold_few_spans_each(
    index: TimelineIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutting, "_MOST_AT_ONCE", 50)
    query = part_of(index, 1.0)
    lanes = index.lanes.order
    position = np.argsort(lanes)
    window = Window(query.t0_ns, query.t1_ns, query.width, lanes, position, None)
    helds = [Held(part, window) for part in index.parts]
    found = list(turns(helds, len(lanes)))
    assert len(found) > 2
    assert [first for first, _ in found[1:]] == [last for _, last in found[:-1]]
    assert (found[0][0], found[-1][1]) == (0, len(lanes))
    counts = sum(held.spans_by_lane(len(lanes)) for held in helds)
    assert isinstance(counts, np.ndarray)
    assert counts.sum() == index.total_spans
    largest = counts.max()
    assert all(counts[first:last].sum() <= 50 + largest for first, last in found)


def test_no_lanes_are_one_empty_turn(index: TimelineIndex) -> None:
    query = TileQuery(t0_ns=index.t0_ns, t1_ns=index.last_ns, width=10, first=10**6)
    tile = cut_tile(index, query)
    assert len(tile.rows) == len(tile.cells.cell) == 0
