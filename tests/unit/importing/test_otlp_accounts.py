from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rollscope.importing.running import import_run
from tests.unit.importing.otlp_lines import (
    START_NS,
    TRACE,
    ask,
    balance,
    imported,
    line,
    pairs,
    span,
    spans_by_name,
)

CHAT = {"gen_ai.operation.name": "chat"}


# Accounts


def test_a_line_tells_of_each_of_its_spans(tmp_path: Path) -> None:
    bad = span("bad", 2, traceId="0" * 32)
    early = span("early", 3, startTimeUnixNano="5", endTimeUnixNano="6")
    report, _ = imported(
        tmp_path, line(span("x", 1), bad, bad, early), line(bad), line(), "{}", "no JSON"
    )
    (file,) = report.files
    assert balance(file) == (8, 1, 0, 7)
    told = {why: (one.count, one.lines) for why, one in file.set_aside.items()}
    assert told == {
        "has no valid trace and span id": (3, [1, 1, 2]),
        "has times before 2001, so not of a wall clock": (1, [1]),
        "holds nothing": (1, [3]),
        "of no format that is read": (1, [4]),
        "bad: no JSON object": (1, [5]),
    }


def test_a_status_that_nobody_knows_is_counted(tmp_path: Path) -> None:
    report, _ = imported(
        tmp_path, line(span("x", 1, attrs={"xtuner.status": "moody", "rollout_id": 1}))
    )
    assert report.unknown_statuses == {"moody": 1}


def test_senders_are_processes_under_names_that_can_be_said(tmp_path: Path) -> None:
    first: dict[str, Any] = {"host.name": "h1", "process.pid": 7, "rank": 3}
    second: dict[str, Any] = {"host.name": "h2", "process.pid": 8, "rank": 3}
    report, run = imported(
        tmp_path,
        line(span("a", 1), **first),
        line(span("b", 2, traceId=TRACE[::-1]), **second),
    )
    assert [domain.name for domain in report.domains] == ["agents-r3", "agents-r3/8"]
    rows = ask(run, "SELECT host, pid, rank FROM processes ORDER BY host")
    assert rows == [{"host": "h1", "pid": 7, "rank": 3}, {"host": "h2", "pid": 8, "rank": 3}]


def test_several_runs_in_one_file_are_kept_apart_and_counted(tmp_path: Path) -> None:
    report, run = imported(
        tmp_path,
        line(span("a", 1), **{"run.id": "one"}),
        line(span("b", 2, traceId=TRACE[::-1]), **{"run.id": "two"}),
    )
    assert report.named_runs == ["one", "two"]
    runs = {name: row["attrs"]["source_run"] for name, row in spans_by_name(run).items()}
    assert runs == {"a": "one", "b": "two"}


@pytest.mark.parametrize("sibling", ["traces.1.jsonl", "traces-2026-11-16T03-00-00.jsonl"])
def test_a_rotated_file_that_was_not_given_is_named(tmp_path: Path, sibling: str) -> None:
    (tmp_path / sibling).write_text(json.dumps(line(span("old", 2))) + "\n")
    (tmp_path / "traces.jsonl").write_text(json.dumps(line(span("x", 1))) + "\n")
    alone = import_run([tmp_path / "traces.jsonl"], tmp_path / "runs" / "alone")
    both = import_run([tmp_path / "*.jsonl"], tmp_path / "runs" / "both")
    assert sibling in alone.files[0].note
    assert [file.note for file in both.files] == ["", ""]
    assert both.counts["spans"] == 2


# Metrics and log records


def test_metrics_are_imported_as_what_they_grew_by(tmp_path: Path) -> None:
    def sums(*values: int) -> dict[str, Any]:
        points = [
            {
                "startTimeUnixNano": str(START_NS),
                "timeUnixNano": str(START_NS + (n + 1) * 10**9),
                "asInt": str(one),
            }
            for n, one in enumerate(values)
        ]
        metric = {
            "name": "tokens",
            "sum": {"dataPoints": points, "aggregationTemporality": 2, "isMonotonic": True},
        }
        summary = {"name": "s", "summary": {"dataPoints": [{"timeUnixNano": str(START_NS)}]}}
        parts = [{"metrics": [metric, summary]}]
        return {"resourceMetrics": [{"resource": {"attributes": []}, "scopeMetrics": parts}]}

    report, run = imported(tmp_path, sums(5, 8))
    assert balance(report.files[0]) == (3, 2, 0, 1)
    assert report.counts["points"] == 2
    rows = ask(run, "SELECT name, value FROM metrics ORDER BY time_ns")
    assert [(row["name"], row["value"]) for row in rows] == [("tokens", 5.0), ("tokens", 3.0)]


def test_log_records_tell_of_rewards_and_starts(tmp_path: Path) -> None:
    def log(name: str, number: int, **attrs: Any) -> dict[str, Any]:
        return {
            "traceId": TRACE,
            "spanId": f"{number:016x}",
            "eventName": name,
            "timeUnixNano": str(START_NS + 2_000_000_000),
            "attributes": pairs(attrs),
        }

    records = [
        log("gen_ai.evaluation.result", 2, **{"gen_ai.evaluation.score.value": 0.75}),
        log("gen_ai.evaluation.result", 9, **{"gen_ai.evaluation.score.value": 0.5}),
        log("span.start", 3, **{"span.name": "late", "parent_span_id": f"{1:016x}"}),
        log("chatter", 1),
    ]
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    # The record comes before the span that it tells of.
    report, run = imported(tmp_path, logs, line(span("root", 1), span("chat", 2, 1, attrs=CHAT)))
    (file,) = report.files
    assert balance(file) == (6, 4, 0, 2)
    assert file.set_aside["tells no reward of a session that is known"].count == 1
    (session,) = ask(run, "SELECT session_id, reward FROM sessions")
    assert session == {"session_id": 1, "reward": 0.75}
    late = spans_by_name(run)["late"]
    assert (late["status"], late["session_id"]) == ("open", 1)
