from __future__ import annotations

import random

import msgspec

from rollscope.model.batch import ClockReading
from rollscope.store.clocktracks import Track
from tests.builders import PROCESS, SECOND
from tests.skewedhosts import FAR, MS, HostClock, SimProcess, read_often


def feed(track: Track, *readings: tuple[float, float, float]) -> None:
    """Add readings: second, offset and error in milliseconds."""
    for second, offset_ms, error_ms in readings:
        offset_ns, error_ns = int(offset_ms * MS), int(error_ms * MS)
        track.add(ClockReading(PROCESS, int(second * SECOND), offset_ns, error_ns))


def at(track: Track, second: float) -> float:
    return track.line.at(int(second * SECOND)) / MS


def test_good_readings_count_most() -> None:
    track = Track()
    feed(track, (0, 20, 20), (5, 10.0, 0.1), (10, 10.1, 0.1), (15, -3, 15))
    assert abs(at(track, 7) - 10) < 0.2
    assert track.error_after(0) < 0.4 * MS


def test_a_drift_is_followed_with_one_line() -> None:
    track = Track()
    process = SimProcess(1, FAR, HostClock(-350 * MS, -50))
    for reading in read_often(process, 3600, random.Random(1)):
        track.add(reading)
    assert not track.knots
    assert abs(track.line.rate * 1e6 - 50) < 0.5
    assert len(track.recent) <= 64
    assert track.count == 720


def test_a_single_odd_reading_is_left_out() -> None:
    track = Track()
    feed(track, *((n, 5, 0.2) for n in range(0, 60, 5)), (60, 80, 0.2), (65, 5, 0.2))
    assert not track.knots
    assert abs(at(track, 60) - 5) < 0.2


def test_two_in_a_row_begin_another_line_and_what_was_settled_stays() -> None:
    track = Track()
    feed(track, *((n, 5, 0.2) for n in range(0, 60, 5)), (60, 80, 0.2), (65, 80, 0.2))
    settled = list(track.knots)
    assert [knot.mono_ns // SECOND for knot in settled] == [0, 55]
    assert {round(knot.offset_ns / MS, 1) for knot in settled} == {5.0}
    assert abs(at(track, 65) - 80) < 0.5
    feed(track, *((n, 80, 0.2) for n in range(70, 200, 5)), (30, 900, 0.01))
    assert track.knots == settled
    assert abs(at(track, 200) - 80) < 0.2


def test_a_clock_that_wanders_is_remembered_in_few_knots() -> None:
    track, source, offset_ms = Track(), random.Random(3), 0.0
    for second in range(0, 50_000, 5):
        offset_ms += source.choice((-1, 1)) * (2 if second % 100 == 0 else 0)
        feed(track, (second, offset_ms, 0.2))
    assert 10 < len(track.knots) <= 64
    assert track.knots == sorted(track.knots)
    assert abs(at(track, 50_000) - offset_ms) < 4


def test_a_bound_is_kept_apart_and_is_no_reading() -> None:
    track = Track()
    feed(track, (0, 9, -1e-6), (5, 7, -1e-6), (10, 8, -1e-6))
    assert not track.is_read
    assert track.bound is not None
    assert track.bound.offset_ns == 7 * MS


def test_the_error_grows_while_nothing_is_read() -> None:
    track = Track()
    feed(track, (0, 5, 0.2))
    assert track.error_after(3600 * SECOND) > track.error_after(0) + 50 * MS


def test_times_that_cannot_be_are_left_out() -> None:
    track = Track()
    track.add(ClockReading(PROCESS, 2**62, 0, 1))
    track.add(ClockReading(PROCESS, 1, -(2**63), 1))
    assert track == Track()


def test_a_track_goes_on_from_where_it_was_stored() -> None:
    process, source = SimProcess(1, FAR, HostClock(-350 * MS, -50)), random.Random(4)
    readings = read_often(process, 1200, source)
    whole, stored = Track(), Track()
    for number, reading in enumerate(readings):
        whole.add(reading)
        stored.add(reading)
        if number % 50 == 0:
            stored = msgspec.msgpack.decode(msgspec.msgpack.encode(stored), type=Track)
    assert stored == whole
    assert stored.line == whole.line
