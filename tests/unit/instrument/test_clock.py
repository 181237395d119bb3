from __future__ import annotations

import itertools
import random

import pytest

from rollscope.instrument.clock import SystemClock, WallLine
from rollscope.model.clockline import ClockLine, ClockMap
from rollscope.testing import FakeClock
from tests.builders import SECOND

MILLISECOND = 1_000_000
HOUR = 3600 * SECOND


class DriftingClock:
    """A wall clock that runs faster or slower than the monotonic one, and can be set."""

    def __init__(self, ppm: float = 0.0) -> None:
        self._ppm = ppm
        self._set_ns = 0
        self.now_ns = 5 * SECOND

    def mono_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return (
            1_700_000_000 * SECOND
            + self.now_ns
            + round(self.now_ns * self._ppm / 1e6)
            + self._set_ns
        )

    def set_by(self, change_ns: int) -> None:
        self._set_ns += change_ns


def follow(clock: DriftingClock, wall: WallLine, lengths_ns: list[int]) -> list[int]:
    """Let time pass in steps and give the error of the line after each."""
    errors = []
    for length in lengths_ns:
        clock.now_ns += length
        errors.append(wall.line.wall_at(clock.now_ns) - clock.wall_ns())
        wall.renew_if_due()
    return errors


@pytest.mark.parametrize("ppm", [-100.0, -3.5, 0.0, 0.1, 100.0])
def test_hours_of_drift_stay_under_a_millisecond(ppm: float) -> None:
    clock = DriftingClock(ppm)
    errors = follow(clock, WallLine(clock), [SECOND // 5] * (4 * HOUR // (SECOND // 5)))
    assert max(map(abs, errors)) < MILLISECOND
    settled = errors[len(errors) // 100 :]
    assert max(map(abs, settled)) < MILLISECOND // 100


@pytest.mark.parametrize("every_s", [11, 60, 600])
def test_a_line_that_is_seldom_renewed_does_not_swing(every_s: int) -> None:
    clock = DriftingClock(100)
    errors = follow(clock, WallLine(clock), [every_s * SECOND] * 50)
    assert max(map(abs, errors)) <= abs(errors[0])
    assert max(map(abs, errors[5:])) < MILLISECOND


def test_a_line_renewed_at_uneven_times_does_not_swing() -> None:
    source = random.Random(3)
    clock = DriftingClock(-50)
    lengths = [round(source.choice((0.2, 1, 10, 10.2, 60)) * SECOND) for _ in range(3000)]
    errors = follow(clock, WallLine(clock), lengths)
    assert max(map(abs, errors[200:])) < MILLISECOND


@pytest.mark.parametrize("seconds", [3600, -3600, 1, -1])
def test_a_jump_of_the_wall_clock_is_noted_and_not_followed(seconds: int) -> None:
    clock = DriftingClock(20)
    wall = WallLine(clock)
    follow(clock, wall, [SECOND] * 600)
    place = wall.line.wall_at(clock.now_ns)
    clock.set_by(seconds * SECOND)
    errors = follow(clock, wall, [SECOND] * 3600)
    assert wall.line.jumped_ns == pytest.approx(seconds * SECOND, abs=MILLISECOND)
    # 3600 s later the line stands where the old wall clock would stand.
    assert wall.line.wall_at(clock.now_ns) - place == pytest.approx(HOUR, abs=80 * MILLISECOND)
    assert errors[-1] == pytest.approx(-seconds * SECOND, abs=MILLISECOND)


def test_a_wall_clock_set_forth_and_back_leaves_no_jump() -> None:
    clock = DriftingClock()
    wall = WallLine(clock)
    for change in (HOUR, -HOUR):
        clock.set_by(change)
        follow(clock, wall, [SECOND] * 60)
    assert wall.line.jumped_ns == 0


def test_a_small_step_of_the_wall_clock_is_slewed_away() -> None:
    clock = DriftingClock()
    wall = WallLine(clock)
    follow(clock, wall, [SECOND] * 60)
    clock.set_by(20 * MILLISECOND)
    errors = follow(clock, wall, [SECOND] * 600)
    assert abs(errors[0]) == 20 * MILLISECOND
    assert abs(errors[-1]) < MILLISECOND
    assert wall.line.jumped_ns == 0


def test_consecutive_lines_meet_and_time_never_runs_backwards() -> None:
    source = random.Random(11)
    clock = DriftingClock(80)
    wall = WallLine(clock)
    lines: list[ClockLine] = [wall.line]
    times: list[int] = []
    for _ in range(3000):
        clock.now_ns += round(source.expovariate(1 / 3) * SECOND) + 1
        if source.random() < 0.02:
            clock.set_by(round(source.gauss(0, 1) * 10 ** source.randint(3, 13)))
        times.append(clock.now_ns)
        if wall.renew_if_due() != lines[-1]:
            lines.append(wall.line)
    assert len(lines) > 300
    for before, after in itertools.pairwise(lines):
        assert before.wall_at(after.mono_ns) == after.wall_ns
    mapping = ClockMap()
    for line in lines:
        mapping.add(line)
    places = [mapping.wall_at(t) for t in times]
    assert all(a < b for a, b in itertools.pairwise(places))


def test_the_rate_stays_within_what_a_slewed_clock_can_do() -> None:
    clock = DriftingClock(5000)
    wall = WallLine(clock)
    for _ in range(100):
        follow(clock, wall, [10 * SECOND])
        assert abs(wall.line.rate_ppb) <= 500_000


def test_the_first_line_is_right_where_it_begins() -> None:
    clock = FakeClock()
    wall = WallLine(clock)
    assert wall.line == (clock.mono_ns(), clock.wall_ns(), 0, 0)


def test_a_line_holds_for_ten_seconds() -> None:
    clock = FakeClock()
    wall = WallLine(clock)
    clock.advance(60)
    second = wall.renew_if_due()
    clock.advance(9.9)
    assert wall.renew_if_due() is second
    clock.advance(0.2)
    assert wall.renew_if_due() is not second


def test_both_clocks_are_read_as_one_moment() -> None:
    class Interrupted(FakeClock):
        """The process is put aside between the first readings of both clocks."""

        def wall_ns(self) -> int:
            read = super().wall_ns()
            self.advance(pauses.pop())
            return read

    pauses = [2e-6, 1e-6, 3.0]
    clock = Interrupted()
    line = WallLine(clock).line
    assert not pauses
    assert abs((line.wall_ns - line.mono_ns) - (clock._wall_ns - clock._mono_ns)) < 2_000


def test_the_system_clock_reads_the_clocks_of_this_machine() -> None:
    import time

    clock = SystemClock()
    assert abs(clock.wall_ns() - time.time_ns()) < 60 * SECOND
    first, second = clock.mono_ns(), clock.mono_ns()
    assert first <= second <= time.perf_counter_ns()
