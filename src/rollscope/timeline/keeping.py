"""Timelines kept beside the sealed segments, so that the next server need not place every span.

What is kept is the place of every span that is sealed, and of those that were open. Segments never
change, so it stays right for as long as the run consists of the same ones; what has come since is
added to it like to any timeline. It is a cache: whatever is wrong with it, the timeline is built.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.store.embedded import RunStore
from rollscope.store.manifest import index_name
from rollscope.timeline.building import Layout, PlacedSessions, sealed_count
from rollscope.timeline.columns import Part, Rows
from rollscope.timeline.grouping import Processes, find_grouping
from rollscope.timeline.keptfile import Unreadable, read_columns, write_columns
from rollscope.timeline.lanes import LaneColumns, Lanes
from rollscope.timeline.reading import ReadWords, SpanReader

__all__ = ["Keepsake", "Restored", "has_kept", "restore", "take_keepsake"]

_FORMAT: Final = 2
"""Of what is kept; one more whenever the places that a build gives, or these columns, change."""
_FEW: Final = 20
"""One part in so many may have come since: beyond that building is as quick as adding it."""
_PARTS: Final = ("session", "name", "flags")
_SESSIONS: Final = PlacedSessions.__struct_fields__
_OPEN: Final = Rows.__struct_fields__
_LANES: Final = ("group", "label", "number", "has_sessions")

_Found = dict[str, npt.NDArray[Any]]


class _About(msgspec.Struct):
    format: int
    rows: int
    learnt: ReadWords
    processes: dict[int, tuple[str, str]]
    units: list[str]
    place_lane: list[int]
    groups: list[str]
    labels: list[str]


class Restored(msgspec.Struct):
    """A layout as it was kept, and what it takes to add to it."""

    layout: Layout
    reader: SpanReader
    seen: int
    """How many spans that have ended are in it."""


class Keepsake(msgspec.Struct):
    """A layout at the moment it was built, to be written when there is time."""

    path: Path
    about: _About
    columns: _Found
    part: Part
    depths: npt.NDArray[np.uint8]
    unsealed: npt.NDArray[np.int64]

    def write(self) -> bool:
        """Write it; False if that is not possible here, which is no fault."""
        part, depths = self.part, self.depths
        if len(self.unsealed):
            part, used = part.without(self.unsealed)
            depths = depths[used]
        try:
            write_columns(self.path, self.about, self.columns | _part_columns(part, depths))
        except OSError:
            return False
        return True


def take_keepsake(
    store: RunStore, by: str, layout: Layout, reader: SpanReader, processes: Processes
) -> Keepsake | None:
    """Hold on to what has just been built; None if it cannot be kept."""
    path = _path(store, by)
    if path is None:
        return None
    lanes = layout.lanes.columns()
    about = _About(
        format=_FORMAT,
        rows=sealed_count(store),
        learnt=reader.learnt(),
        processes=processes.named(),
        units=[*layout.units],
        place_lane=[*layout.place_lane],
        groups=lanes.groups,
        labels=lanes.labels,
    )
    columns: _Found = {"open_ids": layout.open_ids, "open_depths": layout.open_depths}
    columns |= {f"sessions_{name}": getattr(layout.sessions, name) for name in _SESSIONS}
    columns |= {f"open_{name}": getattr(layout.open_rows, name) for name in _OPEN}
    columns |= {f"lanes_{name}": getattr(lanes, name) for name in _LANES}
    return Keepsake(path, about, columns, layout.part, layout.depths, layout.unsealed)


def has_kept(store: RunStore, by: str) -> bool:
    """Say whether a timeline of the run as it is sealed now has been kept."""
    path = _path(store, by)
    return path is not None and path.exists()


def restore(store: RunStore, by: str, processes: Processes) -> Restored | None:
    """Give what was kept of the run; None if there is nothing that would help."""
    path = _path(store, by)
    if path is None or store.sealer.unsealed_rows > sealed_count(store) // _FEW:
        return None
    with suppress(OSError, Unreadable, KeyError):
        about, found = read_columns(path, _About)
        named = processes.named()
        is_same = all(named.get(process) == known for process, known in about.processes.items())
        if about.format == _FORMAT and about.rows == sealed_count(store) and is_same:
            reader = SpanReader(store, about.learnt)
            return Restored(_layout(about, found), reader, about.rows)
    return None


def _path(store: RunStore, by: str) -> Path | None:
    """Say where a timeline is kept; verdicts come late, so what follows them is not."""
    shelf, segments = store.sealer.shelf, store.sealer.manifest.segments
    if shelf is None or not segments or find_grouping(by).follows_verdicts:
        return None
    return shelf.folder / index_name(f"timeline-{by}", segments)


def _part_columns(part: Part, depths: npt.NDArray[np.uint8]) -> _Found:
    """Give the columns of a part; times as lengths and the gaps between them, which pack well."""
    before = np.concatenate([np.zeros(1, np.int64), part.end[:-1]])[: len(part)]
    columns = {"gap": part.start - before, "length": part.end - part.start}
    columns |= {name: getattr(part, name) for name in _PARTS}
    return columns | {
        "line_lane": part.line_lane,
        "line_row": part.line_row,
        "line_rows": np.diff(part.bounds),
        "line_depth": depths,
    }


def _layout(about: _About, found: _Found) -> Layout:
    end = np.cumsum(found["gap"] + found["length"])
    columns = {name: found[name] for name in _PARTS}
    columns |= {"start": end - found["length"], "end": end}
    bounds = np.concatenate([[0], np.cumsum(found["line_rows"])])
    part = Part.assembled(columns, found["line_lane"], found["line_row"], bounds)
    lanes = LaneColumns(about.groups, about.labels, *(found[f"lanes_{name}"] for name in _LANES))
    return Layout(
        lanes=Lanes.restored(lanes),
        sessions=PlacedSessions(*(found[f"sessions_{name}"] for name in _SESSIONS)),
        units=about.units,
        place_lane=about.place_lane,
        part=part,
        depths=found["line_depth"],
        open_ids=found["open_ids"],
        open_rows=Rows(*(found[f"open_{name}"] for name in _OPEN)),
        open_depths=found["open_depths"],
    )
