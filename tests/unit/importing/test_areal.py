import gzip
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


def test_a_format_that_is_not_read_yet_is_named(tmp_path: Path) -> None:
    cache = tmp_path / "x.json"
    cache.write_text('{"cache_version": 2, "rows": [{"items": []}]}')
    with pytest.raises(CommandError, match="slime's timeline cache, which is not read yet"):
        import_run([cache], tmp_path / "run")
