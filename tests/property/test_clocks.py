from __future__ import annotations

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from rollscope.instrument.clock import WallLine
from rollscope.model.clockline import ClockLine, ClockMap
from rollscope.testing import FakeClock

# Seconds that pass, and by how much the wall clock is set meanwhile.
histories = st.lists(
    st.tuples(
        st.floats(0.001, 1000),
        st.one_of(st.just(0.0), st.floats(-0.2, 0.2), st.floats(-10_000, 10_000)),
    ),
    min_size=1,
    max_size=60,
)


def follow(history: list[tuple[float, float]]) -> tuple[list[ClockLine], list[int]]:
    """Give the lines of a process that lived through this, and the times it looked."""
    clock = FakeClock()
    wall = WallLine(clock)
    lines, times = [wall.line], [clock.mono_ns()]
    for passed_s, set_s in history:
        clock.advance(passed_s)
        clock.jump(set_s)
        times.append(clock.mono_ns())
        if wall.renew_if_due() is not lines[-1]:
            lines.append(wall.line)
    return lines, times


@given(histories)
def test_lines_meet_whatever_the_wall_clock_does(history: list[tuple[float, float]]) -> None:
    lines, _ = follow(history)
    for before, after in itertools.pairwise(lines):
        assert before.wall_at(after.mono_ns) == after.wall_ns
        assert before.mono_ns < after.mono_ns
        assert abs(after.rate_ppb) <= 500_000


@given(histories)
def test_placing_times_keeps_their_order_and_nearly_their_distances(
    history: list[tuple[float, float]],
) -> None:
    lines, times = follow(history)
    clock = ClockMap()
    for line in lines:
        clock.add(line)
    places = [clock.wall_at(time) for time in times]
    for (t, a), (u, b) in itertools.pairwise(zip(times, places, strict=True)):
        assert a <= b
        assert abs((b - a) - (u - t)) <= (u - t) / 2000 + 2


@given(histories, st.randoms(use_true_random=False))
def test_lines_may_come_in_any_order_and_more_than_once(
    history: list[tuple[float, float]], source: random.Random
) -> None:
    lines, times = follow(history)
    expected, shuffled = ClockMap(), ClockMap()
    for line in lines:
        expected.add(line)
    doubled = lines + lines[::2]
    source.shuffle(doubled)
    for line in doubled:
        shuffled.add(line)
    assert [expected.wall_at(t) for t in times] == [shuffled.wall_at(t) for t in times]


@given(
    st.integers(0, 2**62),
    st.integers(0, 2**62),
    st.integers(-500_000, 500_000),
    st.integers(0, 2**62),
)
def test_a_line_is_increasing(mono: int, wall: int, rate: int, at: int) -> None:
    line = ClockLine(mono, wall, rate)
    assert line.wall_at(mono) == wall
    assert line.wall_at(at) < line.wall_at(at + 2)
