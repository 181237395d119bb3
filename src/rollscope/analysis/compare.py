"""Two sides compared: what each phase takes, how sure the difference is, and what shape it has."""

from collections.abc import Mapping, Sequence

import msgspec

from rollscope.analysis.ranks import Ranks, nearest_rank, ranks
from rollscope.analysis.statistics import TaskValue, cliffs_delta, median_difference, theil_sen
from rollscope.analysis.wording import say_ns

__all__ = ["UNCLEAR", "PhaseComparison", "compare"]

UNCLEAR = "no clear difference"
_TOO_FEW = "too few tasks to tell"
_NEEDED_FOR_SHAPE = 20
_SAME = 0.25
"""Up to which relative difference two shifts count as the same."""


class PhaseComparison(msgspec.Struct, kw_only=True):
    """One phase on both sides; differences are second less first."""

    name: str
    first: Ranks
    second: Ranks
    difference_ns: int | None
    """Of the medians; None if a side has none."""
    ratio: float | None
    """The second median as a multiple of the first."""
    effect: float
    """Cliff's delta, from -1 (all shorter than before) to 1 (all longer)."""
    low_ns: int | None
    """Of the 95 % interval of the difference; None with too few tasks to tell."""
    high_ns: int | None
    is_clear: bool
    """The interval does not reach across zero."""
    first_deciles_ns: list[int]
    second_deciles_ns: list[int]
    line_ns: list[int]
    """Where a robust line through the deciles passes at each of the first; none without them."""
    text: str


def compare(
    first: Mapping[str, Sequence[TaskValue]], second: Mapping[str, Sequence[TaskValue]]
) -> list[PhaseComparison]:
    """Compare the lengths of each phase, those of one session or call at a time.

    Args:
        first: Task and length in nanoseconds, by phase; `session` for whole sessions.
        second: The other side.

    Returns:
        Whole sessions first, then the largest differences of medians; phases that only one side
        has are last.
    """
    rows = [_compare(name, first.get(name, ()), second.get(name, ())) for name in {*first, *second}]
    return sorted(rows, key=_order)


def _compare(name: str, first: Sequence[TaskValue], second: Sequence[TaskValue]) -> PhaseComparison:
    before, after = [value for _, value in first], [value for _, value in second]
    shift = median_difference(first, second)
    of_before, of_after = ranks(before), ranks(after)
    deciles = _deciles(before), _deciles(after)
    if shift is None:
        text = "only in the second" if after else "only in the first" if before else UNCLEAR
    elif shift.low is None:
        text = _TOO_FEW
    elif not shift.is_clear:
        text = UNCLEAR
    else:
        text = _shape(*deciles) or f"about {_signed(shift.difference)} at the median"
    return PhaseComparison(
        name=name,
        first=of_before,
        second=of_after,
        difference_ns=None if shift is None else shift.difference,
        ratio=of_after.p50_ns / of_before.p50_ns if of_after.p50_ns and of_before.p50_ns else None,
        effect=cliffs_delta(after, before),
        low_ns=None if shift is None else shift.low,
        high_ns=None if shift is None else shift.high,
        is_clear=shift is not None and shift.is_clear,
        first_deciles_ns=deciles[0],
        second_deciles_ns=deciles[1],
        line_ns=_line(*deciles),
        text=text,
    )


def _deciles(values: Sequence[int]) -> list[int]:
    """Give the nine that divide the values into tenths; none of too few values."""
    if len(values) < _NEEDED_FOR_SHAPE:
        return []
    ordered = sorted(values)
    return [nearest_rank(ordered, percent) for percent in range(10, 100, 10)]


def _line(before: Sequence[int], after: Sequence[int]) -> list[int]:
    if not before or not after:
        return []
    line = theil_sen(before, after)
    return [round(line.at(x)) for x in before]


def _shape(before: Sequence[int], after: Sequence[int]) -> str | None:
    """Say whether a difference is a share or a constant, by a robust line through the deciles.

    Where the deciles lie so close together that the two cannot be told apart, both are given.
    """
    if not before or not after:
        return None
    low, high = before[0], before[-1]
    line = theil_sen(before, [y - x for x, y in zip(before, after, strict=True)])
    at_low, at_high = line.at(low), line.at(high)
    middle = line.at(before[len(before) // 2])
    is_constant = _is_same(at_low, at_high)
    has_share = low > 0 and _is_same(at_low / low, at_high / high)
    share = middle / before[len(before) // 2] if has_share else 0.0
    if is_constant and has_share:
        return f"about {_signed(middle)} ({share:+.0%}) at every quantile".replace("%", " %")
    if has_share:
        return f"about {share:+.0%} at every quantile".replace("%", " %")
    if is_constant:
        return f"about {_signed(middle)}, constant"
    return f"from about {_signed(at_low)} at p10 to {_signed(at_high)} at p90"


def _is_same(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME * max(abs(one), abs(other))


def _signed(ns: float) -> str:
    return f"{'-' if ns < 0 else '+'}{say_ns(abs(round(ns)))}"


def _order(row: PhaseComparison) -> tuple[bool, bool, int, str]:
    return (
        row.name != "session",
        row.difference_ns is None,
        -abs(row.difference_ns or 0),
        row.name,
    )
