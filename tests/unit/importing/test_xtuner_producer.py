import json
import random
from pathlib import Path
from typing import Any

import pytest

from rollscope.answers.errors import errors
from rollscope.answers.phases import phases
from rollscope.answers.scope import StepScope
from rollscope.importing.accounts import Report
from rollscope.importing.running import import_run
from rollscope.store.embedded import RunStore

_SAMPLE = (
    Path(__file__).parents[2]
    / "fixtures"
    / "xtuner_producer"
    / "producer_trace_19729_0001_000000.jsonl"
)
_T0 = 1794728682.0
_ERROR = "TimeoutError: engine did not answer in 1200 s"


def _ask(run: Path, query: str) -> list[dict[str, Any]]:
    with RunStore(run) as store:
        rows: list[dict[str, Any]] = store.query(query).to_pylist()
        return rows


def _event(stage: str, at_s: float, **more: Any) -> dict[str, Any]:
    return {"trace_id": "gsm8k:1", "stage": stage, "timestamp_s": _T0 + at_s, **more}


def _import(tmp_path: Path, *events: object, name: str = "producer_trace_7_0001_000000") -> Report:
    file = tmp_path / f"{name}.jsonl"
    lines = [one if isinstance(one, str) else json.dumps(one) for one in events]
    file.write_text("".join(f"{line}\n" for line in lines))
    return import_run([file], tmp_path / "run")


def _spans(tmp_path: Path, where: str = "kind IN ('span', 'phase')") -> list[dict[str, Any]]:
    what = "SELECT *, end_ns - start_ns AS length FROM spans"
    query = " ".join((what, "WHERE", where, "ORDER BY start_ns"))
    found = _ask(tmp_path / "run", query)
    for row in found:
        row["attrs"] = json.loads(row["attrs"])
    return found


def test_every_event_of_the_sample_is_accounted_for(tmp_path: Path) -> None:
    report = import_run([_SAMPLE], tmp_path / "run")
    (file,) = report.files
    assert (file.read, file.imported, file.set_aside) == (73, 73, {})
    assert report.counts == {
        "batches": 2,
        "sessions completed": 4,
        "sessions failed": 1,
        "sessions open": 1,
        "spans": 33,
        "spans open": 7,
        "tasks": 2,
    }
    assert report.guessed == {"group of a sample": 6}
    assert [(d.name, d.clock) for d in report.domains] == [("producer-19729", "wall")]


def test_samples_are_sessions_with_step_version_and_worker(tmp_path: Path) -> None:
    import_run([_SAMPLE], tmp_path / "run")
    rows = _spans(tmp_path, "kind = 'session'")
    assert [
        (r["attrs"]["session_id"], r["task_key"], r["sample"], r["step"], r["version_start"])
        for r in rows
    ] == [
        ("gsm8k:100", "gsm8k:100", 0, 1, 0),
        ("gsm8k:101", "gsm8k:100", 1, 1, 0),
        ("gsm8k:102", "gsm8k:100", 2, 1, 0),
        ("gsm8k:103", "gsm8k:103", 0, 2, 1),
        ("gsm8k:104", "gsm8k:103", 1, 2, 1),
        ("gsm8k:105", "gsm8k:103", 2, 2, 1),
    ]
    assert [r["status"] for r in rows] == ["ok", "ok", "ok", "error", "ok", "open"]
    assert {r["lane"] for r in rows} == {"worker-r2"}
    assert {r["attrs"]["family"] for r in rows} == {"gsm8k"}
    assert all(r["attrs"]["group_inferred"] for r in rows)


def test_a_failed_sample_keeps_its_message_and_the_innermost_span_is_to_blame(
    tmp_path: Path,
) -> None:
    import_run([_SAMPLE], tmp_path / "run")
    (session,) = _spans(tmp_path, "kind = 'session' AND status = 'error'")
    assert (session["outcome"], session["reason"]) == ("failed", _ERROR)
    assert session["attrs"]["error.type"] == "TimeoutError"
    failed = _spans(tmp_path, "kind IN ('span', 'phase') AND status = 'error'")
    assert len(failed) == 4
    assert {row["attrs"]["error.message"] for row in failed} == {_ERROR}
    blamed = [row["name"] for row in failed if "error.copied" not in row["attrs"]]
    assert blamed == ["xtuner.lmdeploy.request"]
    with RunStore(tmp_path / "run") as store:
        found = errors(store)
        kinds = phases(store, StepScope()).errors
    assert [(kind.name, kind.count) for kind in kinds] == [("xtuner.lmdeploy.request", 1)]
    assert (found.total, found.lines[0].name) == (1, "xtuner.lmdeploy.request")


def test_open_work_of_the_sample_is_shown_as_open(tmp_path: Path) -> None:
    import_run([_SAMPLE], tmp_path / "run")
    rows = _spans(tmp_path, "kind = 'span' AND status = 'open'")
    names = sorted((row["name"], row["session_id"] is not None) for row in rows)
    assert names == [
        *[("xtuner.agent_loop.generate_group", False)] * 3,
        ("xtuner.agent_loop.generate_sample", True),
        *[("xtuner.producer.generate_group", False)] * 3,
    ]
    tasks = _spans(tmp_path, "kind = 'task'")
    assert [row["status"] for row in tasks] == ["ok", "open"]
    (session,) = _spans(tmp_path, "kind = 'session' AND status = 'open'")
    assert session["attrs"]["uid"] == 105


def test_generation_counts_once_and_lengths_are_those_that_were_measured(tmp_path: Path) -> None:
    import_run([_SAMPLE], tmp_path / "run")
    phases = _spans(tmp_path, "kind = 'phase'")
    assert [row["name"] for row in phases].count("generate") == 6
    assert [row["name"] for row in phases].count("reward") == 4
    first = phases[0]
    assert (first["attrs"]["source_name"], first["length"]) == (
        "xtuner.rollout_controller.generate",
        36_421_822,
    )


def test_shuffled_lines_give_the_same_run(tmp_path: Path) -> None:
    lines = _SAMPLE.read_text().splitlines()
    random.Random(7).shuffle(lines)
    mixed = tmp_path / _SAMPLE.name
    mixed.write_text("\n".join(lines) + "\n")
    import_run([_SAMPLE], tmp_path / "a")
    import_run([mixed], tmp_path / "b")
    query = (
        "SELECT span_id, parent_id, name, status, start_ns, end_ns, sample, attrs FROM spans "
        "ORDER BY span_id"
    )
    assert _ask(tmp_path / "a", query) == _ask(tmp_path / "b", query)


def test_a_file_given_twice_adds_duplicates_only(tmp_path: Path) -> None:
    copy = tmp_path / "producer_trace_19729_0001_000001.jsonl"
    copy.write_bytes(_SAMPLE.read_bytes())
    report = import_run([_SAMPLE, copy], tmp_path / "run")
    assert [(f.imported, f.duplicates) for f in report.files] == [(73, 0), (0, 73)]
    assert report.counts["sessions completed"] == 4


def test_of_equal_names_the_last_start_ends_first(tmp_path: Path) -> None:
    name = "xtuner.tool.call"
    report = _import(
        tmp_path,
        _event(f"{name}.start", 0.0),
        _event(f"{name}.start", 1.0),
        _event(f"{name}.end", 2.0, elapsed_s=1.0),
        _event(f"{name}.end", 5.0, elapsed_s=5.0),
    )
    assert report.files[0].imported == 4
    assert [row["length"] for row in _spans(tmp_path)] == [5_000_000_000, 1_000_000_000]


def test_an_end_alone_is_a_span_by_its_length_or_is_set_aside(tmp_path: Path) -> None:
    report = _import(
        tmp_path,
        _event("xtuner.judger.judge.end", 3.0, elapsed_s=1.25),
        _event("xtuner.other.end", 4.0),
    )
    (row,) = _spans(tmp_path)
    assert (row["name"], row["length"]) == ("reward", 1_250_000_000)
    assert row["end_ns"] == 1_794_728_685_000_000_000
    aside = report.files[0].set_aside["an end that has neither a start nor a length"]
    assert aside.lines == [2]


def test_a_clock_that_was_set_back_leaves_the_true_length(tmp_path: Path) -> None:
    _import(
        tmp_path,
        _event("xtuner.judger.judge.start", 10.0),
        _event("xtuner.judger.judge.end", 6.0, elapsed_s=1.0),
    )
    (row,) = _spans(tmp_path)
    assert row["length"] == 1_000_000_000
    assert row["attrs"]["clock_suspect"] is True
    assert row["attrs"]["source_end_ns"] == 1_794_728_688_000_000_000


def test_a_finished_sample_is_not_stretched_by_its_group(tmp_path: Path) -> None:
    _import(
        tmp_path,
        _event("xtuner.producer.generate_group.start", 0.0),
        _event("xtuner.agent_loop.generate_sample.start", 1.0),
        _event("xtuner.agent_loop.generate_sample.end", 2.0, status="completed", elapsed_s=1.0),
        _event("xtuner.producer.generate_group.end", 60.0, status="completed", elapsed_s=60.0),
    )
    (session,) = _spans(tmp_path, "kind = 'session'")
    (task,) = _spans(tmp_path, "kind = 'task'")
    assert (session["length"], task["length"]) == (1_000_000_000, 60_000_000_000)


@pytest.mark.parametrize(
    ("word", "status", "outcome"),
    [
        ("aborted", "cancelled", "cancelled"),
        ("filtered", "ok", "rejected"),
        ("expired", "ok", "dropped"),
        ("archived", "ok", "accepted"),
        ("failed", "error", "failed"),
    ],
)
def test_a_verdict_ends_a_sample_that_was_cancelled_without_an_end(
    tmp_path: Path, word: str, status: str, outcome: str
) -> None:
    _import(
        tmp_path,
        _event("xtuner.agent_loop.generate_sample.start", 1.0, status="init"),
        _event("xtuner.rollout_controller.generate.start", 2.0, status="init"),
        _event("xtuner.producer.put_generated_group.start", 5.0, status=word),
    )
    (session,) = _spans(tmp_path, "kind = 'session'")
    assert (session["status"], session["outcome"]) == (status, outcome)
    assert session["attrs"]["end_guessed"] is True
    inner = _spans(tmp_path, "session_id IS NOT NULL AND kind <> 'session'")
    assert [row["status"] for row in inner] == ["lost", "lost"]


def test_a_sample_that_was_taken_up_again_is_one_open_session(tmp_path: Path) -> None:
    _import(
        tmp_path,
        _event("xtuner.agent_loop.generate_sample.start", 1.0, train_step=1, model_step=4),
        _event("xtuner.agent_loop.generate_sample.end", 2.0, status="aborted", train_step=1),
        _event(
            "xtuner.agent_loop.generate_sample.start",
            9.0,
            status="init",
            train_step="2",
            model_step=5.0,
        ),
    )
    (session,) = _spans(tmp_path, "kind = 'session'")
    assert (session["status"], session["outcome"], session["step"]) == ("open", None, 1)
    assert (session["version_start"], session["version_end"]) == (4, 5)


def test_groups_are_told_apart_by_batch_by_time_and_by_how_long_they_took(tmp_path: Path) -> None:
    def member(uid: int, at_s: float, batch: str, took: float | None = None) -> list[object]:
        name = "xtuner.producer.generate_group"
        more = {"trace_id": f"m:{uid}", "produce_batch_id": batch}
        start = _event(f"{name}.start", at_s, **more)
        if took is None:
            return [start]
        return [start, _event(f"{name}.end", at_s + took, elapsed_s=took, **more)]

    report = _import(
        tmp_path,
        *member(1, 0.0, "a"),
        *member(2, 0.004, "a"),
        *member(3, 0.0061, "a"),  # too late
        *member(4, 0.0, "b"),  # another batch
        *member(5, 1.0, "a", 2.5),
        *member(6, 1.001, "a", 2.5),
        *member(7, 1.002, "a", 3.5),  # took longer
    )
    rows = _ask(
        tmp_path / "run",
        "SELECT task_key, list(attrs->>'session_id' ORDER BY sample) AS ids FROM spans "
        "WHERE kind = 'session' GROUP BY ALL ORDER BY task_key",
    )
    groups = [["m:1", "m:2"], ["m:3"], ["m:4"], ["m:5", "m:6"], ["m:7"]]
    assert [row["ids"] for row in rows] == groups
    assert report.guessed["group of a sample"] == 4


def test_other_stages_are_instants(tmp_path: Path) -> None:
    report = _import(tmp_path, _event("xtuner.partial_rollout.preprocess", 1.0, kept=3))
    (event,) = _ask(tmp_path / "run", "SELECT name, attrs FROM events")
    assert event["name"] == "xtuner.partial_rollout.preprocess"
    assert json.loads(event["attrs"])["kept"] == 3
    assert report.counts["instants"] == 1


def test_parallel_calls_of_one_name_lie_beside_each_other(tmp_path: Path) -> None:
    _import(
        tmp_path,
        _event("xtuner.agent_loop.generate_sample.start", 0.0),
        _event("xtuner.judger.judge.start", 1.0),
        _event("xtuner.judger.judge.start", 2.0),
    )
    rows = _spans(tmp_path)
    assert [row["parent_id"] for row in rows[1:]] == [rows[0]["span_id"]] * 2
    assert [row["kind"] for row in rows[1:]] == ["phase", "phase"]


def test_hostile_events_are_kept_or_set_aside_and_never_raise(tmp_path: Path) -> None:
    script = "<script>alert(1)</script>" * 500
    report = _import(
        tmp_path,
        _event("xtuner.judger.judge.start", 1.0),
        '{"trace_id": "a", "stage": "s.start", "timestamp_s": NaN}',
        '{"trace_id": "a", "stage": "s.start", "timestamp_s": -5}',
        '{"trace_id": "a", "stage": "s.start", "timestamp_s": 1e300}',
        '{"trace_id": 5, "stage": "s.start", "timestamp_s": 1794728682.5}',
        '{"trace_id": "a", "stage": ["x"], "timestamp_s": 1794728682.5}',
        '{"trace_id": "a", "stage": "", "timestamp_s": 1794728682.5}',
        "{torn",
        "[1, 2]",
        _event(f"{script}.start", 2.0, trace_id=script, status=["x"], uid={"a": [1]}),
        _event("a.end", 1e9 - _T0 + 0.5, elapsed_s=1, error_msg={"deep": [[[]]]}),
        _event("b.error", 3.5, elapsed_s="0.5", error_msg=17, train_step=True, worker_rank=2**70),
        '{"trace_id": "\\ud800", "stage": "\\ud800.start", "timestamp_s": "1794728682.25"}',
        '{"trace_id": "q", "stage": "x.start", "timestamp_s": 12.5, "status": "sleeping"}',
    )
    (file,) = report.files
    assert (file.read, file.imported) == (14, 6)
    assert {why: one.count for why, one in file.set_aside.items()} == {
        "bad: no trace id, no stage or no time": 6,
        "bad: no JSON object": 2,
    }
    assert file.set_aside["bad: no JSON object"].lines == [8, 9]
    assert report.unknown_statuses == {"sleeping": 1}
    assert [d.name for d in report.domains] == ["producer-7", "producer-7.monotonic"]
    assert len(_spans(tmp_path)) == 6
    (odd,) = _spans(tmp_path, "name = 'a'")
    assert odd["length"] == 0
    assert odd["attrs"]["clock_suspect"] is True


def test_a_torn_last_line_is_told(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps(_event("a.start", 1.0)) + '\n{"trace_id": "gsm8k:1", "stage": "a.e')
    report = import_run([file], tmp_path / "run")
    assert report.files[0].set_aside["torn"].lines == [2]
    assert report.counts["spans open"] == 1
