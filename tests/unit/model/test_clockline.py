from __future__ import annotations

import itertools

from rollscope.model.clockline import ClockLine, ClockMap

FIRST = ClockLine(1_000, 5_000_000)
SECOND = ClockLine(11_000, FIRST.wall_at(11_000), 100_000_000)  # 10 % fast
THIRD = ClockLine(21_000, SECOND.wall_at(21_000), -100_000_000)


def test_a_line_places_time_before_and_after_its_anchor() -> None:
    assert FIRST.wall_at(1_000) == 5_000_000
    assert FIRST.wall_at(1_500) == 5_000_500
    assert FIRST.wall_at(500) == 4_999_500
    assert SECOND.wall_at(12_000) == SECOND.wall_ns + 1_100


def test_a_map_uses_the_line_in_force_at_each_time() -> None:
    clock = ClockMap()
    for line in (FIRST, SECOND, THIRD):
        clock.add(line)
    assert clock.line_for(10_999) == FIRST
    assert clock.line_for(11_000) == SECOND
    assert clock.line_for(20_999) == SECOND
    assert clock.line_for(99_000) == THIRD


def test_a_time_before_the_first_line_is_placed_by_the_first() -> None:
    clock = ClockMap()
    clock.add(SECOND)
    assert clock.wall_at(0) == SECOND.wall_at(0)


def test_lines_may_come_in_any_order_and_more_than_once() -> None:
    lines = (FIRST, SECOND, THIRD)
    times = range(0, 40_000, 500)
    expected = ClockMap()
    for line in lines:
        expected.add(line)
    for order in itertools.permutations(lines + lines):
        clock = ClockMap()
        for line in order:
            clock.add(line)
        assert [clock.wall_at(t) for t in times] == [expected.wall_at(t) for t in times]
