"""The generator of runs: repeatable, true to its word, and as odd as real runs are."""

from collections import Counter
from pathlib import Path

import msgspec

from rollscope.model.kinds import Kind, Status
from rollscope.store.fold import Folded, read_run
from rollscope.testing import RunShape, generate_run

SMALL = RunShape(steps=3, tasks_per_step=6, rollout_processes=2, slots=6)


def _log_bytes(run: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (run / "log").iterdir()}


def _sessions(folded: Folded) -> list[str]:
    return [span.span_id for span in folded.of_kind(Kind.SESSION)]


def test_the_same_shape_gives_the_same_run(tmp_path: Path) -> None:
    first = generate_run(tmp_path / "a", SMALL)
    second = generate_run(tmp_path / "b", SMALL)

    assert first == second
    assert _log_bytes(tmp_path / "a") == _log_bytes(tmp_path / "b")


def test_another_seed_gives_another_run(tmp_path: Path) -> None:
    generate_run(tmp_path / "a", SMALL)
    generate_run(tmp_path / "b", msgspec.structs.replace(SMALL, seed=1))

    assert _log_bytes(tmp_path / "a") != _log_bytes(tmp_path / "b")


def test_a_reader_finds_what_the_generator_says_is_there(tmp_path: Path) -> None:
    truth = generate_run(tmp_path / "run", RunShape(), ends_now=True)

    folded = read_run(tmp_path / "run")

    sessions = folded.of_kind(Kind.SESSION)
    assert folded.problems == []
    assert len(folded.processes) == truth.processes
    assert Counter(span.kind for span in folded.spans.values()) == truth.spans
    assert Counter(s.outcome for s in sessions if s.outcome) == truth.outcomes
    unfinished = {s.span_id for s in sessions if s.status in (Status.OPEN, Status.LOST)}
    assert unfinished == {*truth.stuck, *truth.lost}
    assert {s.span_id for s in sessions if s.status is Status.OPEN} >= set(truth.stuck)
    assert truth.stuck
    assert truth.lost


def test_every_span_below_a_session_lies_within_it_and_names_it(tmp_path: Path) -> None:
    generate_run(tmp_path / "run", SMALL)
    folded = read_run(tmp_path / "run")
    sessions = set(_sessions(folded))

    for phase in folded.of_kind(Kind.PHASE):
        assert phase.session_id in sessions
        session = folded.spans[phase.session_id]
        assert session.start_ns <= phase.start_ns
        if session.end_ns is not None and phase.end_ns is not None:
            assert phase.end_ns <= session.end_ns
        assert phase.task_key == session.task_key


def test_hosts_have_the_clock_offsets_asked_for(tmp_path: Path) -> None:
    shape = msgspec.structs.replace(SMALL, clock_offsets_s=(0.0, 5.0, -7.0))
    generate_run(tmp_path / "run", shape)

    started = {
        (process.host, process.started_ns - shape.start_ns)
        for process in read_run(tmp_path / "run").processes.values()
    }
    assert started == {("host-00", 0), ("host-01", 5_000_000_000), ("host-02", -7_000_000_000)}


def test_sessions_are_consumed_and_rewarded_late(tmp_path: Path) -> None:
    generate_run(tmp_path / "run", SMALL)

    folded = read_run(tmp_path / "run")

    ended = [s for s in folded.of_kind(Kind.SESSION) if s.outcome is not None]
    assert all(s.attrs["consumed_step"] == s.step for s in ended)
    assert any(s.version_start != s.version_end for s in ended)


def test_a_size_is_met_within_a_fifth(tmp_path: Path) -> None:
    truth = generate_run(tmp_path / "run", RunShape.sized(20_000))

    assert 16_000 <= truth.total_spans <= 24_000


def test_one_session_and_no_faults_is_a_run_too(tmp_path: Path) -> None:
    shape = RunShape(
        steps=1,
        tasks_per_step=1,
        group_size=1,
        rollout_processes=1,
        slots=1,
        stuck_sessions=0,
        dying_process=False,
    )
    truth = generate_run(tmp_path / "run", shape)

    folded = read_run(tmp_path / "run")
    assert truth.spans["session"] == 1
    assert {span.status for span in folded.spans.values()} <= {Status.OK, Status.ERROR}
