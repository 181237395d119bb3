"""How long finished spans took, by name and detail, without reading the same segments twice.

A segment never changes, so the lengths of its spans are read once and kept, as far as they were
asked for: some names, since some time. What is not sealed yet is read anew for every question.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollscope.analysis.stuck import Reference
from rollscope.store.corrections import Corrections
from rollscope.store.dialect import Value
from rollscope.store.rawsql import sealed_sql
from rollscope.store.segments import Segment

__all__ = ["Ask", "Lengths", "Measured"]

_COLUMNS: Final = ("name", "detail", "process", "start_ns", "end_ns", "status")
_MOST_KEPT: Final = 4_000_000
"""Lengths that stay in memory, with their starts: 64 MB."""
_MOST_NAMES: Final = 64
"""Names that lengths are kept of; a program may call every span differently."""
_PERCENT: Final = 99

Ask = Callable[[str, dict[str, Value]], pa.Table]
"""Runs a query with bound values."""
Measured = dict[tuple[str, str | None], Reference]
"""By name and detail; None stands for the name alone, whatever the detail."""
Times = npt.NDArray[np.int64]


class _Lot(msgspec.Struct):
    """Spans of one name, detail and process."""

    name: str
    detail: str | None
    process: int
    start_ns: Times
    length_ns: Times

    def since(self, start_ns: int) -> "_Lot":
        """Give those that started since."""
        is_late = self.start_ns >= start_ns
        if is_late.all():
            return self
        kept = self.start_ns[is_late], self.length_ns[is_late]
        return _Lot(self.name, self.detail, self.process, *kept)


class Lengths:
    """The lengths of finished spans of one run."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._lots: list[_Lot] = []
        self._names: set[str] = set()
        self._files: set[str] = set()
        self._since_ns = 0
        """Of what started before, nothing is kept; on the clocks of the processes."""

    def measure(
        self,
        names: Collection[str],
        since_ns: int,
        *,
        folder: Path,
        segments: Sequence[Segment],
        corrections: Corrections,
        has_tail: bool,
    ) -> Measured:
        """Measure spans of some names that started since some time, and are not lost.

        Args:
            names: Of which names.
            since_ns: Since when, on the one clock of the run.
            folder: Where segments lie.
            segments: All segments with spans that there are now.
            corrections: How the times of processes are moved, for those that are.
            has_tail: Whether there are spans that are not sealed yet.
        """
        since = {process: one.undo(since_ns) for process, one in corrections.items()}
        floor_ns = min((since_ns, *since.values()))
        self._read_new(folder, segments, names, floor_ns)
        lots = self._lots
        if has_tail:
            lots = [*lots, *self._read("SELECT * FROM tail_spans", names, floor_ns)]
        chosen = [lot.since(since.get(lot.process, since_ns)) for lot in lots if lot.name in names]
        if sum(len(lot.length_ns) for lot in self._lots) > _MOST_KEPT:
            self._forget()
        return _measure([lot for lot in chosen if len(lot.length_ns)])

    def _read_new(
        self, folder: Path, segments: Sequence[Segment], names: Collection[str], floor_ns: int
    ) -> None:
        """Read the segments that were not there the last time."""
        gone = self._files - {segment.file for segment in segments}
        if gone or floor_ns < self._since_ns or not self._names.issuperset(names):
            is_much = len(self._names) > _MOST_NAMES
            self._names = set(names) if is_much else self._names.union(names)
            self._forget()
        fresh = [s for s in segments if s.high_ns >= floor_ns and s.file not in self._files]
        if not fresh:
            return
        kept = [lot for old in self._lots if len((lot := old.since(floor_ns)).length_ns)]
        sql = sealed_sql(folder, fresh, _COLUMNS)
        self._lots = [*kept, *self._read(sql, self._names, floor_ns)]
        self._files.update(segment.file for segment in fresh)
        self._since_ns = floor_ns

    def _forget(self) -> None:
        self._lots, self._files, self._since_ns = [], set(), 0

    def _read(self, rows: str, names: Collection[str], floor_ns: int) -> Iterator[_Lot]:
        # Bound one by one: a list would be joined, which takes a fifth longer.
        bound: dict[str, Value] = {f"name_{n}": name for n, name in enumerate(sorted(names))}
        sql = f"""
            SELECT name, detail, process,
                list(struct_pack(s := start_ns, l := end_ns - start_ns)) AS spans
            FROM ({rows}) AS r
            WHERE name IN ({", ".join(f"${key}" for key in bound)}) AND end_ns IS NOT NULL
                AND status <> 'lost' AND start_ns >= $since
            GROUP BY name, detail, process"""
        found = self._ask(sql, {**bound, "since": floor_ns})
        for name, detail, process, spans in zip(*found.columns, strict=True):
            times = (column.to_numpy() for column in spans.values.flatten())
            yield _Lot(name.as_py(), detail.as_py(), process.as_py(), *times)


def _measure(lots: Sequence[_Lot]) -> Measured:
    found: Measured = {}
    by_key: dict[tuple[str, str | None], list[Times]] = {}
    for lot in lots:
        by_key.setdefault((lot.name, None), []).append(lot.length_ns)
        if lot.detail is not None:
            by_key.setdefault((lot.name, lot.detail), []).append(lot.length_ns)
    for key, lengths in by_key.items():
        found[key] = _reference(np.concatenate(lengths))
    return found


def _reference(lengths: Times) -> Reference:
    place = -(-len(lengths) * _PERCENT // 100) - 1  # nearest rank, as the engines find it
    lengths.partition(place)
    return Reference(len(lengths), int(lengths[place]), int(lengths[place:].max()))
