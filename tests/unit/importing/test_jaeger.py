from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.importing.running import import_run
from tests.unit.importing.otlp_lines import ask, spans_by_name

if TYPE_CHECKING:
    from pathlib import Path

    from rollscope.importing.accounts import Report

START_US = 1_794_725_158_000_123
TRACE = "14f4733f3e7d1bfbc7a2ea20b2f14c94"


def tags(**values: Any) -> list[dict[str, Any]]:
    kinds = {bool: "bool", int: "int64", float: "float64"}
    return [
        {"key": key.replace("__", "."), "type": kinds.get(type(one), "string"), "value": one}
        for key, one in values.items()
    ]


def span(name: str, number: int, parent: int = 0, **fields: Any) -> dict[str, Any]:
    above = {"refType": "CHILD_OF", "traceID": TRACE, "spanID": f"{parent:016x}"}
    made = {
        "traceID": TRACE,
        "spanID": f"{number:016x}",
        "operationName": name,
        "references": [above] if parent else [],
        "startTime": START_US + number,
        "duration": 1_000_000,
        "tags": [],
        "logs": [],
        "processID": "p1",
    }
    return {**made, **fields}


def trace(*spans: Any) -> dict[str, Any]:
    about = {"serviceName": "agents", "tags": tags(host__name="h1", process__pid=7)}
    return {"traceID": TRACE, "spans": list(spans), "processes": {"p1": about}}


def imported(tmp_path: Path, document: Any, indent: int | None = None) -> tuple[Report, Path]:
    (tmp_path / "traces.json").write_text(json.dumps(document, indent=indent))
    return import_run([tmp_path / "traces.json"], tmp_path / "run"), tmp_path / "run"


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("is_answer", [True, False])
def test_a_saved_trace_and_an_answer_are_read(
    tmp_path: Path, is_answer: bool, indent: int | None
) -> None:
    one = trace(
        span("chat", 2, 1, tags=tags(gen_ai__operation__name="chat", span__kind="client")),
        span("root", 1),
    )
    report, run = imported(tmp_path, {"data": [one], "total": 0} if is_answer else one, indent)
    (file,) = report.files
    assert (file.format, file.read, file.imported) == ("jaeger", 2, 2)
    spans = spans_by_name(run)
    assert (spans["root"]["kind"], spans["chat"]["kind"]) == ("session", "phase")
    assert spans["chat"]["parent_id"] == spans["root"]["span_id"] == 1
    assert spans["root"]["start_ns"] == (START_US + 1) * 1000
    assert spans["root"]["duration_ns"] == 1_000_000_000
    assert ask(run, "SELECT host, pid, role FROM processes") == [
        {"host": "h1", "pid": 7, "role": "agents"}
    ]


def test_what_exporters_put_into_tags_goes_back_to_where_it_came_from(tmp_path: Path) -> None:
    state = "rollscope=r:train;s:00000000000000aa;n:3;t:41;k:gsm8k/1"
    failed = tags(
        error=True,
        otel__status_code="ERROR",
        otel__status_description="it broke",
        otel__scope__name="vllm.engine",
        w3c__tracestate=state,
    )
    log = {"timestamp": START_US, "fields": tags(event="retry", n=2)}
    _, run = imported(tmp_path, trace(span("llm", 1, tags=failed, logs=[log])))
    row = spans_by_name(run)["llm"]
    assert (row["status"], row["reason"], row["category"]) == ("error", "it broke", "compute")
    assert (row["session_id"], row["sample"], row["step"]) == (0xAA, 3, 41)
    assert row["attrs"].keys().isdisjoint({"error", "otel.status_code", "w3c.tracestate"})
    (event,) = ask(run, "SELECT name, time_ns, attrs FROM events")
    assert (event["name"], event["time_ns"]) == ("retry", START_US * 1000)
    assert json.loads(event["attrs"]) == {"n": 2}


def test_ids_without_leading_zeros_and_other_references_are_read(tmp_path: Path) -> None:
    follows = {"refType": "FOLLOWS_FROM", "traceID": "1", "spanID": "ff"}
    short = span("short", 1, traceID="abc", spanID="1f", references=[follows])
    _, run = imported(tmp_path, trace(short))
    row = spans_by_name(run)["short"]
    assert (int.from_bytes(row["trace_id"]), row["span_id"]) == (0xABC, 0x1F)
    assert row["parent_id"] is None
    assert row["attrs"]["links"] == [f"00-{1:032x}-{0xFF:016x}-01"]


ODD: list[Any] = [None, True, -1, 1e400, "x" * 5000, [], {}, [[[]]], [None], {"a": []}, "\ud800"]


@pytest.mark.parametrize("field", list(span("x", 1)))
def test_nothing_that_a_span_holds_stops_an_import(tmp_path: Path, field: str) -> None:
    spans = [{**span("odd", n + 100), field: odd} for n, odd in enumerate(ODD)]
    report, run = imported(tmp_path, {"data": [trace(span("x", 1), *spans), trace(span("y", 2))]})
    (file,) = report.files
    aside = sum(one.count for one in file.set_aside.values())
    assert file.read == len(ODD) + 2 == file.imported + file.duplicates + aside
    assert {"x", "y"} <= spans_by_name(run).keys()


def test_a_trace_that_is_none_is_set_aside(tmp_path: Path) -> None:
    report, _ = imported(tmp_path, {"data": [trace(span("x", 1)), {"spans": 7}, 5]})
    (file,) = report.files
    assert (file.read, file.imported) == (3, 1)
    assert sum(one.count for one in file.set_aside.values()) == 2
