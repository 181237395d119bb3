"""The timeline of a report: every span of its time, or pictures of it at three zooms."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.answers.stuck import stuck
from rollscope.reports.choices import MANY_SPANS, MOST_SPANS, ROUNDED_NS
from rollscope.reports.nesting import nest_frame
from rollscope.reports.sessionlist import Window
from rollscope.reports.shortids import ShortIds
from rollscope.store.embedded import RunStore
from rollscope.timeline import GROUPINGS, TileQuery, TimelineIndex, decode_frame
from rollscope.timeline.frame import encode_frame

__all__ = ["Drawing", "draw_groupings", "draw_timeline"]

_FEW_SPANS: Final = 20_000
"""Up to here every grouping goes in; each is a picture of its own."""
_LEVELS: Final = ((1, 1_200), (4, 600), (16, 300))
"""Into how many windows the run is cut, and how many pixels each has."""
_MOST_CELLS: Final = 200_000
"""Lanes times pixels of a level: a run of many lanes gets fewer pixels."""
_MOST_LANES: Final = 1024
_OVERVIEW: Final = 1000
_OPEN: Final = 0xFFFFFFFF


class Drawing(msgspec.Struct, frozen=True):
    """One stored picture."""

    by: str
    content: bytes
    """To be compressed."""
    is_tile: bool = False
    t0_ns: int = 0
    t1_ns: int = 0


def draw_groupings(index: TimelineIndex, store: RunStore) -> Iterator[TimelineIndex]:
    """Give the timelines that a report has: all groupings of a small run, else the one given."""
    yield index
    if index.total_spans <= _FEW_SPANS:
        yield from (
            TimelineIndex(store, by, stuck=_stuck(store)) for by in GROUPINGS if by != index.by
        )


def draw_timeline(index: TimelineIndex, names: ShortIds, window: Window) -> Iterator[Drawing]:
    """Draw a timeline for a report.

    Args:
        index: The timeline.
        names: What sessions are called in the report.
        window: From when and until when; None for as far as it goes.
    """
    if index.total_spans > MOST_SPANS:
        yield from _tiles(index, names)
        return
    tick_ns = ROUNDED_NS if index.total_spans > MANY_SPANS else None
    frame = decode_frame(index.frame("raw", tick_ns=tick_ns))
    columns = _within(frame.columns, frame.header, window)
    columns["session_ids"] = names.rename_halves(columns["session_ids"])
    header = {**frame.header, "rows": len(columns["start"])}
    raw = encode_frame(header, columns)
    yield Drawing(index.by, nest_frame(raw, decode_frame(raw)))


def _within(
    columns: dict[str, npt.NDArray[Any]], header: dict[str, Any], window: Window
) -> dict[str, npt.NDArray[Any]]:
    """Leave out the spans that lie outside of a window."""
    low_ns, high_ns = window
    if low_ns is None and high_ns is None:
        return dict(columns)
    t0_ns, tick_ns = int(header["t0_ns"]), header["tick_ns"]
    start, dur = columns["start"].astype(np.int64), columns["dur"].astype(np.int64)
    kept = np.ones(len(start), bool)
    if low_ns is not None:
        kept &= (dur == _OPEN) | (start + dur >= (low_ns - t0_ns) // tick_ns)
    if high_ns is not None:
        kept &= start <= (high_ns - t0_ns) // tick_ns
    places = np.cumsum(kept) - 1
    is_kept = kept[columns["open_index"]]
    whole = len(start)
    changed = {name: one[kept] for name, one in columns.items() if len(one) == whole}
    return dict(columns) | {
        **{name: one for name, one in changed.items() if name in _ROW_COLUMNS},
        "open_index": places[columns["open_index"][is_kept]].astype(np.uint32),
        "open_handle": columns["open_handle"][is_kept],
    }


_ROW_COLUMNS: Final = frozenset({"start", "dur", "session", "lane", "name", "row", "flags"})


def _tiles(index: TimelineIndex, names: ShortIds) -> Iterator[Drawing]:
    length_ns = max(index.last_ns - index.t0_ns, 1)
    lanes = min(len(index.lanes), _MOST_LANES)
    for windows, pixels in _LEVELS:
        width = max(min(pixels, _MOST_CELLS // (max(lanes, 1) * windows)), 50)
        for number in range(windows):
            t0_ns = index.t0_ns + length_ns * number // windows
            t1_ns = index.t0_ns + length_ns * (number + 1) // windows
            query = TileQuery(t0_ns=t0_ns, t1_ns=t1_ns, width=width, lanes=lanes)
            frame = decode_frame(index.tile(query, overview=_OVERVIEW))
            ids = names.rename_halves(frame.columns["session_ids"])
            content = encode_frame(frame.header, {**frame.columns, "session_ids": ids})
            yield Drawing(index.by, content, is_tile=True, t0_ns=t0_ns, t1_ns=t1_ns)


def _stuck(store: RunStore) -> list[int]:
    found = stuck(store)
    return [row.span_id for row in (*found.rows, *found.outside) if row.is_alarm]
