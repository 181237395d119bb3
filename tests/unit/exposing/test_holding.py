from __future__ import annotations

from rollscope.exposing.holding import Held
from rollscope.metrics.families import Distribution, Exposed, Family, FamilyKind, Point

COUNTER = Family(name="a_total", kind=FamilyKind.COUNTER, help="A.", labels=("run", "x"))
GAUGE = Family(name="b", kind=FamilyKind.GAUGE, help="B.", labels=("run",))
HISTOGRAM = Family(name="c", kind=FamilyKind.HISTOGRAM, help="C.", labels=("run",), bounds=(1.0,))


def _hold(held: Held, family: Family, *points: Point) -> list[Point]:
    (found,) = [one for one in held.hold([Exposed(family, points)]) if one.family == family]
    return list(found.points)


def test_a_counter_whose_rows_are_gone_stays_and_then_goes_on() -> None:
    held = Held()
    shown = [
        _hold(held, COUNTER, Point(("r", ""), value))[0].value for value in (5, 9, 4, 4, 6, 20)
    ]
    assert shown == [5, 9, 9, 9, 11, 25]


def test_a_series_that_is_gone_is_shown_as_it_was() -> None:
    held = Held()
    point = Point(("r", "v"), 3)
    assert _hold(held, COUNTER, point) == [point]
    assert _hold(held, COUNTER) == [point]
    assert held.hold([]) == [Exposed(COUNTER, [point])]
    assert _hold(held, COUNTER, Point(("r", "v"), 2)) == [Point(("r", "v"), 5)]


def test_a_further_label_does_not_make_another_series() -> None:
    held = Held()
    _hold(held, COUNTER, Point(("r", "v"), 3))
    wider = Family(name="a_total", kind=FamilyKind.COUNTER, help="A.", labels=("run", "x", "y"))
    assert _hold(held, wider, Point(("r", "v", ""), 2)) == [Point(("r", "v", ""), 3)]


def test_no_bucket_of_a_histogram_falls() -> None:
    held = Held()
    _hold(held, HISTOGRAM, Point(("r",), Distribution([3, 2], 10.0)))
    (fallen,) = _hold(held, HISTOGRAM, Point(("r",), Distribution([1, 2], 4.0)))
    (risen,) = _hold(held, HISTOGRAM, Point(("r",), Distribution([2, 2], 4.5)))
    assert fallen.value == Distribution([3, 2], 10.0)
    assert risen.value == Distribution([4, 2], 10.5)


def test_the_sum_of_values_below_zero_may_fall() -> None:
    held = Held()
    _hold(held, HISTOGRAM, Point(("r",), Distribution([1, 0], -1.0)))
    (fallen,) = _hold(held, HISTOGRAM, Point(("r",), Distribution([2, 0], -3.0)))
    assert fallen.value == Distribution([2, 0], -3.0)


def test_gauges_are_as_they_are() -> None:
    held = Held()
    assert [_hold(held, GAUGE, Point(("r",), value))[0].value for value in (5, 2)] == [5, 2]
    assert _hold(held, GAUGE) == []
