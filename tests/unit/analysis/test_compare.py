"""Two sides compared."""

from rollscope.analysis.compare import PhaseComparison, compare
from rollscope.analysis.statistics import TaskValue

S = 1_000_000_000


def _side(scale: float = 1, shift_s: float = 0, spread_s: int = 90) -> list[TaskValue]:
    """Give 100 lengths from 10 s on, of 50 tasks, in a mixed order."""
    return [
        (f"math/{n % 50}", round(S * (scale * (10 + spread_s * (n * 37 % 100) / 100) + shift_s)))
        for n in range(100)
    ]


def _one(first: list[TaskValue], second: list[TaskValue]) -> PhaseComparison:
    (row,) = compare({"generate": first}, {"generate": second})
    return row


def test_a_share_at_every_quantile() -> None:
    row = _one(_side(), _side(scale=1.6))

    assert row.text == "about +60 % at every quantile"
    assert row.is_clear
    assert row.ratio == 1.6
    assert 0 < row.effect < 1


def test_a_constant_at_every_quantile() -> None:
    row = _one(_side(), _side(shift_s=30))

    assert row.text == "about +30.0 s, constant"
    assert row.difference_ns == 30 * S
    assert row.low_ns is not None
    assert 0 < row.low_ns < 30 * S


def test_a_difference_that_grows_faster_than_a_share() -> None:
    row = _one(_side(), _side(scale=3, shift_s=-20))

    assert row.text == "from about +16.2 s at p10 to +2 m 40 s at p90"


def test_where_lengths_are_alike_a_share_is_a_constant_too() -> None:
    row = _one(_side(spread_s=1), _side(spread_s=1, shift_s=-2))

    assert row.text == "about -2.00 s (-19 %) at every quantile"
    assert row.effect == -1.0


def test_an_interval_across_zero_is_no_clear_difference() -> None:
    row = _one(_side(), _side(shift_s=0.1))

    assert not row.is_clear
    assert row.text == "no clear difference"


def test_few_tasks_cannot_tell() -> None:
    few: list[TaskValue] = [("math/1", 5 * S)] * 30

    row = _one(few, _side())

    assert (row.low_ns, row.high_ns, row.is_clear) == (None, None, False)
    assert row.text == "too few tasks to tell"


def test_few_values_have_no_deciles() -> None:
    first: list[TaskValue] = [(n, (10 + n) * S) for n in range(6)]
    second: list[TaskValue] = [(n, (30 + n) * S) for n in range(6)]

    row = _one(first, second)

    assert row.first_deciles_ns == []
    assert row.text == "about +20.0 s at the median"


def test_whole_sessions_come_first_and_what_one_side_lacks_last() -> None:
    first = {"env": _side(), "session": _side(), "old": _side(), "tool": _side()}
    second = {"env": _side(), "session": _side(), "tool": _side(shift_s=9), "new": _side()}

    rows = compare(first, second)

    assert [row.name for row in rows] == ["session", "tool", "env", "new", "old"]
    assert [row.text for row in rows[-2:]] == ["only in the second", "only in the first"]
    assert rows[-1].difference_ns is None


def test_nothing_compared_with_nothing() -> None:
    assert compare({}, {}) == []
    (row,) = compare({"env": []}, {"env": []})
    assert (row.first.count, row.text) == (0, "no clear difference")


def test_the_line_through_deciles_follows_a_proportional_shift() -> None:
    before = [(f"task {i}", (i + 1) * 100) for i in range(100)]
    after = [(task, value * 2) for task, value in before]
    row = compare({"generate": before}, {"generate": after})[0]
    assert row.line_ns == [2 * value for value in row.first_deciles_ns]
