"""Which differences are one: attributes that split the sessions in the same way."""

from collections.abc import Iterable, Sequence
from statistics import correlation

from rollscope.analysis.columntests import Difference, Tested, title_of
from rollscope.analysis.statistics import average_ranks

__all__ = ["fold_alike"]

_ALIKE = 0.95


def fold_alike(tests: Iterable[Tested]) -> list[Difference]:
    """Rank by effect; what splits the sessions like a stronger one is only named there."""
    kept: list[tuple[Tested, int]] = []
    for test in sorted(tests, key=_order):
        members = 0 if test.row.value is None else test.column.members(test.row.value)
        twin = next((other for other, its in kept if _split_alike(test, members, other, its)), None)
        if twin is None:
            kept.append((test, members))
        else:
            twin.row.alike.append(title_of(test.row))
    return [test.row for test, _ in kept]


def _order(test: Tested) -> tuple[float, bool, float]:
    """Sort by effect; of two sides of one split, what they have precedes what they lack."""
    return -round(abs(test.row.effect), 9), test.row.effect < 0, test.row.p


def _split_alike(one: Tested, members: int, other: Tested, others: int) -> bool:
    if one.column.numbers is not None and other.column.numbers is not None:
        return _are_in_step(one.column.numbers, other.column.numbers)
    if one.column.numbers is not None or other.column.numbers is not None:
        return False
    # To have one value and not to have another may be the same split, seen from its two sides.
    everyone = (1 << (one.row.chosen_count + one.row.rest_count)) - 1
    is_same = _likeness(members, others) >= _ALIKE
    is_opposite = _likeness(everyone ^ members, others) >= _ALIKE
    return is_same or (is_opposite and _likeness(members, everyone ^ others) >= _ALIKE)


def _likeness(one: int, other: int) -> float:
    """Give how many are in both of those that are in either."""
    either = (one | other).bit_count()
    return (one & other).bit_count() / either if either else 1.0


def _are_in_step(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    pairs = list(zip(one, other, strict=True))
    both = [(x, y) for x, y in pairs if x is not None and y is not None]
    if len(both) < _ALIKE * sum(1 for x, y in pairs if x is not None or y is not None):
        return False
    xs, ys = average_ranks([x for x, _ in both]), average_ranks([y for _, y in both])
    if len(set(xs)) == 1 or len(set(ys)) == 1:
        return False
    return abs(correlation(xs, ys)) >= _ALIKE
