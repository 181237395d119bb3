"""The frames of an index: its spans as raw or packed columns, and what has changed since."""

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rollscope.analysis.roles import is_sync, role_of
from rollscope.errors import QueryError
from rollscope.timeline.columns import MARKS, NEVER, NO_SESSION, Part, Rows
from rollscope.timeline.frame import encode_frame, encode_packed
from rollscope.timeline.growth import Placed, rows_of
from rollscope.timeline.merging import merge_parts
from rollscope.timeline.packing import OPEN
from rollscope.timeline.spanindex import SpanIndex

__all__ = [
    "FRAME_ROLES",
    "delta_frame",
    "frame_header",
    "lane_entries",
    "name_roles",
    "row_columns",
    "sessions_used",
    "whole_frame",
]

FRAME_ROLES: Final = ("generate", "tool", "env", "reward", "train", "waiting", "sync", "other")
_OTHER: Final = FRAME_ROLES.index("other")
_SYNC: Final = FRAME_ROLES.index("sync")
_NARROW: Final = 0xFFFF
_MANY_SPANS: Final = 250_000
_LARGE_TICK_NS: Final = 10_000


def name_roles(names: Sequence[str]) -> list[int]:
    """Give the role of each name, as a position in `FRAME_ROLES`."""
    return [_role(name) for name in names]


def _role(name: str) -> int:
    if is_sync(name):
        return _SYNC
    role = role_of(name)
    return _OTHER if role is None else FRAME_ROLES.index(role)


def whole_frame(index: SpanIndex, mode: str = "raw", *, tick_ns: int | None = None) -> bytes:
    """Give every span of the run.

    Args:
        index: The timeline.
        mode: `raw` for columns as they are, `packed` for few bytes.
        tick_ns: A coarser tick than the one that is needed; times are rounded down to it. Large
            packed frames have one of 10 µs if none is given.

    Raises:
        QueryError: There is no such mode.
    """
    if mode not in ("raw", "packed"):
        raise QueryError(f"there is no frame {mode!r}; ask for raw or packed")
    with index.lock:
        tick = max(tick_ns or _usual_tick(index, mode), index.tick_ns)
        part = _together(index)
        rows = part.all_rows()
        ids = index.session_ids
        columns = row_columns(rows, index.t0_ns, tick, len(index.lanes))
        columns["session_ids"] = ids.view(np.uint32)
        columns |= _handles(index, part)
        header = frame_header(index, mode, tick_ns=tick, rows=len(rows))
        header |= {
            "t1_ns": str(index.last_ns),
            "groups": _groups(index),
            "lanes": lane_entries(index, np.arange(len(index.lanes))),
            "order": None if index.lanes.is_in_order else index.lanes.order.tolist(),
        }
    return (encode_frame if mode == "raw" else encode_packed)(header, columns)


def _usual_tick(index: SpanIndex, mode: str) -> int:
    """Give the tick of a frame if none is asked for: the lowest digits are what packs worst."""
    return _LARGE_TICK_NS if mode == "packed" and index.total_spans > _MANY_SPANS else 0


def delta_frame(index: SpanIndex, since: int) -> bytes:
    """Give what changed since a number that an earlier frame carried as `seq`.

    Raises:
        DeltaTooOld: That is not known any more.
    """
    with index.lock:
        change = index.changed_since(since)
        rows = Rows.join([change.settled, rows_of(change.opened)])
        order = np.lexsort((rows.end, rows.start, rows.row, rows.lane))
        rows = rows.take(order)
        columns = row_columns(rows, index.t0_ns, index.tick_ns, len(index.lanes))
        ids = index.session_ids
        used, columns["session"] = sessions_used(columns["session"])
        columns["session_ids"] = ids[used].view(np.uint32)
        opened = np.array([span.handle for span in change.opened], np.uint32)
        handles = np.concatenate([np.zeros(len(change.settled), np.uint32), opened])[order]
        columns["open_index"] = np.flatnonzero(handles).astype(np.uint32)
        columns["open_handle"] = handles[handles > 0]
        columns |= _changed_columns(index, change.changed)
        header = frame_header(index, "delta", tick_ns=index.tick_ns, rows=len(rows))
        header |= {
            "since": since,
            "t1_ns": str(index.last_ns),
            "groups": _groups(index),
            "lanes": lane_entries(index, np.arange(len(index.lanes))),
            "order": None if index.lanes.is_in_order else index.lanes.order.tolist(),
        }
    return encode_frame(header, columns)


def frame_header(index: SpanIndex, kind: str, *, tick_ns: int, rows: int) -> dict[str, Any]:
    """Give what the headers of all frames have."""
    names = list(index.names.words)
    return {
        "kind": kind,
        "by": index.by,
        "seq": index.seq,
        "t0_ns": str(index.t0_ns),
        "t1_ns": str(index.t0_ns),
        "now_ns": str(index.now_ns),
        "tick_ns": tick_ns,
        "tick_rounded": tick_ns > index.tick_ns,
        "rows": rows,
        "total_spans": index.total_spans,
        "total_lanes": len(index.lanes),
        "first_lane": 0,
        "names": names,
        "name_roles": name_roles(names),
        "roles": list(FRAME_ROLES),
        "capacity": None,
    }


def row_columns(rows: Rows, t0_ns: int, tick_ns: int, lanes: int) -> dict[str, npt.NDArray[Any]]:
    """Give spans as the columns of a frame, in ticks since its start."""
    start = (rows.start - t0_ns) // tick_ns
    ended = (np.where(rows.end < NEVER, rows.end, t0_ns) - t0_ns) // tick_ns
    dur = np.where(rows.end < NEVER, ended - start, OPEN)
    return {
        "start": start.astype(np.uint32),
        "dur": dur.astype(np.uint32),
        "session": rows.session,
        "lane": rows.lane.astype(np.uint16 if lanes <= _NARROW else np.uint32),
        "name": rows.name,
        "row": rows.row,
        "flags": rows.flags,
    }


def lane_entries(index: SpanIndex, lanes: npt.NDArray[Any]) -> list[dict[str, Any]]:
    """Describe lanes: number, label, group, how many rows, which flags occur on them."""
    total = len(index.lanes)
    rows = np.zeros(total, np.int64)
    flags = np.zeros(total, np.uint8)
    for part in index.parts:
        np.maximum.at(rows, part.line_lane, part.line_row.astype(np.int64) + 1)
        np.bitwise_or.at(flags, part.line_lane, part.line_flags & np.uint8(MARKS))
    groups = {group.label: place for place, group in enumerate(index.lanes.group_ranges())}
    words = index.lanes.groups.words
    return [
        {
            "id": lane,
            "label": index.lanes.label(lane),
            "group": groups[words[index.lanes.group[lane]]],
            "rows": int(rows[lane]),
            "flags": int(flags[lane]),
        }
        for lane in lanes.tolist()
    ]


def _groups(index: SpanIndex) -> list[dict[str, Any]]:
    return [
        {"label": group.label, "first_lane": group.first_lane, "lanes": group.lanes}
        for group in index.lanes.group_ranges()
    ]


def _together(index: SpanIndex) -> Part:
    return reduce(merge_parts, index.parts)


def _handles(index: SpanIndex, part: Part) -> dict[str, npt.NDArray[np.uint32]]:
    """Say at which rows the spans stand that may still change, and what they are called."""
    lines = part.line_lane.astype(np.int64) << 16 | part.line_row
    found = []
    for lane, row, start, handle in index.open_handles():
        line = int(np.searchsorted(lines, lane << 16 | row))
        low, high = part.bounds[line], part.bounds[line + 1]
        # The last of those that begin together: only spans without length can come before.
        place = int(np.searchsorted(part.start[low:high], start, side="right")) - 1
        found.append((int(low) + place, handle))
    pairs = np.array(sorted(found), np.uint32).reshape(-1, 2)
    return {"open_index": pairs[:, 0].copy(), "open_handle": pairs[:, 1].copy()}


def sessions_used(
    session: npt.NDArray[np.uint32],
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Number the sessions of some rows anew, from 0."""
    used = np.unique(session)
    used = used[used != NO_SESSION]
    numbers = np.searchsorted(used, session).astype(np.uint32)
    numbers[session == NO_SESSION] = NO_SESSION
    return used, numbers


def _changed_columns(index: SpanIndex, changed: Sequence[Placed]) -> dict[str, npt.NDArray[Any]]:
    columns = row_columns(rows_of(changed), index.t0_ns, index.tick_ns, len(index.lanes))
    return {
        "ended_handle": np.array([span.handle for span in changed], np.uint32),
        "ended_dur": columns["dur"],
        "ended_flags": columns["flags"],
    }
