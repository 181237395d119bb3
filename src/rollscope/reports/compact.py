"""Answers in few bytes: tables as columns, numbers as differences, words by number.

An answer becomes JSON in which every list says by its first item how it is written:

    [0, a, b, …]                  its items, each written the same way
    [1, n, {key: column, …}]      a list of n objects, as columns
    [2, base, unit, d1, d2, …]    numbers: base + unit * (d1 + … + di)
    [3, base, unit, v1, v2, …]    numbers: base + unit * vi
    [4, [words], i1, i2, …]       one of the words
    [5, n, value]                 n times the same
    [6, fill, [counts], column]   the column with gaps: so many left out, so many given, in turn;
                                  a gap is null if fill is 1, else the key is not there at all
    [7, column]                   ids of sessions, by their number in the list of sessions
    [8, field]                    what the list of sessions says in that field of those sessions

Gzip then finds little digits where it would have found long ones. The inverse is the page's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["Compactor", "KnownSessions"]

_SHORT: Final = 4
_LARGE: Final = 256
"""Columns from this length on have their times rounded, where times are."""
_SESSION_KEYS: Final = ("session_id", "sessions")
_EXACT: Final = 1 << 53

Json = Any  # whatever JSON can say
_GAP: Final = object()


class KnownSessions:
    """The list of sessions that other tables refer to."""

    def __init__(self, ids: Sequence[str], lines: Sequence[Mapping[str, Json]]) -> None:
        self.places: Final = {one: place for place, one in enumerate(ids)}
        self._lines = lines

    def field(self, place: int, name: str) -> Json:
        """Give what is said of a session."""
        line = self._lines[place]
        return line[name] if name in line else line["row"].get(name, _GAP)


class Compactor:
    """Writes answers in few bytes."""

    def __init__(self, sessions: KnownSessions | None = None, unit_ns: int = 1) -> None:
        """Prepare to write.

        Args:
            sessions: What may be referred to.
            unit_ns: What times in long columns are rounded to.
        """
        self._sessions = sessions or KnownSessions((), ())
        self._unit_ns = unit_ns

    def write(self, value: Json) -> Json:
        """Write any part of an answer."""
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return self._column("", value)
        return value

    def _object(self, value: Mapping[str, Json]) -> Json:
        numbers = self._numbers_of(value)
        return {
            key: self._column(key, item, numbers) if isinstance(item, list) else self.write(item)
            for key, item in value.items()
        }

    def _numbers_of(self, columns: Mapping[str, Json]) -> list[int] | None:
        """Give the numbers of the sessions that columns are about, if they are about any."""
        places = self._sessions.places
        for key in _SESSION_KEYS:
            ids = columns.get(key)
            if isinstance(ids, list) and len(ids) >= _SHORT and _are_texts(ids):
                found = [places[one] for one in ids if one in places]
                return found if len(found) == len(ids) else None
        return None

    def _column(
        self,
        key: str,
        values: list[Json],
        numbers: list[int] | None = None,
        *,
        is_time: bool = False,
    ) -> Json:
        if len(values) < _SHORT:
            return [0, *(self.write(one) for one in values)]
        if _is_constant(values):
            return [5, len(values), values[0]]
        for gap, fill in ((_GAP, 0), (None, 1)):
            if any(one is gap for one in values):
                return self._with_gaps(key, values, gap, fill, is_time=is_time)
        if all(isinstance(one, dict) for one in values):
            return self._table(values, are_times=key == "phases")
        kinds = set(map(type, values))
        if kinds == {int}:
            return self._numbers(values, numbers, key, is_time=is_time or key.endswith("_ns"))
        if kinds <= {str, bool}:
            return self._words(key, values, numbers)
        return [0, *(self.write(one) for one in values)]

    def _table(self, rows: list[dict[str, Json]], *, are_times: bool) -> Json:
        keys = dict.fromkeys(key for row in rows for key in row)
        columns = {key: [row.get(key, _GAP) for row in rows] for key in keys}
        numbers = self._numbers_of(columns)
        return [
            1,
            len(rows),
            {key: self._column(key, c, numbers, is_time=are_times) for key, c in columns.items()},
        ]

    def _with_gaps(
        self, key: str, values: list[Json], gap: object, fill: int, *, is_time: bool
    ) -> Json:
        counts: list[int] = []
        is_given = False
        for one in values:
            if not counts or (one is not gap) != is_given:
                if not counts and one is not gap:
                    counts.append(0)
                is_given = one is not gap
                counts.append(0)
            counts[-1] += 1
        given = [one for one in values if one is not gap]
        return [6, fill, counts, self._column(key, given, is_time=is_time)]

    def _words(self, key: str, values: list[Json], numbers: list[int] | None) -> Json:
        places = self._sessions.places
        if all(one in places for one in values):
            return [7, self._numbers([places[one] for one in values], None, "", is_time=False)]
        if self._is_known(key, values, numbers):
            return [8, key]
        words = {word: place for place, word in enumerate(dict.fromkeys(values))}
        if 2 * len(words) > len(values):
            return [0, *values]
        return [4, list(words), *(words[one] for one in values)]

    def _numbers(
        self, values: list[int], numbers: list[int] | None, key: str, *, is_time: bool
    ) -> Json:
        if self._is_known(key, values, numbers):
            return [8, key]
        unit = self._unit_ns if is_time and len(values) >= _LARGE else 1
        whole = [(one + unit // 2) // unit for one in values]
        base = min(whole) if max(map(abs, whole)) * unit >= _EXACT else 0
        plain = [one - base for one in whole]
        steps = [after - before for before, after in zip([0, *plain], plain, strict=False)]
        tag, shorter = (2, steps) if _digits(steps) < _digits(plain) else (3, plain)
        return [tag, base * unit, unit, *shorter]

    def _is_known(self, key: str, values: list[Json], numbers: list[int] | None) -> bool:
        field = self._sessions.field
        return numbers is not None and all(
            field(number, key) == one for number, one in zip(numbers, values, strict=True)
        )


def _are_texts(values: list[Json]) -> bool:
    return all(isinstance(one, str) for one in values)


def _is_constant(values: list[Json]) -> bool:
    first = values[0]
    if isinstance(first, dict | list) or first is _GAP:
        return False
    return all(type(one) is type(first) and one == first for one in values)


def _digits(values: list[int]) -> int:
    return sum(len(str(one)) for one in values)
