from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rollscope.importing.running import import_run
from rollscope.otlp.answering import Form, Signal
from tests.unit.importing.otlp_lines import (
    START_NS,
    ask,
    balance,
    imported,
    line,
    span,
    spans_by_name,
)
from tests.unit.otlp.desk import Desk

FIXTURES = Path(__file__).parents[2] / "fixtures"
CHAT = {"gen_ai.operation.name": "chat"}


# Order


def test_the_order_of_lines_changes_nothing(tmp_path: Path) -> None:
    source = (FIXTURES / "xtuner_otlp" / "traces.jsonl").read_text().splitlines()
    spans = [one for text in source for one in _spans_of(json.loads(text))]
    resource = json.loads(source[0])["resourceSpans"][0]["resource"]
    query = "SELECT * EXCLUDE (process) FROM spans ORDER BY span_id"
    tables = []
    for name, order in (("there", spans), ("back", spans[::-1])):
        lines = [
            {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [one]}]}]}
            for one in order
        ]
        _, run = imported(tmp_path, *lines, name=name)
        tables.append(ask(run, query))
    assert len(tables[0]) == 34
    assert tables[0] == tables[1]


def _spans_of(request: Any) -> list[Any]:
    return [
        one
        for owned in request["resourceSpans"]
        for part in owned["scopeSpans"]
        for one in part["spans"]
    ]


def test_children_before_their_parents_get_the_session_of_the_root(tmp_path: Path) -> None:
    _, run = imported(
        tmp_path,
        line(span("chat", 3, 2, attrs=CHAT)),
        line(span("turn", 2, 1)),
        line(span("root", 1)),
    )
    spans = spans_by_name(run)
    assert (spans["root"]["kind"], spans["root"]["parent_id"]) == ("session", None)
    assert {one["session_id"] for one in spans.values()} == {1}


def test_a_root_above_sessions_is_none_itself(tmp_path: Path) -> None:
    _, run = imported(
        tmp_path,
        line(span("batch", 1)),
        line(span("a", 2, 1, attrs={"rollout_id": 7}), span("b", 3, 1, attrs={"rollout_id": 8})),
    )
    spans = spans_by_name(run)
    assert spans["batch"]["session_id"] is None
    assert (spans["a"]["session_id"], spans["b"]["session_id"]) == (2, 3)


def test_what_has_lost_its_parent_for_ever_is_kept_and_marked(tmp_path: Path) -> None:
    alias = {"xtuner.rollout_id": 7, "xtuner.group_id": 3}
    report, run = imported(
        tmp_path, line(span("generate", 3, 2, attrs=alias), span("generate", 4, 2, attrs=alias))
    )
    assert report.counts["parents missing"] == 2
    assert report.counts["sessions without a span of their own"] == 1
    (session,) = ask(run, "SELECT *, attrs ->> 'root_missing' AS mark FROM sessions")
    assert (session["status"], session["task_key"], session["mark"]) == ("open", "3", "true")
    phases = ask(run, "SELECT *, attrs ->> 'parent_missing' AS mark FROM phases")
    assert [(p["session_id"], p["mark"]) for p in phases] == [(session["session_id"], "true")] * 2


def test_spans_that_are_each_others_parents_are_kept(tmp_path: Path) -> None:
    report, run = imported(tmp_path, line(span("a", 1, 2), span("b", 2, 1), span("c", 3, 3)))
    assert balance(report.files[0]) == (3, 3, 0, 0)
    assert len(ask(run, "SELECT * FROM spans WHERE name <> ''")) == 3


def test_a_file_and_the_wire_give_the_same_spans(tmp_path: Path) -> None:
    """As far as the wire can: it has to be told of roots before it hears of what is below."""
    source = FIXTURES / "xtuner_otlp" / "traces.jsonl"
    import_run([source], tmp_path / "run")
    requests = [json.loads(text) for text in source.read_text().splitlines()]
    parts = [part for one in requests for part in one["resourceSpans"]]
    desk = Desk()
    body = json.dumps({"resourceSpans": parts}).encode()
    assert desk.receiver.take(Signal.TRACES, Form.JSON, body) == b"{}"
    rows = {row["span_id"]: row for row in ask(tmp_path / "run", "SELECT * FROM spans")}
    live = desk.spans()
    assert len(live) == len(rows) == 34
    for one in live:
        row = rows[int(one.span_id, 16)]
        attrs = json.loads(row["attrs"])
        attrs.pop("error.copied", None)
        assert attrs == one.attrs
        assert (one.kind, one.name, one.status) == (row["kind"], row["name"], row["status"])
        assert (one.start_ns, one.end_ns) == (row["start_ns"], row["end_ns"])
        assert (one.outcome, one.step, one.task_key) == (
            row["outcome"],
            row["step"],
            row["task_key"],
        )


# Spans that come more than once


def test_a_span_that_comes_twice_is_kept_once(tmp_path: Path) -> None:
    report, run = imported(tmp_path, line(span("x", 1)), line(span("x", 1)))
    assert balance(report.files[0]) == (2, 1, 1, 0)
    assert len(ask(run, "SELECT 1 FROM spans")) == 1


@pytest.mark.parametrize("is_longer_first", [True, False])
def test_of_two_ends_the_longer_is_kept_and_the_other_told(
    tmp_path: Path, is_longer_first: bool
) -> None:
    longer = span("x", 1, endTimeUnixNano=str(START_NS + 9_000_000_000))
    both = [line(longer), line(span("x", 1))]
    report, run = imported(tmp_path, *(both if is_longer_first else both[::-1]))
    (file,) = report.files
    assert balance(file) == (2, 1, 0, 1)
    assert file.set_aside["another span of its id is longer"].lines == [2 if is_longer_first else 1]
    (row,) = ask(run, "SELECT end_ns FROM spans")
    assert row["end_ns"] == START_NS + 9_000_000_000


@pytest.mark.parametrize("is_pending_first", [True, False])
def test_an_open_span_gives_way_to_its_end(tmp_path: Path, is_pending_first: bool) -> None:
    attrs = {"rollscope.span_type": "pending"}
    both = [line(span("x", 1, attrs=attrs)), line(span("x", 1))]
    report, run = imported(tmp_path, *(both if is_pending_first else both[::-1]))
    assert balance(report.files[0]) == (2, 1, 1, 0)
    assert report.counts["open spans that ended later"] == 1
    (row,) = ask(run, "SELECT status, end_ns FROM spans")
    assert (row["status"], row["end_ns"]) == ("ok", START_NS + 1_001_000_000)
