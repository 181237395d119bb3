"""OTLP lines made by hand, and what an import made of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rollscope.importing.running import import_run
from rollscope.store.embedded import RunStore

if TYPE_CHECKING:
    from pathlib import Path

    from rollscope.importing.accounts import FileAccount, Report

START_NS = 1_794_725_158_000_000_000
TRACE = "14f4733f3e7d1bfbc7a2ea20b2f14c94"


def value(of: Any) -> dict[str, Any]:
    match of:
        case bool():
            return {"boolValue": of}
        case int():
            return {"intValue": str(of)}
        case float():
            return {"doubleValue": of}
        case _:
            return {"stringValue": of}


def pairs(attrs: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(one)} for key, one in attrs.items()]


def span(name: str, number: int, parent: int = 0, **fields: Any) -> dict[str, Any]:
    """Make a span; its number gives its id, and its place in time unless it says otherwise."""
    start = START_NS + number * 1_000_000
    made = {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": name,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 1_000_000_000),
        "attributes": pairs(fields.pop("attrs", {})),
    }
    return {**made, **fields}


def line(*spans: Any, scope: str = "tests", **resource: Any) -> dict[str, Any]:
    attrs = {"service.name": "agents", **resource}
    parts = [{"scope": {"name": scope}, "spans": list(spans)}]
    return {"resourceSpans": [{"resource": {"attributes": pairs(attrs)}, "scopeSpans": parts}]}


def imported(tmp_path: Path, *lines: Any, name: str = "run") -> tuple[Report, Path]:
    """Import lines, each an object or text."""
    source = tmp_path / f"{name}-source" / "traces.jsonl"
    source.parent.mkdir()
    texts = [one if isinstance(one, str) else json.dumps(one) for one in lines]
    source.write_text("\n".join(texts) + "\n")
    run = tmp_path / name
    return import_run([source], run), run


def ask(run: Path, query: str) -> list[dict[str, Any]]:
    with RunStore(run) as store:
        rows: list[dict[str, Any]] = store.query(query).to_pylist()
    return rows


def spans_by_name(run: Path) -> dict[str, dict[str, Any]]:
    """Give each span by what its sender called it, attributes read."""
    rows = ask(run, "SELECT * FROM spans")
    for row in rows:
        row["attrs"] = json.loads(row["attrs"])
    return {row["attrs"].get("source_name", row["name"]): row for row in rows}


def balance(file: FileAccount) -> tuple[int, int, int, int]:
    """Give what was read, imported, doubled and set aside, and see that it adds up."""
    aside = sum(one.count for one in file.set_aside.values())
    assert file.read == file.imported + file.duplicates + aside
    return file.read, file.imported, file.duplicates, aside
