import json
from pathlib import Path
from typing import Any

import pytest

from rollscope.importing.accounts import Report
from rollscope.importing.recognising import recognise_record
from rollscope.importing.running import import_run
from rollscope.store.embedded import RunStore

_SPAN: dict[str, Any] = {
    "kind": "session",
    "process": "00000000000000aa",
    "trace_id": "0" * 31 + "1",
    "span_id": "0000000000000001",
    "name": "session",
    "start_ns": 1_763_000_000_000_000_000,
    "end_ns": 1_763_000_001_000_000_000,
    "status": "ok",
    "task_key": "t",
}


def _import(tmp_path: Path, *lines: object) -> tuple[Report, list[dict[str, Any]]]:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    source = tmp_path / "run.jsonl"
    source.write_text("\n".join(texts) + "\n", encoding="utf-8")
    report = import_run([source], tmp_path / "run")
    with RunStore(tmp_path / "run") as store:
        rows: list[dict[str, Any]] = store.query("SELECT * FROM spans ORDER BY name").to_pylist()
        assert not store.problems
    return report, rows


_BAD: list[tuple[dict[str, Any], str]] = [
    ({"step": "seven"}, "bad: step cannot be read"),
    ({"step": 2**70}, "bad: step cannot be read"),
    ({"attrs": [1]}, "bad: attrs cannot be read"),
    ({"outcome": "great"}, "bad: outcome cannot be read"),
    ({"status": "great"}, "bad: a status that is unknown"),
    ({"kind": "thing"}, "of no format that is read"),
    ({"span_id": "xyz"}, "bad: no id or no time"),
    ({"trace_id": "12"}, "bad: no id or no time"),
    ({"start_ns": -1}, "bad: start_ns cannot be read"),
    ({"end_ns": None}, "bad: an end and a status that exclude each other"),
    ({"process": 5}, "bad: process cannot be read"),
    ({"process": ""}, "bad: no process"),
    ({"kind": "fact", "span_id": ""}, "bad: no id or no time"),
    ({"kind": "metric", "type": "gauge", "time_ns": 5}, "bad: no type, no value or no time"),
    ({"kind": "metric", "type": "odd", "value": 5}, "bad: type cannot be read"),
    ({"kind": "metric", "labels": {"a": 1}}, "bad: labels cannot be read"),
]


@pytest.mark.parametrize(("change", "why"), _BAD, ids=[str(change) for change, _ in _BAD])
def test_what_cannot_be_is_set_aside_with_its_line(
    tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    report, rows = _import(tmp_path, {**_SPAN, "span_id": "00000000000000ff"}, _SPAN | change)
    (file,) = report.files
    assert {reason: one.lines for reason, one in file.set_aside.items()} == {why: [2]}
    assert (file.read, file.imported) == (2, 1)
    assert [row["span_id"] for row in rows] == [255]


def test_odd_but_whole_lines_are_kept(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    lines = [
        _SPAN | {"name": "</script>" * 2000, "span_id": "0000000000000002"},
        _SPAN | {"attrs": {"n": 2**80, "long": "x" * 10_000, "deep": deep}},
        json.dumps(_SPAN | {"span_id": "0000000000000003", "attrs": {"v": float("nan")}}),
        _SPAN | {"kind": "fact", "time_ns": 5, "facts": {"n": 2**80, "reward": 1.5}},
        _SPAN | {"kind": "metric", "type": "gauge", "value": "NaN", "time_ns": 5},
        _SPAN | {"span_id": "0000000000000004", "unknown": {"key": []}, "end_ns": 5},
    ]  # fmt: skip
    report, rows = _import(tmp_path, *lines)
    (file,) = report.files
    assert (file.read, file.imported, file.set_aside) == (6, 6, {})
    assert len(rows) == 4
    assert max(len(row["name"]) for row in rows) == 4096
    assert all(len(row["attrs"]) < 20_000 for row in rows)


def test_text_that_is_no_unicode_is_set_aside(tmp_path: Path) -> None:
    report, rows = _import(tmp_path, json.dumps(_SPAN).replace('"t"', '"\\ud800"'), _SPAN)
    (file,) = report.files
    assert [one.lines for one in file.set_aside.values()] == [[1]]
    assert len(rows) == 1


def test_a_newer_schema_is_told(tmp_path: Path) -> None:
    head = {"kind": "run", "run": "r", "schema": 99, "writer": "rollscope 99"}
    report, rows = _import(tmp_path, head, _SPAN)
    assert report.files[0].set_aside["bad: written by a newer version"].lines == [1]
    assert len(rows) == 1


def test_only_our_lines_are_taken_for_ours() -> None:
    assert recognise_record(_SPAN) == "rollscope-jsonl"
    assert recognise_record({"kind": "run", "run": "r", "schema": 1, "writer": "w"}) is not None
    assert recognise_record({"kind": "gauge", "name": "n", "process": 1}) == "rl-insight"
    assert recognise_record({"kind": "session", "name": "n"}) is None
    assert recognise_record({"kind": ["session"], "process": ""}) is None
