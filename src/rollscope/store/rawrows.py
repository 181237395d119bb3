"""The span rows of some batches of one process, in columns, before anything is made of them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import compress, count, islice
from operator import itemgetter
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
        self._parts: list[tuple[npt.NDArray[Any], ...]] = []
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
        what = np.frombuffer(columns.what, np.uint8)
        start, end = _times(columns.start_ns), _times(columns.end_ns)
        is_complete = (end > 0) | (what == EVENT_CODE)
        _check_scopes(columns.scopes)
        _check_outcomes(columns.fields.values())
        raws = _split_attrs(columns, size)
        attr_codes = self._take_attrs(raws, is_complete)
        for row, fields in columns.fields.items():
            if 0 <= row < size:
                self.fields[self.size + row] = fields
        codes = self._name_codes
        names = np.array([codes.setdefault(name, len(codes)) for name in columns.names], np.int32)
        wall = wall_times(self._clock, start)
        self._parts.append(
            (
                what,
                np.frombuffer(columns.status, np.uint8),
                np.frombuffer(columns.span_id, "<u8"),
                np.frombuffer(columns.parent_id, "<u8"),
                wall,
                # The length is the monotonic clock's: a clock line may start inside the span.
                np.where(end > 0, wall + (end - start), 0),
                names[_indices(columns.name, size)],
                _indices(columns.scope, size).astype(np.int32) + len(self.scopes),
                is_complete,
                np.full(size, is_late),
                attr_codes,
            )
        )
        self.scopes += columns.scopes
        self.size += size

    def _take_attrs(
        self, raws: Sequence[msgspec.Raw | bytes], is_complete: npt.NDArray[np.bool_]
    ) -> Indices:
        """Give the number of each complete row's attributes, -1 for the others, which wait."""
        complete = map(bytes, compress(raws, is_complete.tolist()))
        numbers = np.full(len(raws), -1, np.int32)
        numbers[is_complete] = self._number_attrs(complete, int(is_complete.sum()))
        self.start_attrs += compress(raws, (~is_complete).tolist())
        return numbers

    def _number_attrs(self, raws: Iterable[bytes], size: int) -> Indices:
        codes = self._attr_codes
        before = len(codes)
        numbers = np.fromiter(map(codes.__getitem__, raws), np.int32, size)
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
        columns = [np.concatenate(column) for column in zip(*self._parts, strict=True)]
        self.what: npt.NDArray[np.uint8] = columns[0]
        self.status: npt.NDArray[np.uint8] = columns[1]
        self.span_id: Ids = columns[2]
        self.parent_id: Ids = columns[3]
        self.start_ns: Times = columns[4]
        self.end_ns: Times = columns[5]
        self.name: Indices = columns[6]
        self.scope: Indices = columns[7]
        self.is_complete: npt.NDArray[np.bool_] = columns[8]
        self.is_late: npt.NDArray[np.bool_] = columns[9]
        self.attr: Indices = columns[10]
        self._parts = []


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


def _times(column: bytes) -> Times:
    return np.frombuffer(column, "<i8")


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
