"""The exact span behind a place on the timeline: nanoseconds, ids, attributes."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np

from rollscope.errors import QueryError
from rollscope.model.refs import span_hex
from rollscope.timeline.columns import NEVER, NO_SESSION, Part
from rollscope.timeline.spanindex import SpanIndex

__all__ = ["ExactSpan", "find_span"]

_COLUMNS: Final = """
    process, span_id, parent_id, session_id, kind, name, category, detail, start_ns, end_ns,
    duration_ns, status, reason, outcome, step, version_start, version_end, task_key, family,
    sample, group_key, lane, replica, attempt, turns, tokens_in, tokens_out, waited_ns, queue_ns,
    reward, path, attrs"""
_IDS: Final = ("process", "span_id", "parent_id", "session_id")


class ExactSpan(msgspec.Struct, kw_only=True, omit_defaults=False):
    """One span as it was recorded; ids as 16 hex digits."""

    process: str
    span_id: str
    parent_id: str | None
    session_id: str | None
    kind: str
    name: str
    category: str | None
    detail: str | None
    start_ns: int
    end_ns: int | None
    duration_ns: int | None
    status: str
    reason: str | None
    outcome: str | None
    step: int | None
    version_start: int | None
    version_end: int | None
    task_key: str | None
    family: str | None
    sample: int | None
    group_key: str | None
    lane: str | None
    replica: str | None
    attempt: int | None
    turns: int | None
    tokens_in: int | None
    tokens_out: int | None
    waited_ns: int | None
    queue_ns: int | None
    reward: float | None
    path: str | None
    attrs: dict[str, Any]


def find_span(index: SpanIndex, lane: int, row: int, start_ns: int) -> ExactSpan:
    """Give the span of a lane and row that begins nearest to a time.

    Args:
        index: The timeline.
        lane: The number of the lane, its `id` in a frame.
        row: The row in it.
        start_ns: When it begins, as a frame tells it: t0 and so many ticks.

    Raises:
        QueryError: There is no span on that row.
    """
    with index.lock:
        found = [
            (abs(int(part.start[place]) - start_ns), part, place)
            for part in index.parts
            if (place := _nearest(part, lane, row, start_ns)) is not None
        ]
        if not found:
            raise QueryError(f"there is no span on row {row} of lane {lane}")
        _, part, place = min(found, key=lambda one: one[0])
        return _fetch(index, part, place)


def _nearest(part: Part, lane: int, row: int, start_ns: int) -> int | None:
    lines = part.line_lane.astype(np.int64) << 16 | part.line_row
    line = int(np.searchsorted(lines, lane << 16 | row))
    if line >= len(lines) or lines[line] != lane << 16 | row:
        return None
    low, high = int(part.bounds[line]), int(part.bounds[line + 1])
    place = low + int(np.searchsorted(part.start[low:high], start_ns))
    near = [one for one in (place - 1, place) if low <= one < high]
    return min(near, key=lambda one: abs(int(part.start[one]) - start_ns))


def _fetch(index: SpanIndex, part: Part, place: int) -> ExactSpan:
    start_ns, end_ns = int(part.start[place]), int(part.end[place])
    session = int(part.session[place])
    name = index.names.words[int(part.name[place])]
    values: dict[str, Any] = {
        "starts": sorted({start_ns, *_recorded(index, start_ns)}),
        "name": name,
    }
    whose = "session_id IS NULL"
    if session != NO_SESSION:
        whose = "session_id = $session"
        values["session"] = int(index.session_ids[session])
    is_start = index.store.dialect.is_in("recorded_start_ns", "$starts")
    sql = f"SELECT {_COLUMNS} FROM spans WHERE {is_start} AND name = $name AND {whose}"  # noqa: S608
    rows = index.store.query(sql, **values).to_pylist()
    if not rows:
        raise QueryError("the span is not in the run any more; load the timeline anew")

    def distance(row: dict[str, Any]) -> int:
        started: int = row["start_ns"]
        ended: int = NEVER if row["end_ns"] is None else row["end_ns"]
        return abs(started - start_ns) + abs(ended - end_ns)

    return _exact(min(rows, key=distance))


def _recorded(index: SpanIndex, time_ns: int) -> Iterator[int]:
    """Give what processes whose times are moved may have recorded for this one."""
    for correction in index.moved.values():
        earliest = correction.undo(time_ns)
        yield earliest
        yield earliest + 1  # where times are drawn together, two may become one


def _exact(row: dict[str, Any]) -> ExactSpan:
    ids = {name: None if row[name] is None else span_hex(row[name]) for name in _IDS}
    attrs = msgspec.json.decode(row["attrs"]) if row["attrs"] else {}
    return msgspec.convert({**row, **ids, "attrs": attrs}, ExactSpan)
