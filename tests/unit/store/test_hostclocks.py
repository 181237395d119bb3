"""Two hosts, one of which is 350 ms behind and loses 50 ppm, at every stage of knowing of it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.model.batch import ClockReading
from rollscope.model.clockline import ClockLine
from rollscope.model.kinds import Status
from rollscope.store.embedded import RunStore
from tests.builders import EPOCH, SECOND, make_batch, make_columns, make_row, write_log
from tests.skewedhosts import (
    FAR,
    HUB,
    MS,
    HostClock,
    SimProcess,
    SimSpan,
    calls,
    earliest_effect,
    placed,
    read_clock,
    read_often,
    write_readings,
    write_spans,
)

if TYPE_CHECKING:
    from pathlib import Path

HOUR_S = 3600
NOW = EPOCH + (HOUR_S + 60) * SECOND
BEHIND = HostClock(-350 * MS, -50)
TRAINER = SimProcess(1, HUB, HostClock(), role="trainer")
ROLLOUT = SimProcess(2, FAR, BEHIND)
OTHER = SimProcess(3, FAR, BEHIND, boot_ns=70 * SECOND)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def spans(run: Path) -> list[SimSpan]:
    source = random.Random(1)
    spans = calls(TRAINER, ROLLOUT, HOUR_S, source, 100)
    for span in calls(TRAINER, OTHER, HOUR_S, source, 100):
        parent_id = span.parent_id and span.parent_id + 1000
        spans.append(span._replace(span_id=span.span_id + 1000, parent_id=parent_id))
    write_spans(run, [TRAINER, ROLLOUT, OTHER], spans)
    return spans


def off_by(store: RunStore, spans: list[SimSpan]) -> int:
    """Say how far from its true time anything is drawn, after looking at the order."""
    found = placed(store, spans)
    assert earliest_effect(spans, found) >= 0
    return max(abs(one.off_ns) for one in found.values())


def told(store: RunStore, process: SimProcess) -> dict[str, Any]:
    (row,) = store.query(
        "SELECT * FROM processes WHERE process = $id", id=process.number
    ).to_pylist()
    return dict(row)


def test_times_are_right_within_the_error_though_the_clock_drifts(
    run: Path, spans: list[SimSpan]
) -> None:
    write_readings(run, 9, read_often(ROLLOUT, HOUR_S, random.Random(2)))
    with RunStore(run, threads=1, now_ns=NOW) as store:
        assert off_by(store, spans) < MS // 10
        own, other, trainer = (told(store, one) for one in (ROLLOUT, OTHER, TRAINER))

    assert 520 * MS < own["offset_ns"] < 531 * MS
    assert own["moved_ns"] >= own["offset_ns"]
    assert 0 < own["offset_error_ns"] < MS
    assert abs(own["drift_ppm"] - 50) < 0.1
    assert (own["offset_source"], own["clock_readings"]) == ("round trips", 720)
    # The other process of the host was not read, but has the same clock.
    assert (other["offset_source"], other["clock_readings"]) == ("round trips", 0)
    assert other["offset_error_ns"] == own["offset_error_ns"] + MS // 2
    assert (trainer["offset_ns"], trainer["offset_source"], trainer["correction"]) == (0, "", "")


def test_durations_stay_those_of_the_process(run: Path, spans: list[SimSpan]) -> None:
    write_readings(run, 9, read_often(ROLLOUT, HOUR_S, random.Random(2)))
    with RunStore(run, threads=1, now_ns=NOW) as store:
        sql = """
            SELECT max(abs(duration_ns - (recorded_end_ns - recorded_start_ns))) AS differs,
                max(abs(duration_ns - (end_ns - start_ns))) AS drawn FROM spans"""
        (row,) = store.query(sql).to_pylist()
    assert row["differs"] == 0
    assert row["drawn"] < 10_000  # 50 ppm of 20 ms


def test_readings_that_come_late_move_what_was_read_before(run: Path, spans: list[SimSpan]) -> None:
    readings = read_often(ROLLOUT, HOUR_S, random.Random(2))
    with RunStore(run, threads=1, now_ns=NOW) as store:
        assert told(store, ROLLOUT)["offset_source"] == "order of records"
        assert store.seal()
        for count in (1, 2, 100, 720):
            write_readings(run, 10 + count, readings[:count])
            assert store.refresh()
            assert told(store, ROLLOUT)["offset_source"] == "round trips"
        assert off_by(store, spans) < MS
    with RunStore(run, threads=1, now_ns=NOW) as store:  # from what was sealed, and the rest
        assert off_by(store, spans) < MS


def test_a_receiver_that_is_started_anew_goes_on_reading(run: Path, spans: list[SimSpan]) -> None:
    source = random.Random(2)
    write_readings(run, 8, read_often(ROLLOUT, 1200, source))
    write_readings(run, 9, read_often(ROLLOUT, HOUR_S, source, from_s=2400))
    with RunStore(run, threads=1, now_ns=NOW) as store:
        assert off_by(store, spans) < MS // 10


def test_what_is_known_of_clocks_is_sealed_with_the_run(run: Path, spans: list[SimSpan]) -> None:
    write_readings(run, 9, read_often(ROLLOUT, HOUR_S, random.Random(2)))
    with RunStore(run, threads=1, now_ns=NOW) as store:
        before = told(store, ROLLOUT)
        assert store.seal()
    for log in (run / "log").iterdir():
        log.unlink()
    with RunStore(run, threads=1, now_ns=NOW) as store:
        assert told(store, ROLLOUT) == before
        assert off_by(store, spans) < MS // 10


def test_one_way_that_always_takes_longer_is_told_by_the_order_of_records(
    run: Path, spans: list[SimSpan]
) -> None:
    uneven = [
        read_clock(ROLLOUT, second * SECOND, 8 * MS, 100_000) for second in range(0, HOUR_S, 5)
    ]
    write_readings(run, 9, uneven)
    with RunStore(run, threads=1, now_ns=NOW) as store:
        assert off_by(store, spans) < MS
        assert told(store, ROLLOUT)["offset_error_ns"] > 3 * MS


def test_a_request_without_an_answer_bounds_the_clock(run: Path) -> None:
    ahead = SimProcess(2, FAR, HostClock(2 * SECOND))
    spans = [SimSpan(1, TRAINER, 0, SECOND), SimSpan(2, ahead, SECOND, 2 * SECOND)]
    write_spans(run, [TRAINER, ahead], spans)
    write_readings(run, 9, [ClockReading(ahead.id, ahead.mono(SECOND), -2 * SECOND + MS, -1)])
    with RunStore(run, threads=1, now_ns=NOW) as store:
        row = told(store, ahead)
    assert (row["offset_ns"], row["offset_error_ns"]) == (-2 * SECOND + MS, None)


def test_a_process_from_before_a_jump_does_not_mislead_those_after_it(run: Path) -> None:
    """The host's clock was set ahead by a minute; who started before keeps its old time."""
    minute = 60 * SECOND
    old = SimProcess(2, FAR, HostClock(-minute))
    new = SimProcess(3, FAR, HostClock(0), boot_ns=500 * SECOND)
    write_spans(run, [new], [SimSpan(7, new, 20 * SECOND, 30 * SECOND)])
    jumped = ClockLine(old.mono(10 * SECOND), old.clock.wall(10 * SECOND), 0, minute)
    row = make_row(6, "work", start_ns=old.mono(25 * SECOND), end_ns=old.mono(26 * SECOND))
    batches = [
        make_batch(0, mono_ns=old.mono(0), process=old.id, clock=old.line, header=old.header()),
        make_batch(
            1, mono_ns=old.mono(40 * SECOND), process=old.id, clock=jumped, spans=make_columns(row)
        ),
    ]
    write_log(run / "log" / "far-2-1.rsl", batches)
    write_readings(run, 9, read_often(old, 40, random.Random(1)))
    with RunStore(run, threads=1, now_ns=NOW) as store:
        rows = store.query("SELECT span_id, start_ns FROM spans ORDER BY span_id").to_pylist()
    for row, second in zip(rows, (25, 20), strict=True):
        assert abs(row["start_ns"] - EPOCH - second * SECOND) < MS


def test_spans_that_are_open_last_until_now_by_the_clock_of_the_run(run: Path) -> None:
    write_spans(run, [TRAINER], [SimSpan(1, TRAINER, 0, SECOND)])
    far = ROLLOUT
    rows = make_columns(make_row(5, "open", start_ns=far.mono(3000 * SECOND), status=Status.OPEN))
    batch = make_batch(
        0, mono_ns=far.mono(HOUR_S * SECOND), process=far.id, clock=far.line,
        header=far.header(), spans=rows,
    )  # fmt: skip
    write_log(run / "log" / "far-2-1.rsl", [batch])
    write_readings(run, 9, read_often(far, HOUR_S, random.Random(2)))
    with RunStore(run, threads=1, now_ns=EPOCH + (HOUR_S + 5) * SECOND) as store:
        (row,) = store.query("SELECT start_ns, status FROM spans WHERE span_id = 5").to_pylist()
    assert row["status"] == "open"
    assert abs(row["start_ns"] - EPOCH - 3000 * SECOND) < MS


def test_a_range_of_recorded_times_finds_what_was_moved(run: Path, spans: list[SimSpan]) -> None:
    write_readings(run, 9, read_often(ROLLOUT, HOUR_S, random.Random(2)))
    with RunStore(run, threads=1, now_ns=NOW) as store:
        (most,) = store.query("SELECT max(moved_ns) AS ns FROM processes")["ns"].to_pylist()
        sql = """
            SELECT count(*) AS n, max(abs(start_ns - recorded_start_ns)) AS moved FROM spans
            WHERE start_ns >= $low AND recorded_start_ns >= $files_low"""
        low = EPOCH + 1800 * SECOND
        (row,) = store.query(sql, low=low, files_low=low - most).to_pylist()
    assert row["n"] == sum(span.start_ns >= 1800 * SECOND for span in spans)
    assert row["moved"] <= most


def test_clocks_that_wander_cost_queries_no_more_than_a_bound(run: Path) -> None:
    processes = [SimProcess(n, FAR, BEHIND) for n in range(20, 40)]
    write_spans(run, processes, [SimSpan(n.number, n, 0, HOUR_S * SECOND) for n in processes])
    readings = [
        ClockReading(one.id, one.mono(second * SECOND), (second // 60 % 7) * 10 * MS, MS // 5)
        for one in processes
        for second in range(0, HOUR_S, 5)
    ]
    write_readings(run, 9, readings)
    with RunStore(run, threads=1, now_ns=NOW) as store:
        knots = [len(one.knots) for one in store.clocks.corrections.values()]
        assert all(len(track.knots) > 20 for track in store.sealer.intake.tracks.values())
    assert len(knots) == len(processes)
    assert sum(knots) < 200
