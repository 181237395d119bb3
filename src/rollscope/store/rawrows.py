"""The span rows of some batches of one process, in columns, before anything is made of them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import compress, count, islice
from operator import itemgetter, not_
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.errors import FrameError
from rollscope.model.batch import Batch, SpanColumns
from rollscope.model.clockline import ClockLine, ClockMap
from rollscope.model.kinds import EVENT_CODE, Outcome
from rollscope.model.scope import ScopeRow
from rollscope.model.undecodable import UNDECODABLE

__all__ = ["RawRows", "find_rows", "ids_of", "read_attrs", "wall_times"]

Ids = npt.NDArray[np.uint64]
Times = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

_raw_list: Final = msgspec.msgpack.Decoder(list[msgspec.Raw] | None)
_maps: Final = msgspec.msgpack.Decoder(list[dict[str, Any]])
_EMPTY_MAP: Final = b"\x80"
_OUTCOMES: Final = frozenset(Outcome)


def read_attrs(raws: Sequence[msgspec.Raw | bytes]) -> list[dict[str, Any]]:
    """Decode the attributes of some rows.

    Raises:
        FrameError: One of them is no map.
    """
    try:
        return _maps.decode(b"\xdd" + len(raws).to_bytes(4) + b"".join(raws))
    except UNDECODABLE as error:
        raise FrameError(f"a frame holds attributes that cannot be read: {error}") from None


class RawRows:
    """Rows of spans and events; times are on the wall clock of their process."""

    def __init__(self, clock: ClockMap) -> None:
        self._clock = clock
        self._clocks: list[tuple[int, ClockMap]] = []
        """From which row on which clock lines were known."""
        self._parts: list[SpanColumns] = []
        self._are_late: list[bool] = []
        self._are_complete: list[Flags] = []
        self._complete_attrs: list[int] = []
        """The number of each complete row's attributes."""
        self._name_codes: dict[str, int] = {}
        self.scopes: list[ScopeRow] = []
        self.fields: dict[int, dict[str, Any]] = {}
        self.attrs: list[dict[str, Any]] = []
        """The attributes that complete rows refer to, each once: many rows have the same."""
        self._attr_codes: defaultdict[bytes, int] = defaultdict(count().__next__)
        self.start_attrs: list[msgspec.Raw | bytes] = []
        """Of the other rows, not decoded: nearly all of those spans end soon."""
        self.size = 0

    def add(self, batch: Batch, *, is_late: bool = False) -> None:
        """Take the rows of a batch, all of them or, if one cannot be read, none.

        Args:
            batch: The batch.
            is_late: Later ones came before it: spans that start in it may have ended in those.

        Raises:
            FrameError: It cannot be read.
        """
        columns = batch.spans
        if columns is None or not columns.what:
            return
        size = len(columns.what)
        is_event = np.frombuffer(columns.what, np.uint8) == EVENT_CODE
        is_complete = is_event | (np.frombuffer(columns.end_ns, "<i8") > 0)
        _check_scopes(columns.scopes)
        _check_outcomes(columns.fields.values())
        self._take_attrs(_split_attrs(columns, size), is_complete)
        for row, fields in columns.fields.items():
            if 0 <= row < size:
                self.fields[self.size + row] = fields
        self._note_clock()
        # Numbers are left as they came: those of many batches are made columns at once.
        self._parts.append(columns)
        self._are_late.append(is_late)
        self._are_complete.append(is_complete)
        self.scopes += columns.scopes
        self.size += size

    def _note_clock(self) -> None:
        """Keep the clock lines as known now: what comes later places later rows only."""
        if not self._clocks or len(self._clocks[-1][1].lines) != len(self._clock.lines):
            self._clocks.append((self.size, ClockMap(self._clock.lines)))

    def _take_attrs(self, raws: Sequence[msgspec.Raw | bytes], is_complete: Flags) -> None:
        flags = is_complete.tolist()
        # A join of one copies it, in half the time that `bytes` takes.
        complete = list(map(b"".join, zip(compress(raws, flags), strict=True)))
        self._complete_attrs += self._number_attrs(complete)
        self.start_attrs += compress(raws, map(not_, flags))

    def _number_attrs(self, raws: Sequence[bytes]) -> Sequence[int]:
        codes = self._attr_codes
        before = len(codes)
        numbers = itemgetter(*raws)(codes) if len(raws) > 1 else [codes[raw] for raw in raws]
        fresh = list(islice(reversed(codes), len(codes) - before))[::-1]
        try:
            self.attrs += read_attrs(fresh)
        except FrameError:
            for raw in fresh:
                del codes[raw]
            codes.default_factory = count(before).__next__
            raise
        return numbers

    @property
    def names(self) -> list[str]:
        """The names that rows refer to."""
        return list(self._name_codes)

    def join(self) -> None:
        """Make one column of each; rows can be used from here on, and no more be added."""
        parts = self._parts
        sizes = [len(part.what) for part in parts]
        self.what: npt.NDArray[np.uint8] = _joined([part.what for part in parts], np.uint8)
        self.status: npt.NDArray[np.uint8] = _joined([part.status for part in parts], np.uint8)
        self.span_id: Ids = _joined([part.span_id for part in parts], "<u8")
        self.parent_id: Ids = _joined([part.parent_id for part in parts], "<u8")
        start: Times = _joined([part.start_ns for part in parts], "<i8")
        end: Times = _joined([part.end_ns for part in parts], "<i8")
        self.start_ns: Times = self._wall_times(start)
        # The length is the monotonic clock's: a clock line may start inside the span.
        self.end_ns: Times = np.where(end > 0, self.start_ns + (end - start), 0)
        names = np.array(self._number_names(), np.int32)
        self.name: Indices = names[
            _shifted([part.name for part in parts], sizes, [len(part.names) for part in parts])
        ]
        self.scope: Indices = _shifted(
            [part.scope for part in parts], sizes, [len(part.scopes) for part in parts]
        )
        self.is_complete: Flags = np.concatenate(self._are_complete)
        self.is_late: Flags = np.repeat(self._are_late, sizes)
        self.attr: Indices = np.full(self.size, -1, np.int32)
        """The number of a complete row's attributes, -1 for the others, which wait."""
        self.attr[self.is_complete] = self._complete_attrs
        self._parts, self._are_complete, self._complete_attrs = [], [], []

    def _wall_times(self, mono: Times) -> Times:
        firsts = [first for first, _ in self._clocks]
        pieces = np.split(mono, firsts[1:])
        walls = [
            wall_times(clock, piece) for (_, clock), piece in zip(self._clocks, pieces, strict=True)
        ]
        return walls[0] if len(walls) == 1 else np.concatenate(walls)

    def _number_names(self) -> list[int]:
        """Number the names of all batches; give the number of each, batch by batch."""
        codes = self._name_codes
        return [codes.setdefault(name, len(codes)) for part in self._parts for name in part.names]


def _joined(columns: Sequence[bytes], kind: npt.DTypeLike) -> npt.NDArray[Any]:
    return np.frombuffer(b"".join(columns), kind)


def _shifted(columns: Sequence[bytes], sizes: Sequence[int], words: Sequence[int]) -> Indices:
    """Join numbers into the words of each batch as numbers into the words of all."""
    if sum(map(len, columns)) == sum(sizes):
        numbers = _joined(columns, np.uint8)
    else:
        numbers = np.concatenate([_indices(*pair) for pair in zip(columns, sizes, strict=True)])
    shifts = np.cumsum([0, *words[:-1]]).astype(np.int32)
    shifted: Indices = (np.repeat(shifts, sizes) + numbers).astype(np.int32, copy=False)
    return shifted


def _check_outcomes(maps: Iterable[dict[str, Any]]) -> None:
    outcomes = [fields["outcome"] for fields in maps if "outcome" in fields]
    for outcome in outcomes if set(map(type, outcomes)) - {str} else set(outcomes):
        if outcome is not None and (not isinstance(outcome, str) or outcome not in _OUTCOMES):
            raise FrameError(f"a frame holds the unknown outcome {outcome!r:.100}")


def _check_scopes(scopes: list[ScopeRow]) -> None:
    if set(map(len, map(itemgetter(0), scopes))) - {16}:
        raise FrameError("a frame holds a trace id that is none")


def _split_attrs(columns: SpanColumns, size: int) -> Sequence[msgspec.Raw | bytes]:
    try:
        raws: list[msgspec.Raw] | None = _raw_list.decode(columns.attrs)
    except UNDECODABLE as error:
        raise FrameError(f"a frame holds attributes that cannot be read: {error}") from None
    if raws is None:
        return [_EMPTY_MAP] * size
    if len(raws) != size:
        raise FrameError(f"a frame holds the attributes of {len(raws)} rows, not {size}")
    return raws


def _indices(column: bytes, size: int) -> npt.NDArray[Any]:
    return np.frombuffer(column, np.uint8 if len(column) == size else "<u4")


def wall_times(clock: ClockMap, mono: Times) -> Times:
    """Place monotonic times on the wall clock, exactly as `ClockLine.wall_at` does."""
    if len(clock.lines) == 1:
        return _on_line(clock.lines[0], mono)
    low, high = int(mono.min()), int(mono.max())
    line = clock.line_for(low)
    if line == clock.line_for(high):
        return _on_line(line, mono)
    wall = np.empty_like(mono)
    starts = np.array([line.mono_ns for line in clock.lines[1:]])
    which = np.searchsorted(starts, mono, side="right")
    for number in np.unique(which):
        rows = which == number
        wall[rows] = _on_line(clock.lines[int(number)], mono[rows])
    return wall


def _on_line(line: ClockLine, mono: Times) -> Times:
    elapsed = mono - line.mono_ns
    if line.rate_ppb == 0:
        return elapsed + line.wall_ns
    # Whole seconds apart from the rest, since the product of both would not fit 64 bits.
    seconds, rest = np.divmod(elapsed, 1_000_000_000)
    drift = seconds * line.rate_ppb + rest * line.rate_ppb // 1_000_000_000
    wall: Times = elapsed + line.wall_ns + drift
    return wall


def find_rows(ids: Ids, wanted: Ids) -> Indices:
    """Find the row of each wanted id; -1 where there is none."""
    if len(ids) == 0:
        return np.full(len(wanted), -1, np.int32)
    low, high = ids.min(), ids.max()
    extent = int(high - low) + 1
    if extent <= 16 * len(ids) + 65_536:
        # Ids of a process count up, so a plain table is small and needs no sorting.
        table = np.full(extent + 1, -1, np.int32)
        table[(ids - low).view(np.int64)] = np.arange(len(ids), dtype=np.int32)
        # What is below the lowest wraps around, so that all that is outside finds the last entry.
        places = np.minimum(wanted - low, np.uint64(extent)).view(np.int64)
        rows: Indices = table[places]
        return rows
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    places = np.minimum(np.searchsorted(ordered, wanted), len(ids) - 1)
    found = np.where(ordered[places] == wanted, order[places], -1)
    return found.astype(np.int32)


def ids_of(values: Iterable[int]) -> Ids:
    """Make a column of ids."""
    return np.fromiter(values, np.uint64)
