from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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

# Forms that only files have


def test_the_names_of_protobuf_are_read(tmp_path: Path) -> None:
    made = {
        "resource_spans": [
            {
                "resource": {"attributes": pairs({"service.name": "old"})},
                "scope_spans": [
                    {
                        "spans": [
                            {
                                "trace_id": TRACE,
                                "span_id": "00" * 7 + "01",
                                "name": "x",
                                "start_time_unix_nano": START_NS,
                                "end_time_unix_nano": START_NS + 5,
                                "attributes": [{"key": "n", "value": {"int_value": 7}}],
                            }
                        ]
                    }
                ],
            }
        ]
    }
    _, run = imported(tmp_path, made)
    row = spans_by_name(run)["x"]
    assert (row["end_ns"] - row["start_ns"], row["attrs"]["n"]) == (5, 7)


def test_libraries_of_old_and_numbers_without_a_size_are_read(tmp_path: Path) -> None:
    old = line(span("x", 1, attrs={"loss": 0.5, "kept": "yes"}))
    part = old["resourceSpans"][0].pop("scopeSpans")[0]
    library = {"instrumentationLibrary": part["scope"], "spans": part["spans"]}
    old["resourceSpans"][0]["instrumentationLibrarySpans"] = [library]
    _, run = imported(tmp_path, json.dumps(old).replace("0.5", "NaN"))
    attrs = spans_by_name(run)["x"]["attrs"]
    assert (attrs.get("loss"), attrs["kept"]) == (None, "yes")


def test_a_document_on_many_lines_is_read(tmp_path: Path) -> None:
    report, _ = imported(tmp_path, json.dumps(line(span("x", 1)), indent=2))
    assert report.counts["spans"] == 1


ODD: list[Any] = [
    None,
    True,
    -1,
    1e400,
    "x" * 5000,
    [],
    {},
    [[[[[[]]]]]],
    {"a": {"b": {}}},
    "\ud800",
]


def test_an_id_of_a_pending_parent_that_is_none_stops_no_import(tmp_path: Path) -> None:
    for number, odd in enumerate(["-00000000000000f", "x" * 16, "", "0" * 16]):
        attrs = {"logfire.span_type": "pending_span", "logfire.pending_parent_id": odd}
        _, run = imported(tmp_path, line(span("x", 2, 1, attrs=attrs)), name=f"run{number}")
        (row,) = ask(run, "SELECT span_id, parent_id, status FROM spans")
        assert (row["span_id"], row["parent_id"], row["status"]) == (1, None, "open")


FIELDS = [*span("x", 1), "events", "links", "status", "kind", "traceState"]


@pytest.mark.parametrize("field", FIELDS)
def test_nothing_that_a_span_holds_stops_an_import(tmp_path: Path, field: str) -> None:
    lines = [
        line(span("x", 2 * n), {**span("odd", 2 * n + 1, 2 * n), field: odd})
        for n, odd in enumerate(ODD, 1)
    ]
    report, run = imported(tmp_path, *lines)
    read, done, doubled, _ = balance(report.files[0])
    assert read == 2 * len(ODD)
    assert done + doubled >= len(ODD)
    kept = "SELECT 1 FROM spans WHERE name = 'x' OR attrs ->> 'source_name' = 'x'"
    assert len(ask(run, kept)) == len(ODD)


@pytest.mark.parametrize("key", ["resource", "scopeSpans", "spans", "attributes", "value"])
def test_nothing_that_a_line_holds_stops_an_import(tmp_path: Path, key: str) -> None:
    def spoil(held: Any, odd: Any) -> Any:
        if isinstance(held, dict):
            return {name: odd if name == key else spoil(one, odd) for name, one in held.items()}
        return [spoil(one, odd) for one in held] if isinstance(held, list) else held

    bad = line(span("odd", 2, attrs={"a": 1}))
    lines = [spoil(bad, odd) for odd in ODD]
    report, run = imported(tmp_path, line(span("x", 1)), *lines, line(span("y", 3, 1)))
    balance(report.files[0])
    assert {"x", "y"} <= spans_by_name(run).keys()


TOLD = ["kind", "status", "outcome", "reason", "late", "facts", "category", "name", "phase"]
TOLD += ["parent_id", "consumed_step", "consumed_ns", "session_id", "step", "task_key", "lane"]
TOLD += ["family", "reward", "version_end", "span_type"]
HUGE = {"intValue": str(10**23)}
VALUES = [
    *({"intValue": "-1"}, {"doubleValue": "NaN"}, {"boolValue": True}, {"stringValue": "x" * 5000}),
    *(HUGE, {"arrayValue": {"values": [{"stringValue": "reward"}, HUGE, {"arrayValue": {}}]}}),
    {"kvlistValue": {"values": [{"key": "a", "value": HUGE}, {"key": "reward"}]}},
]


@pytest.mark.parametrize("kind", ["session", "phase", "event"])
def test_nothing_that_claims_to_be_ours_stops_an_import(tmp_path: Path, kind: str) -> None:
    plain = {"rollscope.kind": kind, "rollscope.status": "error", "error.type": "x"}
    spans: list[dict[str, Any]] = []
    for name in [f"rollscope.{one}" for one in TOLD] + ["error.type"]:
        for odd in VALUES:
            one = span("odd", 100 + len(spans), attrs={**plain, "rollscope.reward": 1.0})
            held = [pair for pair in one["attributes"] if pair["key"] != name]
            spans.append({**one, "attributes": [*held, {"key": name, "value": odd}]})
    report, _ = imported(tmp_path, line(*spans, scope="rollscope"))
    read, done, _, _ = balance(report.files[0])
    assert read == done == len(TOLD) * len(VALUES) + len(VALUES)
