"""Gives every picked span its track, group by group, and finds the parents on other tracks.

Rows are read in the order of their groups, so that only one group is in memory at a time.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

import pyarrow as pa

from rollscope.exporting.naming import session_title, track_title
from rollscope.exporting.rows import EVENT, Place, Process, Track
from rollscope.exporting.scratch import BATCH_ROWS, Scratch
from rollscope.exporting.tracks import NEVER_NS, Group, Spread

__all__ = ["place"]

_PLACES: Final = ", ".join(f"'{place}'" for place in Place)
_KINDS: Final = "'step', 'task', 'session', 'phase', 'span', 'state', 'event'"
_PLACED: Final = pa.schema(
    [("row", pa.int64()), ("seq", pa.int64()), ("pid", pa.int32()), ("tid", pa.int32())]
)
_TRACKS: Final = pa.schema(
    [
        ("tid", pa.int32()),
        ("pid", pa.int32()),
        ("place", pa.string()),
        ("key", pa.string()),
        ("number", pa.int32()),
        ("title", pa.string()),
    ]
)


class _Narrow(NamedTuple):
    """What deciding takes of a row."""

    row: int
    process: int
    place: str
    lane: str | None
    session_id: int | None
    start_ns: int
    end_ns: int
    span_id: int
    parent_id: int | None
    kind: str
    task_key: str | None
    sample: int | None
    attempt: int | None

    @property
    def group(self) -> tuple[object, ...]:
        if self.place == Place.LANE:
            return self.place, self.lane
        return self.place, self.process, self.session_id if self.place == Place.SESSION else None


_COLUMNS: Final = ", ".join(
    {"row": "rowid", "end_ns": f"coalesce(end_ns, {NEVER_NS})"}.get(name, name)
    for name in _Narrow._fields
)
# Lanes come last, whatever processes they are told of by.
_ORDER: Final = f"""
    place = '{Place.LANE}', CASE WHEN place = '{Place.LANE}' THEN NULL ELSE process END,
    list_position([{_PLACES}], place), CASE WHEN place = '{Place.LANE}' THEN lane END,
    CASE WHEN place = '{Place.SESSION}' THEN session_id END, start_ns,
    coalesce(end_ns, {NEVER_NS}) DESC, list_position([{_KINDS}], kind), span_id"""


class _Adding:
    """Adds rows to a table of the export, many at a time."""

    def __init__(self, scratch: Scratch, table: str, schema: pa.Schema) -> None:
        self._scratch, self._table, self._schema = scratch, table, schema
        self._rows: list[tuple[Any, ...]] = []

    def add(self, row: tuple[Any, ...]) -> None:
        self._rows.append(row)
        if len(self._rows) >= BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            columns = [
                pa.array(values, field.type)
                for values, field in zip(zip(*self._rows, strict=True), self._schema, strict=True)
            ]
            batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
            self._scratch.add(self._table, batch)
            self._rows = []


def place(scratch: Scratch, processes: list[Process]) -> int:
    """Place all that was picked, into tables of the export; give the number of tracks.

    Track ids go on where process ids end, so that no number stands for two things.
    """
    pids = {process.process: process.pid for process in processes}
    scratch.run("CREATE TABLE export.placed (row BIGINT, seq BIGINT, pid INTEGER, tid INTEGER)")
    scratch.run(
        "CREATE TABLE export.tracks (tid INTEGER, pid INTEGER, place VARCHAR, key VARCHAR, "
        "number INTEGER, title VARCHAR)"
    )
    placed = _Adding(scratch, "placed", _PLACED)
    tracks = _Adding(scratch, "tracks", _TRACKS)
    seq, first_tid = 0, len(processes) + 1
    tid = first_tid
    for _, members in groupby(_read(scratch), key=lambda row: row.group):
        tids: list[int] = []
        group: Group | None = None
        for row in members:
            pid = pids[None if row.place == Place.LANE else row.process]
            group = group or Group(nests_freely=row.place == Place.LANE)
            number = 0 if row.kind == EVENT else group.place(_spread(row))
            while len(tids) <= number:
                tracks.add(_track(tid, pid, row, len(tids)))
                tids.append(tid)
                tid += 1
            placed.add((row.row, seq, pid, tids[number]))
            seq += 1
    placed.flush()
    tracks.flush()
    _link(scratch)
    return tid - first_tid


def _read(scratch: Scratch) -> Iterator[_Narrow]:
    for batch in scratch.stream(f"SELECT {_COLUMNS} FROM export.picked ORDER BY {_ORDER}"):
        for values in batch:
            yield _Narrow(*values)  # type: ignore[arg-type]  # a row of these very columns


def _spread(row: _Narrow) -> Spread:
    return Spread(row.start_ns, row.end_ns, row.span_id, row.parent_id, row.session_id)


def _track(tid: int, pid: int, row: _Narrow, number: int) -> Track:
    key, title = "", row.place
    if row.place == Place.LANE:
        key = title = row.lane or ""
    elif row.session_id is not None:
        key = f"{row.session_id:016x}"
        title = session_title(row.session_id, row.task_key, row.sample, row.attempt)
    return Track(tid, pid, row.place, key, number, track_title(title, number))


def _link(scratch: Scratch) -> None:
    """Find parents on other tracks; a viewer cannot draw an arrow that goes back in time."""
    known = f"""
        SELECT k.row, k.seq, k.tid, w.span_id, w.parent_id, w.start_ns,
            coalesce(w.end_ns, {NEVER_NS}) AS end_ns
        FROM export.placed AS k JOIN export.picked AS w ON w.rowid = k.row
        WHERE w.kind <> '{EVENT}'"""
    scratch.run(f"""
        CREATE TABLE export.links AS
        WITH known AS ({known})
        SELECT p.row AS parent_row, c.row AS child_row, c.span_id AS child_id
        FROM known AS c JOIN known AS p ON c.parent_id = p.span_id
        WHERE c.tid <> p.tid AND (p.start_ns < c.start_ns OR
            (p.start_ns = c.start_ns AND p.seq < c.seq AND p.end_ns >= c.end_ns))""")
