"""The page about now, against looking at every span of a generated run."""

from typing import Any

import pytest

from rollscope.answers.errors import errors
from rollscope.answers.hosts import hosts
from rollscope.answers.moment import moment_of
from rollscope.answers.now import Now, now
from rollscope.answers.steps import one_step, steps
from rollscope.answers.stuck import stuck
from rollscope.answers.waits import past_digests
from rollscope.store.embedded import RunStore
from tests.oracle import SECOND

Row = dict[str, Any]


def spans(store: RunStore, where: str = "TRUE") -> list[Row]:
    rows: list[Row] = store.query(f"SELECT * FROM spans WHERE {where}").to_pylist()  # noqa: S608
    return rows


def is_open_at(span: Row, time_ns: int) -> bool:
    end_ns = span["end_ns"]
    return span["start_ns"] <= time_ns and (end_ns is None or end_ns > time_ns)


@pytest.fixture(params=["running", "over"])
def store(request: pytest.FixtureRequest) -> RunStore:
    """Give each of the two runs."""
    found: RunStore = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def answer(store: RunStore) -> Now:
    """Give the answer about it."""
    return now(store)


def test_the_series_counts_each_session_once_in_the_phase_it_entered_last(
    store: RunStore, answer: Now
) -> None:
    series = answer.by_phase
    sessions = spans(store, "kind = 'session'")
    phases = spans(store, "kind = 'phase' AND session_id IS NOT NULL")
    assert len(series.counts) == len(series.names) == len(series.roles)
    ticks = len(series.counts[0])
    assert series.start_ns + (ticks - 1) * series.bin_ns == answer.now_ns
    for tick in range(ticks):
        time_ns = series.start_ns + tick * series.bin_ns
        counted = dict.fromkeys(series.names, 0)
        for session in sessions:
            if is_open_at(session, time_ns):
                inside = [
                    (phase["start_ns"], phase["span_id"], phase["name"])
                    for phase in phases
                    if phase["session_id"] == session["span_id"] and is_open_at(phase, time_ns)
                ]
                counted[max(inside)[2] if inside else "other"] += 1
        shown = {name: series.counts[at][tick] for at, name in enumerate(series.names)}
        assert shown == counted


def test_a_young_run_has_closer_moments_and_all_of_it_is_shown(
    store: RunStore, answer: Now
) -> None:
    series, age_ns = answer.by_phase, moment_of(store).age_ns
    assert series.bin_ns < SECOND
    assert len(series.counts[0]) > 100
    assert 0 <= answer.now_ns - series.start_ns - age_ns <= series.bin_ns


def test_fewer_moments_show_the_same_stretch(store: RunStore, answer: Now) -> None:
    few = now(store, bins=90).by_phase
    apart = few.bin_ns // answer.by_phase.bin_ns
    assert apart == 10
    # Both end now, so every tenth moment from there backwards is the same.
    for name, counts in zip(few.names, few.counts, strict=True):
        every = answer.by_phase.counts[answer.by_phase.names.index(name)]
        shared = every[::-1][::apart]
        assert counts[::-1][: len(shared)] == shared


def test_tiles_are_what_a_look_at_every_span_gives(store: RunStore, answer: Now) -> None:
    sessions = spans(store, "kind = 'session'")
    phases = spans(store, "kind = 'phase'")
    # The run is of a minute, of which sixty values that are 15 s apart would show a corner.
    apart_ns = SECOND if moment_of(store).age_ns <= 60 * SECOND else 2 * SECOND
    at = [answer.now_ns - (59 - place) * apart_ns for place in range(60)]

    def between(rows: list[Row], low: int, high: int) -> list[Row]:
        return [row for row in rows if row["end_ns"] is not None and low < row["end_ns"] <= high]

    def in_spark(rows: list[Row]) -> list[list[Row]]:
        return [between(rows, time - apart_ns, time) for time in at]

    whole = [row for row in sessions if row["status"] != "lost"]
    failed = spans(store, "status = 'error'")
    in_flight = [sum(is_open_at(row, time) for row in sessions) for time in at]
    ages = [
        max((time - row["start_ns"] for row in sessions if is_open_at(row, time)), default=0)
        for time in at
    ]
    age_s = (answer.now_ns - moment_of(store).first_ns) / SECOND
    ended = between(whole, answer.now_ns - 300 * SECOND, answer.now_ns)
    told = between(phases, answer.now_ns - 60 * SECOND, answer.now_ns)

    assert answer.in_flight.spark == in_flight
    assert answer.in_flight.count == in_flight[-1]
    assert answer.ended.spark == [60 * SECOND / apart_ns * len(rows) for rows in in_spark(whole)]
    assert answer.ended.rate == pytest.approx(len(ended) / min(300, age_s) * 60)
    tokens = sum(row["tokens_out"] or 0 for row in told)
    assert answer.tokens.rate == pytest.approx(tokens / min(60, age_s), rel=0.05)
    assert answer.oldest.spark == ages
    assert answer.failures.spark == [len(rows) for rows in in_spark(failed)]
    assert answer.failures.run_per_minute == pytest.approx(len(failed) / age_s * 60)
    assert answer.errors.total == len(failed)  # the run is shorter than fifteen minutes


def test_a_running_step_has_an_end_in_sight_and_stands_before_the_last(running: RunStore) -> None:
    answer = now(running)
    told = one_step(running, 2)
    assert answer.is_alive
    assert answer.now_ns == running.now_ns
    assert (answer.progress.step, answer.progress.is_running) == (2, True)
    assert answer.progress.eta == told.eta
    assert answer.progress.done == sum(
        count for name, count in told.summary.outcomes.items() if name != "open"
    )
    assert [(one.step, one.is_running) for one in answer.waits] == [(2, True), (1, False)]
    assert answer.stuck == stuck(running).rows[:20]
    assert answer.oldest.session_id in {row.session_id for row in answer.stuck}
    assert answer.oldest.name == "toolcall"
    assert {band.kind for band in answer.by_phase.bands} == {"pause", "sync"}


def test_a_run_that_is_over_is_shown_as_of_its_end(over: RunStore) -> None:
    answer = now(over)
    assert not answer.is_alive
    assert answer.now_ns == moment_of(over).last_ns < over.now_ns
    assert answer.in_flight.count == answer.open_sessions == 0
    assert answer.oldest.session_id is None
    assert (answer.progress.is_running, answer.progress.eta) == (False, None)
    assert [one.step for one in answer.waits] == [answer.progress.step]


def test_who_waits_says_the_same_as_the_list_of_steps(store: RunStore, answer: Now) -> None:
    by_step = {line.summary.step: line.summary for line in steps(store).steps}
    for waits in answer.waits:
        summary = by_step[waits.step]
        assert waits.wall_ns == summary.wall_ns
        assert waits.trainer.waiting_ns == summary.trainer_wait_ns
        assert (waits.slot_ns, waits.busy_ns) == (summary.slot_ns, summary.busy_ns)
        assert waits.idle_ns == summary.idle_ns
        assert waits.slot_ns == waits.busy_ns + sum(waits.idle_ns.values())


def test_what_is_kept_of_past_steps_is_what_a_fresh_look_gives(over: RunStore) -> None:
    first = past_digests(over, [0, 1, 2])
    assert past_digests(over, [0, 1, 2]) == first
    with RunStore(over.path, threads=1, now_ns=over.now_ns) as fresh:
        assert past_digests(fresh, [2]) == first[2:]
        assert past_digests(fresh, [1, 2]) == first[1:]


def test_hosts_and_replicas_hold_all_sessions_in_flight(running: RunStore) -> None:
    open_sessions = spans(running, "kind = 'session' AND status = 'open'")
    by_host = hosts(running)
    by_replica = hosts(running, "replica")
    for answer in (by_host, by_replica):
        assert sum(line.in_flight for line in answer.lines) == len(open_sessions)
        assert all(line.in_flight == sum(line.phases.values()) for line in answer.lines)
    replicas = {line.name: line for line in by_replica.lines}
    for session in open_sessions:
        assert replicas[session["replica"]].in_flight > 0
    assert sum(line.capacity or 0 for line in by_host.lines) == 24
    assert sum(line.capacity or 0 for line in by_replica.lines) == 24
    late = [line.loop_lag_p99_ns for line in by_host.lines if line.loop_lag_p99_ns is not None]
    assert late
    assert all(0 < lag <= SECOND for lag in late)


def test_errors_are_counted_by_kind_and_place(over: RunStore) -> None:
    failed = spans(over, "status = 'error'")
    found = errors(over)
    assert found.total == len(failed) == sum(line.count for line in found.lines)
    assert found.kinds == len(found.lines)
    for line in found.lines:
        alike = [
            row
            for row in failed
            if row["name"] == line.name and row["reason"].partition(":")[0] == line.kind
        ]
        latest = max(alike, key=lambda row: (row["end_ns"], row["span_id"]))
        assert line.count == len(alike)
        assert line.first_ns == min(row["end_ns"] for row in alike)
        assert (line.last_ns, line.example_id) == (latest["end_ns"], latest["span_id"])
        assert line.example == latest["reason"]
    since_ns = sorted(row["end_ns"] for row in failed)[-2]
    assert errors(over, since_ns=since_ns).total == 2
