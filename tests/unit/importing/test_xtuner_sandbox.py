import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from rollscope.importing.accounts import FileAccount, Report
from rollscope.importing.formats import Place
from rollscope.importing.running import import_run
from rollscope.importing.writing import RunWriter
from rollscope.importing.xtuner_sandbox import XtunerSandbox
from rollscope.store.embedded import RunStore

_T0 = 1794728683.0


def _ask(run: Path, query: str) -> list[dict[str, Any]]:
    with RunStore(run) as store:
        rows: list[dict[str, Any]] = store.query(query).to_pylist()
    for row in rows:
        if "attrs" in row:
            row["attrs"] = json.loads(row["attrs"])
    return rows


def _edge(event: str, uid: object, stage: str, at_s: float, **more: Any) -> dict[str, Any]:
    return {"ts": _T0 + at_s, "event": event, "uid": uid, "stage": stage, **more}


def _fate(uid: object, at_s: float, final: object, **more: Any) -> dict[str, Any]:
    return {"ts": _T0 + at_s, "uid": uid, "final": final, **more}


def _import(tmp_path: Path, **files: list[object]) -> Report:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, records in files.items():
        lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"{name.replace('__', '.')}.jsonl").write_text(text)
    return import_run([folder], tmp_path / "run")


_WHOLE: list[object] = [
    _edge("enter", 7, "run_total", 0.0),
    _edge("enter", 7, "acquire", 0.1),
    _edge("exit", 7, "acquire", 0.4, duration_ms=300.5, ok=True, err=None),
    _edge("enter", 7, "infer", 0.5),
    _edge("enter", 7, "entry:bash", 0.6),
    _edge("exit", 7, "entry:bash", 0.7, duration_ms=100, ok=False, err="bash: no such file"),
    _edge("exit", 7, "infer", 1.0, duration_ms=500, ok=True),
    _edge("enter", 7, "validate", 1.1),
    _edge("exit", 7, "validate", 1.6, duration_ms="500", ok=True),
    _edge("exit", 7, "run_total", 2.0, duration_ms=2000, ok=True),
]


def test_stages_are_phases_and_spans_of_the_session(tmp_path: Path) -> None:
    report = _import(tmp_path, spans__agent__77=_WHOLE)
    assert (report.files[0].read, report.files[0].imported) == (10, 10)
    assert [(d.name, d.clock) for d in report.domains] == [("agent-77", "wall")]
    assert report.counts == {"sessions completed": 1, "spans": 5, "tasks": 1}
    rows = _ask(
        tmp_path / "run",
        "SELECT kind, name, end_ns - start_ns AS length, status FROM spans "
        "WHERE kind IN ('phase', 'span') ORDER BY start_ns",
    )
    assert [tuple(row.values()) for row in rows] == [
        ("span", "run_total", 2_000_000_000, "ok"),
        ("phase", "acquire", 300_500_000, "ok"),
        ("phase", "generate", 500_000_000, "ok"),
        ("span", "entry:bash", 100_000_000, "error"),
        ("phase", "reward", 500_000_000, "ok"),
    ]


def test_a_verdict_from_another_file_names_task_outcome_and_reason(tmp_path: Path) -> None:
    fates: list[object] = [
        _fate("7", 2.1, "SKIPPED", task_id="t1", group_id="g1", failed_stage="infer", reason="oom"),
        _fate(8.0, 2.2, "COMPLETED", task_id="t2", group_id="g1"),
    ]
    both = [*_WHOLE, _edge("enter", "8", "run_total", 0.2), _edge("exit", 8, "run_total", 1.0)]
    report = _import(tmp_path, fates__agent__77=fates, spans__agent__77=both)
    rows = _ask(tmp_path / "run", "SELECT * FROM spans WHERE kind = 'session' ORDER BY sample")
    assert [(r["task_key"], r["sample"], r["group_key"]) for r in rows] == [
        ("g1", 0, "g1"),
        ("g1", 1, "g1"),
    ]
    assert [(r["status"], r["outcome"], r["reason"]) for r in rows] == [
        ("error", "failed", "oom"),
        ("ok", None, None),
    ]
    assert rows[0]["attrs"]["failed_stage"] == "infer"
    assert rows[0]["attrs"]["source_status"] == "SKIPPED"
    assert rows[0]["end_ns"] - rows[0]["start_ns"] == 2_000_000_000
    assert report.counts["tasks"] == 1
    events = _ask(tmp_path / "run", "SELECT name, time_ns FROM events ORDER BY time_ns")
    assert [event["name"] for event in events] == ["verdict", "verdict"]
    assert events[0]["time_ns"] == 1_794_728_685_100_000_000


def test_without_an_exit_a_session_is_open_until_there_is_a_verdict(tmp_path: Path) -> None:
    spans: list[object] = [
        _edge("enter", 1, "run_total", 0.0),
        _edge("enter", 1, "infer", 1.0),
        _edge("enter", 2, "run_total", 0.0),
        _edge("enter", 2, "infer", 1.0),
    ]
    report = _import(
        tmp_path, fates__a__1=[_fate(2, 9.0, "SKIPPED", reason="timeout")], spans__a__1=spans
    )
    rows = _ask(
        tmp_path / "run",
        "SELECT kind, name, status, end_ns - start_ns AS length FROM spans "
        "WHERE kind IN ('session', 'phase') ORDER BY kind, status",
    )
    assert [(r["kind"], r["status"], r["length"]) for r in rows] == [
        ("phase", "lost", 8_000_000_000),
        ("phase", "open", None),
        ("session", "error", 9_000_000_000),
        ("session", "open", None),
    ]
    assert report.guessed == {"end of a session": 1, "end of a span": 2}


def test_a_failed_run_without_a_verdict_has_failed(tmp_path: Path) -> None:
    _import(
        tmp_path,
        spans__a__1=[
            _edge("enter", 1, "run_total", 0.0),
            _edge("exit", 1, "run_total", 1.0, ok=False, err="RuntimeError: gone"),
        ],
    )
    (row,) = _ask(tmp_path / "run", "SELECT * FROM spans WHERE kind = 'session'")
    assert (row["outcome"], row["reason"]) == ("failed", "RuntimeError: gone")
    assert row["task_key"] == "1"


def test_model_calls_are_spans_of_their_process(tmp_path: Path) -> None:
    call = {
        "ts": _T0,
        "total_ms": 400.25,
        "tokenize_ms": 1,
        "rollout_ms": 390,
        "post_ms": 9,
        "prompt_tokens": 12,
        "completion_tokens": 30,
    }
    report = _import(tmp_path, llm_calls__78=[call, call, {**call, "total_ms": "soon"}])
    (file,) = report.files
    assert (file.read, file.imported, file.duplicates) == (3, 1, 1)
    assert file.set_aside["bad: a call without a length"].lines == [3]
    (row,) = _ask(tmp_path / "run", "SELECT * FROM spans")
    assert (row["name"], row["lane"], row["session_id"]) == ("llm_call", "llm-78", None)
    assert (row["tokens_in"], row["tokens_out"]) == (12, 30)
    assert row["end_ns"] - row["start_ns"] == 400_250_000


@pytest.mark.parametrize("line", ['{"_encode_error": "set"}', '{"uid": 1, "_encode_error": 5}'])
def test_what_its_writer_could_not_encode_is_a_bad_line(tmp_path: Path, line: str) -> None:
    report = _import(tmp_path, spans__a__1=[*_WHOLE, line])
    assert report.files[0].set_aside["bad: its writer could not encode it"].lines == [11]
    assert list(report.warnings()) == [f"{report.files[0].path}: 1 of 11 records cannot be read"]


def test_hostile_lines_are_kept_or_set_aside_and_never_raise(tmp_path: Path) -> None:
    script = "</script><script>alert(1)</script>"
    report = _import(
        tmp_path,
        spans__a__1=[
            _edge("enter", script, script * 300, 1.0, more={"a": [[[["x"]]]]}, big="y" * 100_000),
            _edge("enter", True, "infer", 1.0),
            _edge("enter", {"a": 1}, "infer", 1.0),
            _edge("enter", 1, "", 1.0),
            _edge("exit", 1, "infer", 1.0, duration_ms=float("nan")),
            _edge("exit", 1, "infer", 1.5, duration_ms=-3),
            _edge("exit", 1, "validate", 1.5, duration_ms=1e9, ok=False, err=["x", {}]),
            _fate(1, 2.0, None),
            _fate(1, 2.0, ["COMPLETED"]),
            _fate(1, float("inf"), "COMPLETED"),
            _fate(1, 2.0, "EXPLODED", reason={"a": 1}, group_id=[1]),
            '{"ts": 1794728683, "uid": 1, "event": "enter", "stage": "x", "deep": ' + "[" * 4000,
        ],
    )
    (file,) = report.files
    assert file.read == 12
    assert {why: one.lines for why, one in file.set_aside.items()} == {
        "bad: no uid, stage or verdict": [2, 3, 4, 8, 9],
        "an end that has neither a start nor a length": [5, 6],
        "bad: no time": [10],
        "bad: no JSON object": [12],
    }
    assert file.imported == 3
    assert report.unknown_statuses == {"EXPLODED": 1}
    rows = _ask(tmp_path / "run", "SELECT * FROM spans WHERE kind = 'session'")
    assert len(rows) == 2


def test_what_was_surveyed_survives_pickling(tmp_path: Path) -> None:
    report = Report(run="run")
    importer = XtunerSandbox(RunWriter(tmp_path, report, {}), report)
    file = FileAccount(path="spans.agent.77.jsonl", format=importer.format)
    lines = [(Place(file, 0, at), json.dumps(one).encode()) for at, one in enumerate(_WHOLE, 1)]
    for place, raw in lines:
        importer.survey(place, raw)
    importer.settle()
    again: XtunerSandbox = pickle.loads(pickle.dumps(importer))  # noqa: S301
    assert [again.take(place, raw) for place, raw in lines] == [""] * len(lines)
