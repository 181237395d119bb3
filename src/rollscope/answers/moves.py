"""Moving times by hand, for answers that read rows on the clocks of their processes."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rollscope.answers.source import Source
from rollscope.store.corrections import Correction

__all__ = ["MOST_MOVED", "MOVE_COLUMNS", "Moves", "moves_of"]

MOVE_COLUMNS: Final = "process, offset_ns, moved_ns, correction"
"""What `Moves` has to know of processes."""
MOST_MOVED: Final = "greatest(moved_ns, abs(offset_ns))"
"""The most by which times of a process are moved, in SQL; rows that an older version fed to a
shared store have an offset only."""


class Moves:
    """By how much the times of each process are moved."""

    def __init__(self, processes: Iterable[Mapping[str, Any]]) -> None:
        """Learn it from rows of `processes` with at least the columns above."""
        moved = [row for row in processes if row["offset_ns"] or row["correction"]]
        self._corrections = {
            row["process"]: Correction.read(row["correction"], row["offset_ns"]) for row in moved
        }

    def of(self, process: int, time_ns: int) -> int:
        """Give by how much a time of a process is moved."""
        correction = self._corrections.get(process)
        return 0 if correction is None else correction.at(time_ns)

    def recorded(self, since_ns: int) -> int:
        """Give the time that all read at least which started since, on whichever clock."""
        return min((since_ns, *(one.undo(since_ns) for one in self._corrections.values())))


def moves_of(source: Source) -> Moves:
    """Ask a run how times of its processes are moved."""
    return Moves(source.query(f"SELECT {MOVE_COLUMNS} FROM processes").to_pylist())
