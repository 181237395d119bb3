"""The run from far away: how much was in flight when, by role for all of it, and by group.

Figures are means over a pixel, so nothing falls between two of them: the time that spans cover in
a pixel, by the length of the pixel.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.timeline.columns import (
    ERROR,
    LOST,
    OPEN_FLAG,
    RETRIED,
    STUCK,
    Part,
    Times,
    expand,
)
from rollscope.timeline.framing import FRAME_ROLES, name_roles
from rollscope.timeline.spanindex import SpanIndex

__all__ = ["MILLI", "Overview", "Silhouette", "in_flight", "overview", "silhouettes"]

MILLI: Final = 1000
"""Means are whole numbers of thousandths."""
_OTHER: Final = FRAME_ROLES.index("other")
_MOST_KEPT: Final = 32
"""Pictures of one state of a run: a page that scrolls asks for the same window again."""
_HOLDERS: Final = frozenset(("session", "task", "step"))
_HOLDER_SHARE: Final = 0.01
_MARK_BITS: Final = (ERROR, OPEN_FLAG, STUCK, LOST, RETRIED)


class Overview(msgspec.Struct):
    """In flight by role, thousandths, for each pixel of the whole run."""

    t0_ns: int
    t1_ns: int
    roles: npt.NDArray[np.uint32]
    """One line for each role, one column for each pixel."""
    flags: npt.NDArray[np.uint8]


class Silhouette(msgspec.Struct):
    """Sessions in flight on the lanes of a group, thousandths, for each pixel of a window."""

    group: int
    """Position of the group."""
    mean: npt.NDArray[np.uint32]
    flags: npt.NDArray[np.uint8]
    name: npt.NDArray[np.uint16]
    """The name that covers most of each pixel."""


def overview(index: SpanIndex, width: int) -> Overview:
    """Say how much of each role was in flight over the whole run.

    What counts is what sessions do directly: a request inside of a phase is the phase's. Time of
    a session outside of its phases is `other`.
    """
    with index.lock:
        known = index.overviews.get(width)
        if known is None:
            known = index.overviews[width] = _overview(index, width)
        return known


def _overview(index: SpanIndex, width: int) -> Overview:
    with index.lock:
        low, high = index.t0_ns, max(index.last_ns, index.t0_ns + 1)
        if any(len(part) and part.end.max() > high for part in index.parts):
            high = max(high, index.now_ns)
        roles = np.array(name_roles(index.names.words), np.int64)
        covered = np.zeros((len(FRAME_ROLES), width))
        flags = np.zeros(width, np.uint8)
        for part, depths in zip(index.parts, index.line_depths(), strict=True):
            inside = index.lanes.has_sessions[part.line_lane]
            direct = _places(part, np.flatnonzero(inside & (depths == 1)))
            for role in range(len(FRAME_ROLES)):
                own = direct[roles[part.name[direct]] == role]
                covered[role] += _covered(part.start[own], part.end[own], low, high, width)
            sessions = _places(part, np.flatnonzero(inside & (depths == 0)))
            whole = _covered(part.start[sessions], part.end[sessions], low, high, width)
            covered[_OTHER] += whole
            flags |= _flags(part, part.marked, low, high, width)
        covered[_OTHER] -= covered[:_OTHER].sum(axis=0)
        pixel_ns = (high - low) / width
        mean = np.maximum(covered, 0) / pixel_ns * MILLI
        return Overview(low, high, np.round(mean).astype(np.uint32), flags)


def silhouettes(
    index: SpanIndex, groups: Sequence[int], t0_ns: int, t1_ns: int, width: int
) -> list[Silhouette]:
    """Say how many sessions each group had in flight; of other lanes, how many spans."""
    with index.lock:
        key = (tuple(groups), t0_ns, t1_ns, width)
        known: list[Silhouette] | None = index.overviews.get(key)
        if known is None:
            known = [_silhouette(index, group, t0_ns, t1_ns, width) for group in groups]
            if len(index.overviews) >= _MOST_KEPT:
                del index.overviews[next(iter(index.overviews))]
            index.overviews[key] = known
        return known


def in_flight(index: SpanIndex, t0_ns: int, t1_ns: int, width: int) -> npt.NDArray[np.uint32]:
    """Say how many sessions were in flight on all lanes, thousandths, for each pixel."""
    with index.lock:
        covered = np.zeros(width)
        for part, depths in zip(index.parts, index.line_depths(), strict=True):
            lines = np.flatnonzero(index.lanes.has_sessions[part.line_lane] & (depths == 0))
            places = expand(*part.window(lines, t0_ns, t1_ns))
            covered += _covered(part.start[places], part.end[places], t0_ns, t1_ns, width)
        mean = np.round(np.maximum(covered, 0) / ((t1_ns - t0_ns) / width) * MILLI)
        return mean.astype(np.uint32)


def _silhouette(index: SpanIndex, group: int, t0_ns: int, t1_ns: int, width: int) -> Silhouette:
    ranges = index.lanes.group_ranges()[group]
    lanes = np.sort(index.lanes.order[ranges.first_lane : ranges.first_lane + ranges.lanes])
    covered = np.zeros(width)
    words = index.names.words or [""]
    share_of_name = np.array([_HOLDER_SHARE if word in _HOLDERS else 1.0 for word in words])
    by_name = np.zeros((len(words), width))
    flags = np.zeros(width, np.uint8)
    for part, depths in zip(index.parts, index.line_depths(), strict=True):
        lines = part.lines_of(lanes)
        by_name += _covered_by_name(part, lines, t0_ns, t1_ns, width, share_of_name)
        flags |= _flags(part, _marked_on(part, lanes), t0_ns, t1_ns, width)
        places = expand(*part.window(lines[depths[lines] == 0], t0_ns, t1_ns))
        covered += _covered(part.start[places], part.end[places], t0_ns, t1_ns, width)
    mean = np.round(covered / ((t1_ns - t0_ns) / width) * MILLI)
    name = by_name.argmax(axis=0).astype(np.uint16)
    return Silhouette(group, np.maximum(mean, 0).astype(np.uint32), flags, name)


def _covered_by_name(
    part: Part,
    lines: npt.NDArray[np.int64],
    low: int,
    high: int,
    width: int,
    share_of_name: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Give how much of each pixel each name covers, multiplied by how much the name counts."""
    places = expand(*part.window(lines, low, high))
    shape = (len(share_of_name), width)
    pixel_ns = (high - low) / width
    names = part.name[places].astype(np.int64)
    # What runs inside of a session, task or step tells more than these themselves.
    weight = share_of_name[names]
    edges = np.arange(1, width + 1) * pixel_ns
    covered = np.zeros(shape)
    for times, sign in ((part.start[places], 1), (part.end[places], -1)):
        since = np.clip(times, low, high) - low
        cell = names * (width + 1) + np.minimum((since / pixel_ns).astype(np.int64), width)
        size = shape[0] * (width + 1)
        count = np.bincount(cell, weight, size).reshape(-1, width + 1)[:, :width].cumsum(axis=1)
        total = np.bincount(cell, weight * since, size).reshape(-1, width + 1)[:, :width]
        passed = count * edges - total.cumsum(axis=1)
        covered += sign * np.diff(passed, axis=1, prepend=0.0)
    return covered


def _places(part: Part, lines: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    return expand(part.bounds[lines], part.bounds[lines + 1])


def _covered(start: Times, end: Times, low: int, high: int, width: int) -> npt.NDArray[np.float64]:
    """Give how much of each pixel is covered, in nanoseconds, counting what overlaps twice."""
    pixel_ns = (high - low) / width
    return np.diff(_passed(start, low, high, pixel_ns, width)) - np.diff(
        _passed(end, low, high, pixel_ns, width)
    )


def _passed(
    times: Times, low: int, high: int, pixel_ns: float, width: int
) -> npt.NDArray[np.float64]:
    """Give at each edge of a pixel the sum of the time that has passed since each of the times."""
    since = np.clip(times, low, high) - low
    pixel = np.minimum((since / pixel_ns).astype(np.int64), width)
    count = np.cumsum(np.bincount(pixel, minlength=width + 1))
    total = np.cumsum(np.bincount(pixel, weights=since, minlength=width + 1))
    edges = np.arange(1, width + 1) * pixel_ns
    return np.concatenate([[0.0], count[:width] * edges - total[:width]])


def _marked_on(part: Part, lanes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    line = np.searchsorted(part.bounds, part.marked, side="right") - 1
    return part.marked[np.isin(part.line_lane[line], lanes)]


def _flags(
    part: Part, marked: npt.NDArray[np.int64], low: int, high: int, width: int
) -> npt.NDArray[np.uint8]:
    """Give the marks of each pixel that a flagged span touches."""
    flags = np.zeros(width, np.uint8)
    start, end = part.start[marked], np.minimum(part.end[marked], high)
    inside = (start < high) & ((end > low) | (start >= low))
    start, end, marks = start[inside], end[inside], part.flags[marked[inside]]
    pixel_ns = (high - low) / width
    first, last = (
        np.clip((times - low) / pixel_ns, 0, width - 1).astype(np.int64) for times in (start, end)
    )
    for bit in _MARK_BITS:
        own = (marks & bit) != 0
        began = np.bincount(first[own], minlength=width)
        ended = np.bincount(last[own] + 1, minlength=width + 1)[:width]
        flags[np.cumsum(began - ended) > 0] |= bit
    return flags
