"""Tiles: what one window of the timeline shows at one width, however many spans there are.

Spans of at least a pixel are given exactly, all others as cells (see `lod`).
"""

from collections.abc import Collection
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.errors import QueryError
from rollscope.timeline.columns import NEVER, Rows
from rollscope.timeline.cutting import ROWS, Held, Window, turns
from rollscope.timeline.frame import encode_frame
from rollscope.timeline.framing import (
    frame_header,
    lane_entries,
    name_roles,
    row_columns,
    sessions_used,
)
from rollscope.timeline.lod import Cells, join_cells, join_small, make_cells
from rollscope.timeline.overview import in_flight, overview, silhouettes
from rollscope.timeline.spanindex import SpanIndex

__all__ = ["Tile", "TileQuery", "cut_tile", "tile_frame"]

MOST_PIXELS: Final = 8192
MOST_LANES: Final = 1024
_MOST_TICKS: Final = 0xFFFFFFFE


class TileQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of the timeline, and how wide it is drawn."""

    t0_ns: int
    t1_ns: int
    width: int
    first: int = 0
    """Position of the first lane, in the order in which lanes are shown."""
    lanes: int = 64
    only: tuple[tuple[int, int], ...] | None = None
    """Positions, from and below, of the lanes whose spans are given, if not all; the others are
    named, so that a page can lay them out before it shows them."""
    sessions: Collection[int] | None = None
    """Ids of the sessions to show, if not all; what is of no session is then left out."""


class Tile(msgspec.Struct):
    """The content of a window."""

    pixel_ns: float
    lanes: npt.NDArray[np.int64]
    """Numbers of the lanes, from top to bottom."""
    rows: Rows
    """Spans of at least a pixel; `lane` is a position in `lanes`."""
    cells: Cells
    cell_lane: npt.NDArray[np.int64]
    cell_row: npt.NDArray[np.int64]
    cell_pixel: npt.NDArray[np.int64]


def tile_frame(
    index: SpanIndex, query: TileQuery, *, overview_width: int = 0, with_groups: bool = False
) -> bytes:
    """Give a tile as a view frame.

    Args:
        index: The timeline.
        query: The window.
        overview_width: Pixels of the picture of the whole run that comes along; 0 for none.
        with_groups: Whether the silhouettes of the groups in view come along.

    Raises:
        QueryError: The window makes no sense.
    """
    with index.lock:
        tile = cut_tile(index, query)
        t0_ns, tick_ns = _time_base(tile.rows, query)
        order = np.lexsort((tile.rows.start, tile.rows.row, tile.rows.lane))
        rows = tile.rows.take(order)
        columns = row_columns(rows, t0_ns, tick_ns, len(tile.lanes))
        used, columns["session"] = sessions_used(columns["session"])
        columns["session_ids"] = index.session_ids[used].view(np.uint32)
        columns |= _cell_columns(tile, tick_ns)
        header = frame_header(index, "tile", tick_ns=tick_ns, rows=len(rows))
        header |= {
            "t0_ns": str(t0_ns),
            "t1_ns": str(query.t1_ns),
            "window": [str(query.t0_ns), str(query.t1_ns)],
            "width": query.width,
            "first_lane": query.first,
            "run": [str(index.t0_ns), str(index.last_ns)],
            "only": query.only,
            "lanes": lane_entries(index, tile.lanes),
        }
        used_groups = _used_groups(header["lanes"])
        header["groups"] = _group_entries(index, used_groups)
        if overview_width:
            columns |= _overview_columns(index, overview_width, header)
        if with_groups:
            columns |= _silhouette_columns(index, used_groups, query)
    return encode_frame(header, columns)


def cut_tile(index: SpanIndex, query: TileQuery) -> Tile:
    """Find what a window shows.

    Raises:
        QueryError: The window makes no sense.
    """
    _check(query)
    lanes = index.lanes.order[query.first : query.first + query.lanes]
    position = np.full(len(index.lanes), -1, np.int64)
    position[lanes] = np.arange(len(lanes))
    filled = lanes[_wanted(query, len(lanes))]
    kept = _kept_sessions(index, query.sessions)
    pixel_ns = (query.t1_ns - query.t0_ns) / query.width
    window = Window(query.t0_ns, query.t1_ns, query.width, filled, position, kept)
    helds = [Held(part, window) for part in index.parts]
    roles = name_roles(index.names.words)
    exact: list[Rows] = []
    found: list[Cells] = []
    for first, last in turns(helds, len(lanes)):
        wide, narrow = zip(*(held.cut(first, last) for held in helds), strict=True)
        exact += wide
        found.append(make_cells(join_small(narrow), roles))
    cells = join_cells(found)
    line, pixel = np.divmod(cells.cell, query.width)
    lane, row = np.divmod(line, ROWS)
    return Tile(pixel_ns, lanes, Rows.join(exact), cells, lane, row, pixel)


def _check(query: TileQuery) -> None:
    if query.t1_ns <= query.t0_ns:
        raise QueryError("the window of a tile has to end after it begins")
    if not 1 <= query.width <= MOST_PIXELS:
        raise QueryError(f"a tile is 1 to {MOST_PIXELS} pixels wide, not {query.width}")
    if query.first < 0 or not 1 <= query.lanes <= MOST_LANES:
        raise QueryError(f"a tile has 1 to {MOST_LANES} lanes from position 0 on")


def _wanted(query: TileQuery, lanes: int) -> npt.NDArray[np.bool_]:
    """Say of each lane of a tile whether its spans are given."""
    wanted = np.full(lanes, query.only is None)
    for low, high in query.only or ():
        wanted[max(low - query.first, 0) : max(high - query.first, 0)] = True
    return wanted


def _kept_sessions(
    index: SpanIndex, sessions: Collection[int] | None
) -> npt.NDArray[np.bool_] | None:
    if sessions is None:
        return None
    wanted = np.fromiter(sessions, np.uint64, len(sessions))
    return np.isin(index.session_ids, wanted)


def _time_base(rows: Rows, query: TileQuery) -> tuple[int, int]:
    """Give where the ticks of a tile begin, and the smallest tick that fits."""
    t0_ns = int(min(rows.start.min(initial=query.t0_ns), query.t0_ns))
    ended = rows.end[rows.end < NEVER]
    t1_ns = int(max(ended.max(initial=query.t1_ns), query.t1_ns))
    tick_ns = 1000
    while (t1_ns - t0_ns) // tick_ns > _MOST_TICKS:
        tick_ns *= 10
    return t0_ns, tick_ns


def _cell_columns(tile: Tile, tick_ns: int) -> dict[str, npt.NDArray[Any]]:
    cells = tile.cells
    occupied = np.round(cells.covered / tile.pixel_ns * 255).astype(np.int64)
    return {
        "cell_lane": tile.cell_lane.astype(np.uint16),
        "cell_row": tile.cell_row.astype(np.uint16),
        "cell_x": tile.cell_pixel.astype(np.uint16),
        "cell_role": cells.role.astype(np.uint8),
        "cell_alpha": np.clip(occupied, 1, 255).astype(np.uint8),
        "cell_count": cells.count.astype(np.uint32),
        "cell_longest": (cells.longest // tick_ns).astype(np.uint32),
        "cell_flags": cells.flags,
        "cell_name": cells.name.astype(np.uint16),
    }


def _used_groups(lanes: list[dict[str, Any]]) -> list[int]:
    """Give the groups that have a lane in view, and number them anew in the lanes."""
    used = sorted({lane["group"] for lane in lanes})
    for lane in lanes:
        lane["group"] = used.index(lane["group"])
    return used


def _group_entries(index: SpanIndex, groups: list[int]) -> list[dict[str, Any]]:
    ranges = index.lanes.group_ranges()
    return [
        {"label": ranges[n].label, "first_lane": ranges[n].first_lane, "lanes": ranges[n].lanes}
        for n in groups
    ]


def _overview_columns(
    index: SpanIndex, width: int, header: dict[str, Any]
) -> dict[str, npt.NDArray[Any]]:
    whole = overview(index, width)
    header["overview"] = {
        "width": width,
        "t0_ns": str(whole.t0_ns),
        "t1_ns": str(whole.t1_ns),
    }
    return {"mini_mean": whole.roles.reshape(-1), "mini_flags": whole.flags}


def _silhouette_columns(
    index: SpanIndex, groups: list[int], query: TileQuery
) -> dict[str, npt.NDArray[Any]]:
    found = silhouettes(index, groups, query.t0_ns, query.t1_ns, query.width)
    return {
        "sil_mean": np.concatenate([np.zeros(0, np.uint32), *(one.mean for one in found)]),
        "sil_flags": np.concatenate([np.zeros(0, np.uint8), *(one.flags for one in found)]),
        "flight_mean": in_flight(index, query.t0_ns, query.t1_ns, query.width),
        "sil_name": np.concatenate([np.zeros(0, np.uint16), *(one.name for one in found)]),
    }
