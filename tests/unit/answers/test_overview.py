"""The head of every page, and the page about trust."""

from pathlib import Path

import pytest

from rollscope.answers.doctor import examine
from rollscope.answers.health import health
from rollscope.answers.overview import overview
from rollscope.collect.authored import AuthoredLog
from rollscope.collect.receiving import receiver_header
from rollscope.instrument.tracer import Tracer
from rollscope.model.kinds import Kind, Status
from rollscope.model.scope import Scope
from rollscope.store.embedded import RunStore
from rollscope.testing import FakeClock, RunShape, generate_run
from tests.builders import dead_header, make_row, span_batch, write_log


def test_a_run_that_lives_is_at_home_in_now(running: RunStore) -> None:
    found = overview(running)
    assert (found.is_alive, found.is_crashed, found.home) == (True, False, "now")
    assert (found.steps.count, found.steps.last, found.steps.running) == (3, 2, 2)
    assert found.open_sessions == 5
    assert found.unfinished == 0
    assert found.now_ns == running.now_ns


def test_a_run_that_crashed_says_how_many_sessions_were_lost(over: RunStore) -> None:
    found = overview(over)
    lost = over.query("SELECT count(*) AS n FROM spans WHERE kind = 'session' AND status = 'lost'")
    assert (found.is_alive, found.is_crashed, found.home) == (False, True, "steps")
    assert found.unfinished == lost["n"][0].as_py() > 0
    assert f"{found.unfinished} sessions ended with their process." in [
        badge.sentence for badge in found.completeness.badges
    ]


def test_counts_and_names_are_those_of_the_views(over: RunStore) -> None:
    found = overview(over)
    counts = over.query("SELECT kind, count(*) AS n FROM spans GROUP BY kind").to_pylist()
    by_kind = {row["kind"]: row["n"] for row in counts}
    assert found.spans == sum(by_kind.values())
    assert found.sessions_count == found.completeness.sessions_known == by_kind["session"]
    assert found.hosts == [f"host-{number:02d}" for number in range(5)]
    assert found.families == ["aime", "gsm8k", "swe"]
    assert found.roles["toolcall"] == "tool"
    assert found.tags == {"generator": "seed 3"}


def test_clocks_that_are_off_wear_a_badge(running: RunStore) -> None:
    completeness = overview(running).completeness
    assert completeness.clock_spread_ns == pytest.approx(5.1e9, rel=0.01)
    assert "clock" in {badge.kind for badge in completeness.badges}


def test_a_run_that_is_as_it_should_be_wears_no_badge(tmp_path: Path) -> None:
    shape = RunShape(
        steps=1, tasks_per_step=2, stuck_sessions=0, dying_process=False, clock_offsets_s=(0.0,)
    )
    truth = generate_run(tmp_path / "run", shape)
    with RunStore(tmp_path / "run", threads=1, now_ns=truth.end_ns) as store:
        assert overview(store).completeness.badges == []


def test_a_run_that_declares_its_sessions_says_how_many_are_missing(tmp_path: Path) -> None:
    clock = FakeClock()
    with (
        Tracer(run="run", dir=tmp_path, clock=clock, tags={"sessions": "3"}) as tracer,
        tracer.session(),
    ):
        clock.advance(1)
    with RunStore(tmp_path / "run", threads=1) as store:
        found = overview(store)
    assert found.home == "sessions"
    assert found.completeness.sessions_expected == 3
    assert [badge.sentence for badge in found.completeness.badges] == ["1 of 3 sessions are known."]


def test_health_adds_up_and_carries_the_findings_of_a_check_up(over: RunStore) -> None:
    found = health(over)
    assert found.findings == examine(over, deep=False).findings
    assert [line.title for line in found.processes if line.status == "dead"]
    spans = sum(line.spans for line in found.processes)
    assert spans == examine(over, deep=False).spans
    disk = found.disk
    parts = disk.log_bytes + disk.segment_bytes + disk.payload_bytes
    assert 0 < parts <= disk.run_bytes
    assert 0 < disk.free_bytes <= disk.total_bytes
    assert [clock.host for clock in found.clocks] == overview(over).hosts
    assert found.ingest.lag_ns is None


def test_health_tells_of_late_loops_and_where_they_hang(running: RunStore) -> None:
    found = health(running)
    assert found.ingest.lag_ns is not None
    assert len(found.loops) == 3
    for line in found.loops:
        assert 0 < line.longest_ns <= line.blocked_ns
    assert "tools.py:20 call" in {line.line for line in found.loops}


def test_drops_are_told_by_kind_and_reason(tmp_path: Path) -> None:
    clock = FakeClock()
    with Tracer(run="run", dir=tmp_path, clock=clock) as tracer, tracer.span("work"):
        tracer.gauge("odd", object())  # type: ignore[arg-type]  # as a careless caller does
    with RunStore(tmp_path / "run", threads=1) as store:
        drops = store.query("SELECT sum(count) AS n FROM drops")["n"][0].as_py()
        lines = health(store).drops
        dropped = overview(store).completeness.records_dropped
    assert sum(line.count for line in lines) == drops == dropped > 0
    assert [(line.kind, line.reason) for line in lines] == [("metric", "no_number")]


def test_a_server_that_still_writes_does_not_keep_a_run_going(tmp_path: Path) -> None:
    clock = FakeClock()
    tracer = Tracer(run="run", dir=tmp_path, clock=clock)
    with tracer.span("train"):
        clock.advance(1)
    tracer.shutdown()
    ended_ns = clock.wall_ns()
    receiver = AuthoredLog(tmp_path / "run", b"receiver", receiver_header())
    receiver.write(at_ns=ended_ns + 500_000_000, heartbeat=True)
    receiver.release()
    with RunStore(tmp_path / "run", threads=1, now_ns=ended_ns + 1_000_000_000) as store:
        found = overview(store)
    assert (found.is_alive, found.last_ns) == (False, ended_ns)


def test_a_single_lost_session_ended_with_its_process(tmp_path: Path) -> None:
    scope = Scope(b"\x01" * 16, session_id=1)
    row = make_row(1, "session", kind=Kind.SESSION, scope=scope, status=Status.OPEN)
    batch = span_batch(0, row, header=dead_header())
    write_log(tmp_path / "run" / "log" / "a.rsl", [batch])
    with RunStore(tmp_path / "run") as store:
        badges = overview(store).completeness.badges
    assert "1 session ended with its process." in [badge.sentence for badge in badges]
