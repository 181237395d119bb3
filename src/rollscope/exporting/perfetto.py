"""Perfetto's own format: packets that describe tracks, and track events on them.

Packets stand one after the other and need only what came before, so a file that was cut is good up
to the cut. Field numbers are those of Perfetto's published messages.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from rollscope.exporting.chrome import ByteSink
from rollscope.exporting.facts import categories_of, facts_of
from rollscope.exporting.interning import Interned
from rollscope.exporting.naming import LANES, process_title
from rollscope.exporting.protowire import (
    bytes_field,
    double_field,
    fixed64_field,
    text_field,
    uint_field,
)
from rollscope.exporting.reading import BY_TRACK, PlacedRun
from rollscope.exporting.rows import EVENT, TraceRow, Track

__all__ = ["write_perfetto"]

_SEQUENCE: Final = uint_field(10, 1)
_FIRST, _LATER = uint_field(13, 1), uint_field(13, 2)
_REALTIME, _BOOTTIME = 1, 6
_EXPLICIT, _NO_MERGE = uint_field(11, 3), uint_field(15, 2)
_BEGIN, _END, _INSTANT, _COUNTER = (uint_field(9, type) for type in (1, 2, 3, 4))
_BUFFER: Final = 1 << 18
_LEAST, _MOST = -(2**63), 2**63


def write_perfetto(run: PlacedRun, sink: ByteSink) -> None:
    """Write a run."""
    parts, size = [], 0
    for packet in _Packets(run).make():
        part = bytes_field(1, packet)
        parts.append(part)
        size += len(part)
        if size >= _BUFFER:
            sink.write(b"".join(parts))
            parts, size = [], 0
    sink.write(b"".join(parts))


class _Packets:
    """Makes the packets of a run."""

    def __init__(self, run: PlacedRun) -> None:
        self._run = run
        self._names, self._categories = Interned(2), Interned(1)
        self._keys = Interned(3)
        self._parents: dict[int, tuple[str, ...]] = {}
        self._uuids: dict[int, int] = {}
        """Of the tracks of the current group."""
        self._ends: dict[int, list[int]] = {}
        """When what is open on each of them ends, the innermost last."""

    def make(self) -> Iterator[bytes]:
        yield self._clock()
        yield from self._processes()
        tracks = self._run.tracks()
        for row in self._run.rows(BY_TRACK):
            while row.tid not in self._uuids:
                yield from self._describe(next(tracks))
            yield from self._ended(row.tid, row.start_ns)
            yield self._event(row)
            if row.end_ns is not None and row.kind != EVENT:
                self._ends[row.tid].append(row.end_ns)
        yield from self._all_ended()
        yield from self._counters()

    def _clock(self) -> bytes:
        now = uint_field(2, self._run.first_ns)
        clocks = (bytes_field(1, uint_field(1, one) + now) for one in (_REALTIME, _BOOTTIME))
        snapshot = b"".join(clocks) + uint_field(2, _REALTIME)
        defaults = bytes_field(59, uint_field(58, _REALTIME))
        return bytes_field(6, snapshot) + _SEQUENCE + _FIRST + defaults

    def _processes(self) -> Iterator[bytes]:
        """Describe the run, roles below it, and processes below those."""
        root = (self._run.name,)
        yield _described(root, self._run.name, None, 0)
        roles = set()
        for process in self._run.processes:
            above = (*root, "lanes" if process.process is None else f"role {process.role}")
            if above not in roles:
                roles.add(above)
                title = LANES if process.process is None else process.role or "processes"
                yield _described(above, title, root, len(roles))
            self._parents[process.pid] = above
            if process.process is not None:
                path = (*above, f"{process.process:016x}")
                yield _described(path, process_title(process), above, process.pid)
                self._parents[process.pid] = path

    def _describe(self, track: Track) -> Iterator[bytes]:
        """Describe a track; further ones of a group stand below its first."""
        if track.number == 0:
            yield from self._all_ended()
            self._uuids.clear()
        above = self._parents[track.pid]
        path = (*above, track.place, track.key)
        if track.number:
            above, path = path, (*path, str(track.number))
        self._uuids[track.tid] = _uuid(path)
        self._ends[track.tid] = []
        yield _described(path, track.title, above, track.number or track.tid)

    def _ended(self, tid: int, until_ns: int) -> Iterator[bytes]:
        ends = self._ends[tid]
        while ends and ends[-1] <= until_ns:
            yield _timed(ends.pop(), _END + uint_field(11, self._uuids[tid]))

    def _all_ended(self) -> Iterator[bytes]:
        for tid in self._ends:
            yield from self._ended(tid, _MOST)
        self._ends.clear()

    def _event(self, row: TraceRow) -> bytes:
        told: list[bytes] = []
        parts = [_INSTANT if row.kind == EVENT else _BEGIN, uint_field(11, self._uuids[row.tid])]
        number = self._names.number_of(row.name, told)
        parts.append(text_field(23, row.name) if number is None else uint_field(10, number))
        for category in categories_of(row):
            number = self._categories.number_of(category, told)
            parts.append(text_field(22, category) if number is None else uint_field(3, number))
        for key, value in facts_of(row).items():
            number = self._keys.number_of(key, told)
            called = text_field(10, key) if number is None else uint_field(1, number)
            parts.append(bytes_field(4, called + _annotated(value)))
        parts += [fixed64_field(47, child) for child in row.children or ()]
        parts += [fixed64_field(48, row.span_id)] * row.is_linked
        return _timed(row.start_ns, b"".join(parts), b"".join(told))

    def _counters(self) -> Iterator[bytes]:
        pids = {process.process: process.pid for process in self._run.processes}
        known: dict[tuple[int, str], int] = {}
        for point in self._run.points():
            for name, value in point.values.items():
                title = point.title if name == "value" else f"{point.title} {name}"
                uuid = known.get((point.process, title))
                if uuid is None:
                    above = self._parents[pids[point.process]]
                    path = (*above, "counter", title)
                    uuid = known[point.process, title] = _uuid(path)
                    yield _described(path, title, above, len(known), bytes_field(8, b""))
                event = _COUNTER + uint_field(11, uuid) + double_field(44, value)
                yield _timed(point.time_ns, event)


def _uuid(path: tuple[str, ...]) -> int:
    """Make an id of a path; its parts may hold anything, so their lengths count."""
    text = "".join(f"{len(part)}:{part}" for part in path)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) or 1


def _described(
    path: tuple[str, ...], title: str, above: tuple[str, ...] | None, rank: int, more: bytes = b""
) -> bytes:
    parent = b"" if above is None else uint_field(5, _uuid(above))
    told = uint_field(1, _uuid(path)) + text_field(2, title) + parent + more
    return bytes_field(60, told + _EXPLICIT + uint_field(12, rank) + _NO_MERGE) + _SEQUENCE


def _timed(time_ns: int, event: bytes, interned: bytes = b"") -> bytes:
    new = bytes_field(12, interned) if interned else b""
    return uint_field(8, time_ns) + _SEQUENCE + _LATER + new + bytes_field(11, event)


def _annotated(value: Any) -> bytes:  # noqa: ANN401  (whatever JSON holds)
    """Write a value as what it is; what has parts, or is too large, as text."""
    if isinstance(value, bool):
        return uint_field(2, int(value))
    if isinstance(value, int) and _LEAST <= value < _MOST:
        return uint_field(4, value)
    if isinstance(value, float):
        return double_field(5, value)
    return text_field(6, value if isinstance(value, str) else msgspec.json.encode(value).decode())
