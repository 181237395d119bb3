from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollscope.store.corrections import Correction, move_times
from rollscope.store.dialect import DUCKDB
from rollscope.store.embedded import RunStore
from rollscope.store.views import _moved
from tests.builders import EPOCH, SECOND
from tests.skewedhosts import (
    FAR,
    HUB,
    MS,
    HostClock,
    SimProcess,
    calls,
    earliest_effect,
    placed,
    read_clock,
    write_readings,
    write_spans,
)

DAY = 86_400 * SECOND
processes = st.integers(0, 2**64 - 1)
offsets = st.integers(-(10**12), 10**12)
times = st.integers(EPOCH - DAY, EPOCH + 3 * DAY)
corrections = st.one_of(
    offsets.map(Correction.constant),
    st.builds(
        lambda knots, start, rate: Correction.through(
            [(EPOCH + time, start + offset) for time, offset in sorted(knots.items())], rate
        ),
        st.dictionaries(st.integers(0, 2 * DAY), st.integers(-SECOND, SECOND), min_size=1),
        offsets,
        st.floats(-5e-4, 5e-4),
    ),
)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as opened:
        yield opened


@given(st.dictionaries(processes, corrections, max_size=12), st.lists(times, min_size=1), processes)
def test_the_engine_moves_times_by_the_correction_of_their_process_only(
    connection: duckdb.DuckDBPyConnection,
    moved: dict[int, Correction],
    at: list[int],
    other: int,
) -> None:
    rows = list(itertools.product([*moved, other], at))
    table = ", ".join(f"({process}::UBIGINT, {time}::BIGINT)" for process, time in rows)
    sql = f"SELECT {_moved('r.at_ns', moved, DUCKDB)} FROM (VALUES {table}) r(process, at_ns)"  # noqa: S608
    by_hand = [time + moved[one].at(time) if one in moved else time for one, time in rows]
    whose, when = np.array([r[0] for r in rows], np.uint64), np.array([r[1] for r in rows])

    assert [value for (value,) in connection.execute(sql).fetchall()] == by_hand
    assert (when + move_times(when, whose, moved)).tolist() == by_hand


def test_times_of_a_run_with_good_clocks_are_read_as_they_stand() -> None:
    assert _moved("r.start_ns", {}, DUCKDB) == "r.start_ns"


@given(corrections, st.lists(times, min_size=2))
def test_moved_times_keep_their_order(correction: Correction, at: list[int]) -> None:
    around = sorted({time + step for time in at for step in (0, 1, 2)})
    around += [knot.at_ns + step for knot in correction.knots for step in (-1, 0, 1)]
    places = [time + correction.at(time) for time in sorted(around)]
    assert places == sorted(places)


@given(corrections)
def test_a_correction_makes_no_jumps(correction: Correction) -> None:
    for knot in correction.knots:
        before, after = correction.at(knot.at_ns - 1), correction.at(knot.at_ns)
        assert abs(after - before) <= 2


@given(corrections, times)
def test_what_was_recorded_is_found_from_a_moved_time(correction: Correction, at: int) -> None:
    found = correction.undo(at)
    assert found + correction.at(found) >= at > found - 1 + correction.at(found - 1)


@given(corrections, times, st.integers(0, DAY))
def test_nothing_is_moved_further_than_told(correction: Correction, first: int, lasts: int) -> None:
    most = correction.most(first, first + lasts)
    for share in range(11):
        assert abs(correction.at(first + lasts * share // 10)) <= most


@given(corrections)
def test_a_correction_survives_being_written(correction: Correction) -> None:
    again = Correction.read(correction.text, correction.at(0))
    assert again.at(EPOCH) == correction.at(EPOCH)
    assert again.at(EPOCH + DAY) == correction.at(EPOCH + DAY)


class Drawn(NamedTuple):
    """How a run of two hosts is drawn."""

    earliest_ns: int
    """How long after its cause an effect is, at least."""
    off_ns: int
    """How far from its true time anything is, at most."""
    told_ns: int


def draw(skew_ns: int, drift_ppm: float, ways: Iterator[tuple[int, int]], seed: int) -> Drawn:
    """Let a trainer and a rollout process call each other, and say how it looks."""
    trainer = SimProcess(1, HUB, HostClock(), role="trainer")
    rollout = SimProcess(2, FAR, HostClock(skew_ns, drift_ppm))
    spans = calls(trainer, rollout, 600, random.Random(seed), 60)
    readings = [
        read_clock(rollout, second * SECOND, *way)
        for second, way in zip(range(0, 600, 5), ways, strict=False)
    ]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        write_spans(run, [trainer, rollout], spans)
        write_readings(run, 9, readings)
        with RunStore(run, threads=1, now_ns=EPOCH + 700 * SECOND) as store:
            found = placed(store, spans)
            (told,) = store.query("SELECT offset_error_ns FROM processes WHERE process = 2")
    off_ns = max(abs(one.off_ns) for one in found.values())
    return Drawn(earliest_effect(spans, found), off_ns, told[0].as_py())


skews = st.integers(-(10**10), 10**10)
drifts = st.floats(-100, 100)
ways = st.integers(50_000, 20 * MS)


@settings(max_examples=12)
@given(skews, drifts, ways, ways, st.integers(0, 9))
def test_effects_are_never_drawn_before_their_causes(
    skew_ns: int, drift_ppm: float, out_ns: int, back_ns: int, seed: int
) -> None:
    """However much longer one way takes: records of both hosts tell what round trips cannot."""
    drawn = draw(skew_ns, drift_ppm, itertools.repeat((out_ns, back_ns)), seed)
    assert drawn.earliest_ns >= 0
    assert drawn.off_ns <= drawn.told_ns + MS


@settings(max_examples=12)
@given(skews, drifts, ways, st.integers(0, 2**32))
def test_times_are_as_right_as_the_readings_they_were_found_by(
    skew_ns: int, drift_ppm: float, most_ns: int, seed: int
) -> None:
    source = random.Random(seed)
    uneven = ((source.randrange(most_ns), source.randrange(most_ns)) for _ in itertools.count())
    drawn = draw(skew_ns, drift_ppm, uneven, seed)
    assert drawn.earliest_ns >= -most_ns
    assert drawn.off_ns <= most_ns + MS
