"""Counters that never fall while a server lives, whatever becomes of the rows behind them.

Rows may be retired, and a verdict be read in another order after a restart of the reader. What was
shown then stays, and what is added later comes on top.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from rollscope.metrics.families import Distribution, Exposed, Family, FamilyKind, Point

__all__ = ["Held"]

_Key = tuple[tuple[str, str], ...]
"""Labels that are not empty."""
_HELD: Final = frozenset({FamilyKind.COUNTER, FamilyKind.HISTOGRAM})


class _Level(msgspec.Struct):
    """What a counter showed, and what is missing from its rows."""

    shown: list[float]
    """The sum, then the buckets."""
    missing: list[float]
    latest: Point


class Held:
    """What the counters and histograms of one run have shown."""

    def __init__(self) -> None:
        self._families: dict[str, tuple[Family, dict[_Key, _Level]]] = {}

    def hold(self, exposed: Iterable[Exposed]) -> list[Exposed]:
        """Give families with no counter below what it was; those that are gone stay."""
        held, seen = [], set()
        for one in exposed:
            if one.family.kind in _HELD:
                seen.add(one.family.name)
                one = self._hold_family(one.family, one.points)
            held.append(one)
        gone = [family for name, (family, _) in self._families.items() if name not in seen]
        return [*held, *(self._hold_family(family, ()) for family in gone)]

    def _hold_family(self, family: Family, points: Iterable[Point]) -> Exposed:
        _, levels = self._families.get(family.name, (family, {}))
        self._families[family.name] = family, levels
        shown, seen = [], set()
        for point in points:
            # Empty labels say nothing, so a family may get further ones.
            named = zip(family.labels, point.labels, strict=True)
            key = tuple(pair for pair in named if pair[1])
            seen.add(key)
            shown.append(_hold_point(levels, key, point))
        for key in [known for known in levels if known not in seen]:
            levels[key].missing = list(levels[key].shown)
            values = dict(key)
            labels = tuple(values.get(name, "") for name in family.labels)
            shown.append(levels[key].latest._replace(labels=labels))
        return Exposed(family, shown)


def _hold_point(levels: dict[_Key, _Level], key: _Key, point: Point) -> Point:
    is_distribution = isinstance(point.value, Distribution)
    now = _numbers(point)
    level = levels.get(key)
    if level is None or len(level.shown) != len(now):
        levels[key] = _Level(now, [0] * len(now), point)
        return point
    values = [a + b for a, b in zip(now, level.missing, strict=True)]
    # Of a histogram counts must not fall; its sum may, where values are below zero.
    checked = range(1 if is_distribution else 0, len(now))
    if any(values[place] < level.shown[place] for place in checked):
        _raise(values, level)
    level.shown = values
    level.latest = _with(point, values)
    return level.latest


def _raise(values: list[float], level: _Level) -> None:
    """Bring values up to what was shown, and remember by how much."""
    for place, (value, shown) in enumerate(zip(values, level.shown, strict=True)):
        if value < shown:
            level.missing[place] += shown - value
            values[place] = shown


def _numbers(point: Point) -> list[float]:
    if isinstance(point.value, Distribution):
        return [point.value.total, *point.value.counts]
    return [point.value]


def _with(point: Point, values: Sequence[float]) -> Point:
    if not isinstance(point.value, Distribution):
        return point._replace(value=values[0])
    counts = [int(value) for value in values[1:]]
    return point._replace(value=point.value._replace(total=values[0], counts=counts))
