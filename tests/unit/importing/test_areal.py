import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rollscope.errors import CommandError
from rollscope.importing.accounts import Report
from rollscope.importing.formats import Options
from rollscope.importing.running import import_run, kept_report
from rollscope.store.embedded import RunStore

_FIXTURES = Path(__file__).parents[2] / "fixtures"
_SESSIONS = _FIXTURES / "areal" / "session_tracer"
_PERF = _FIXTURES / "areal" / "perf_tracer"
_QUIRKS = _FIXTURES / "quirks"


def _ask(run: Path, query: str) -> list[dict[str, Any]]:
    with RunStore(run) as store:
        rows: list[dict[str, Any]] = store.query(query).to_pylist()
        return rows


def _quirk(tmp_path: Path, name: str) -> tuple[Report, Path]:
    run = tmp_path / "run"
    return import_run([_QUIRKS / name], run), run


def test_every_sample_session_is_imported_with_its_verdict(tmp_path: Path) -> None:
    run = tmp_path / "run"
    report = import_run([_SESSIONS], run)
    rows = _ask(
        run,
        "SELECT status, outcome, reason, count(*) AS n FROM spans WHERE kind = 'session' "
        "GROUP BY ALL",
    )
    assert {(r["status"], r["outcome"], r["reason"]): r["n"] for r in rows} == {
        ("ok", "accepted", None): 28,
        ("ok", "rejected", "filtered"): 8,
        ("ok", "rejected", "returned_none"): 8,
        ("error", "failed", "exception"): 8,
        ("ok", "dropped", "stale_weight"): 4,
        ("open", None, None): 8,
    }
    assert report.counts["tasks"] == 16
    assert [file.imported for file in report.files] == [36, 28]
    assert kept_report(run) == report


def test_sample_perf_events_stand_in_two_clock_domains(tmp_path: Path) -> None:
    report = import_run([_PERF / "master", _PERF / "rollout"], tmp_path / "run")
    assert sum(file.imported for file in report.files) == 60
    assert [d.name for d in report.domains] == ["master-r0/perf", "rollout-r3/perf"]
    assert {d.clock for d in report.domains} == {"unanchored"}
    steps = _ask(tmp_path / "run", "SELECT step FROM spans WHERE kind = 'step' ORDER BY step")
    assert [row["step"] for row in steps] == [0, 1, 2]


def test_the_converted_file_adds_no_event_to_those_it_was_made_from(tmp_path: Path) -> None:
    lines = import_run([_PERF / "master", _PERF / "rollout"], tmp_path / "lines")
    both = import_run([_PERF], tmp_path / "both")
    alone = import_run([_PERF / "traces.json"], tmp_path / "alone")
    for name in ("perf spans", "perf instants"):
        assert lines.counts[name] == both.counts[name] == alone.counts[name]


def test_a_duplicate_is_dropped_and_a_restart_is_another_life(tmp_path: Path) -> None:
    report, _ = _quirk(tmp_path, "areal_restart_and_duplicate.jsonl")
    (file,) = report.files
    assert (file.read, file.imported, file.duplicates) == (9, 8, 1)
    assert [d.name for d in report.domains] == ["rollout-r0", "rollout-r0.2"]
    assert report.counts["tasks"] == 2


def test_a_torn_last_line_is_told_and_the_rest_kept(tmp_path: Path) -> None:
    report, _ = _quirk(tmp_path, "areal_torn_last_line.jsonl")
    (file,) = report.files
    assert file.imported == 3
    assert file.set_aside["torn"].lines == [4]


def test_a_second_process_in_a_perf_file_has_a_clock_of_its_own(tmp_path: Path) -> None:
    report, _ = _quirk(tmp_path, "areal_perf_restart.jsonl")
    assert [d.rows for d in report.domains] == [3, 3]


def test_odd_lines_of_a_mixed_file_go_their_own_ways(tmp_path: Path) -> None:
    report, run = _quirk(tmp_path, "areal_perf_mixed.jsonl")
    (file,) = report.files
    assert file.formats == {"areal-perf": 2, "areal-sessions": 1}
    assert file.set_aside["bad: no JSON object"].lines == [2]
    assert len(_ask(run, "SELECT 1 FROM spans WHERE kind = 'session'")) == 1


def test_a_record_of_2025_has_a_clock_without_an_anchor(tmp_path: Path) -> None:
    report, run = _quirk(tmp_path, "areal_request_record_2025.jsonl")
    assert [(d.name, d.clock) for d in report.domains] == [("r0.monotonic", "unanchored")]
    names = {row["name"] for row in _ask(run, "SELECT name FROM events")}
    assert names == {"admit", "deliver"}


def test_packed_and_growing_files_give_the_same_ids(tmp_path: Path) -> None:
    plain = _SESSIONS / "rollout" / "sessions-r0.jsonl"
    packed = tmp_path / "sessions.jsonl.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + plain.read_bytes().replace(b"\n", b"\r\n")))
    import_run([plain], tmp_path / "a")
    import_run([packed], tmp_path / "b")
    query = "SELECT span_id, start_ns, end_ns FROM spans ORDER BY span_id"
    assert _ask(tmp_path / "a", query) == _ask(tmp_path / "b", query)


def test_an_offset_moves_a_clock_and_a_wrong_name_is_refused(tmp_path: Path) -> None:
    query = "SELECT min(start_ns) AS first FROM spans WHERE lane = 'rollout-r3'"
    import_run([_SESSIONS], tmp_path / "a")
    import_run([_SESSIONS], tmp_path / "b", offsets={"rollout-r3": -350_000_000})
    (before,), (after,) = _ask(tmp_path / "a", query), _ask(tmp_path / "b", query)
    assert before["first"] - after["first"] == 350_000_000
    with pytest.raises(CommandError, match="rollout-r3"):
        import_run([_SESSIONS], tmp_path / "c", offsets={"nobody": 1})
    assert not (tmp_path / "c").exists()


def test_steps_are_inferred_only_on_request(tmp_path: Path) -> None:
    report = import_run([_SESSIONS], tmp_path / "run", options=Options(batch_size=4))
    assert report.guessed["step"] >= 1
    rows = _ask(
        tmp_path / "run",
        "SELECT DISTINCT outcome FROM spans WHERE kind='session' AND step IS NOT NULL",
    )
    assert rows == [{"outcome": "accepted"}]


def test_importing_again_doubles_nothing_and_foreign_runs_are_left_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = import_run([_SESSIONS], run)
    (tmp_path / ".run.importing").mkdir()  # as a killed import leaves it
    assert import_run([_SESSIONS], run) == first
    assert len(_ask(run, "SELECT 1 FROM spans WHERE kind = 'session'")) == 64
    with pytest.raises(CommandError, match="--replace"):
        import_run([_PERF], run)
    (run / "import.json").unlink()
    with pytest.raises(CommandError, match="not made by an import"):
        import_run([_SESSIONS], run)


def _session(number: int, phases: object, **more: Any) -> dict[str, Any]:
    keys = {"task_id": number, "session_id": number, "rank": 0, "status": "accepted"}
    return {
        **keys,
        "submit_ts": 1763000000.0,
        "finalized_ts": 1763000009.0,
        "phases": phases,
        **more,
    }


def _write(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def _call(start: float, end: float | None) -> dict[str, float | None]:
    base = 1763000000.0
    return {"start_ts": base + start, "end_ts": None if end is None else base + end}


def test_an_end_before_its_start_is_kept_raw_and_flagged(tmp_path: Path) -> None:
    record = _session(1, {"generate": [_call(-5, -6)]}, finalized_ts=1762999990.0)
    import_run([_write(tmp_path / "x.jsonl", record)], tmp_path / "run")
    rows = _ask(
        tmp_path / "run",
        "SELECT kind, end_ns - start_ns AS length, attrs::VARCHAR AS attrs FROM spans "
        "WHERE kind IN ('session', 'phase') ORDER BY kind",
    )
    for row, end_s in zip(rows, (1762999994, 1762999994), strict=True):
        attrs = json.loads(row["attrs"])
        assert row["length"] == 0
        assert attrs["clock_suspect"] is True
        assert attrs["source_end_ns"] == end_s * 10**9


def test_calls_whose_ends_were_mixed_up_are_flagged(tmp_path: Path) -> None:
    mixed = _session(1, {"generate": [_call(0, None), _call(1, 3), _call(3, 3)]})
    plain = _session(2, {"generate": [_call(0, 1), _call(1, None)], "reward": [_call(2, 2)]})
    path = _write(tmp_path / "x.jsonl", mixed, plain)
    report = import_run([path], tmp_path / "run")
    assert report.counts["sessions with mixed-up phases"] == 1
    rows = _ask(
        tmp_path / "run",
        "SELECT kind, status FROM spans WHERE attrs::VARCHAR LIKE '%overlap_lost%' ORDER BY kind",
    )
    assert [(row["kind"], row["status"]) for row in rows] == [("phase", "lost"), ("session", "ok")]


def test_pending_sessions_are_open_as_of_the_end_of_the_data(tmp_path: Path) -> None:
    run = tmp_path / "run"
    report = import_run([_SESSIONS], run)
    assert sum(domain.open for domain in report.domains) == 14
    with RunStore(run) as store:
        (row,) = store.query(
            "SELECT max(coalesce(end_ns, start_ns)) AS last FROM spans"
        ).to_pylist()
        (event,) = store.query("SELECT max(time_ns) AS last FROM events").to_pylist()
        assert store.now_ns == max(row["last"], event["last"])
        states = store.query("SELECT DISTINCT status FROM processes").to_pylist()
    assert states == [{"status": "imported"}]


def test_what_was_open_in_an_earlier_life_is_lost(tmp_path: Path) -> None:
    old = _session(1, {"generate": [_call(0, None)]}, status="pending", finalized_ts=None)
    new = _session(1, {"generate": [_call(60, 61)]}, submit_ts=1763000060.0)
    import_run([_write(tmp_path / "x.jsonl", old, new)], tmp_path / "run")
    rows = _ask(
        tmp_path / "run",
        "SELECT status FROM spans WHERE kind = 'session' ORDER BY start_ns",
    )
    assert [row["status"] for row in rows] == ["lost", "ok"]


# Perf events


def _event(**more: Any) -> dict[str, Any]:
    plain = {"name": "a", "ph": "X", "ts": 10, "dur": 5, "pid": 7, "tid": 7, "cat": "compute"}
    return {**plain, "args": {"rank": 0, "role": "rollout"}, **more}


def _meta(what: str, tid: int = 7, **args: Any) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": 7, "tid": tid, "args": args}


def test_tracks_of_the_profiler_are_lanes_of_their_own(tmp_path: Path) -> None:
    path = _write(
        tmp_path / "x.jsonl",
        _meta("process_name", name="[rollout] Rank 0, Process"),
        _meta("thread_name", tid=-1, name="[Profiler Stream 7]"),
        _event(),
        _event(tid=-1, ts=10.25),
        _event(tid=-2),
        _event(tid="oops", ts=11),
    )
    report = import_run([path], tmp_path / "run")
    assert report.counts["perf spans"] == 4
    rows = _ask(tmp_path / "run", "SELECT lane, count(*) AS n FROM spans GROUP BY 1 ORDER BY 1")
    assert [(row["lane"], row["n"]) for row in rows] == [
        ("rollout-r0", 2),
        ("rollout-r0 [Profiler 2]", 1),
        ("rollout-r0 [Profiler Stream 7]", 1),
    ]


def test_an_anchor_puts_perf_events_on_the_wall_clock(tmp_path: Path) -> None:
    zero = 1763000000 * 10**9
    path = _write(
        tmp_path / "x.jsonl",
        _meta("process_name", name="[rollout] Rank 0, Process"),
        _meta("rollscope_clock", unix_ns=str(zero), host="node-1"),
        _event(),
    )
    report = import_run([path], tmp_path / "run")
    assert [(d.name, d.clock) for d in report.domains] == [("rollout-r0/perf", "anchored")]
    (row,) = _ask(
        tmp_path / "run",
        "SELECT s.start_ns, s.end_ns, p.host FROM spans s JOIN processes p USING (process)",
    )
    assert row == {"start_ns": zero + 10_000, "end_ns": zero + 15_000, "host": "node-1"}
    assert list(report.warnings()) == []


@pytest.mark.parametrize(
    "odd",
    [
        {"pid": [1], "tid": {}},
        {"ts": 10**400},
        {"ts": 9e15, "dur": 9e15},
        {"ts": -(2**52)},
        {"name": None, "cat": []},
        {"args": {"rank": 10**30, "role": "r" * 100_000, "global_step": "x"}},
        {"args": {"rank": 0, "x": "\x00<script>" * 5000}},
    ],
    ids=["ids", "huge", "far", "before", "nameless", "names", "text"],
)
def test_odd_perf_events_are_kept_or_set_aside(odd: dict[str, Any], tmp_path: Path) -> None:
    long = _meta("process_name", name=f"[x] Rank {'9' * 5000}, Process {'9' * 5000}")
    path = _write(tmp_path / "x.jsonl", _event(), long, _event(**odd))
    (file,) = import_run([path], tmp_path / "run").files
    assert file.read == 3
    assert file.imported + sum(one.count for one in file.set_aside.values()) == 3
    assert len(_ask(tmp_path / "run", "SELECT 1 FROM spans")) == file.imported - 1
