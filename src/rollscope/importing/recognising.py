"""Telling formats apart, by a table: the first test that holds counts; names are hints only."""

import io
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from rollscope.importing.documents import Window, mended
from rollscope.importing.reading import read_head
from rollscope.importing.rollscope_fields import LINE_KINDS
from rollscope.importing.sources import Source
from rollscope.importing.values import decode_object

__all__ = ["TESTS", "Found", "Test", "recognise", "recognise_record"]

_HEAD_BYTES: Final = 262_144
_MOST_LINES: Final = 20
_AREAL_PROCESS: Final = re.compile(r"(?:^|\] |\[)Rank \d+, Process")
_OWN_BYTES: Final = re.compile(rb'"writer"\s*:\s*"rollscope"')
_AREAL_BYTES: Final = re.compile(rb"Rank \d+, Process")
_OTLP_KEYS: Final = (
    *("resourceSpans", "resourceMetrics", "resourceLogs"),
    *("resource_spans", "resource_metrics", "resource_logs"),
)
Record = dict[str, Any]


class Test(NamedTuple):
    """One row: what a record of a format has."""

    format: str
    title: str
    holds: Callable[[Record], bool]


class Found(NamedTuple):
    """What a file is."""

    format: str
    title: str
    member: str | None = None
    """Of a document, the member whose elements are its records, or empty if it is one record
    itself; else None."""

    @property
    def is_document(self) -> bool:
        """Whether its records are the elements of one document, not lines."""
        return self.member is not None


def _is_ours(record: Record) -> bool:
    kind = record.get("kind")
    if kind == "run":
        return {"run", "schema", "writer"} <= record.keys()
    return isinstance(kind, str) and kind in LINE_KINDS and "process" in record


def _is_otlp(record: Record) -> bool:
    return not record.keys().isdisjoint(_OTLP_KEYS)


def _is_jaeger(record: Record) -> bool:
    data = record.get("data", ...)
    inner = data[0] if isinstance(data, list) and data else record
    return isinstance(inner, dict) and {"traceID", "spans"} <= inner.keys()


def _is_verifiers(record: Record) -> bool:
    keys = record.keys()
    return (
        ({"traces", "task"} <= keys and ("env" in keys or "ok" in keys))
        or {"timing", "nodes", "calls"} <= keys
        or {"version", "trace_id", "info", "branches"} <= keys
    )


def _is_sandbox(record: Record) -> bool:
    keys = record.keys()
    is_edge = record.get("event") in ("enter", "exit") and {"uid", "stage"} <= keys
    return is_edge or {"final", "uid"} <= keys or {"total_ms", "rollout_ms"} <= keys


def _is_areal_perf(record: Record) -> bool:
    if not {"ph", "name"} <= record.keys() or not isinstance(record.get("pid"), int):
        return False
    args = record.get("args")
    if not isinstance(args, dict):
        return False
    if record["ph"] != "M":
        return "rank" in args
    if record["name"] == "process_name":
        return bool(_AREAL_PROCESS.search(str(args.get("name", ""))))
    return record["name"] in ("rollscope_clock", "process_sort_index", "thread_name")


TESTS: Final = (
    Test("rollscope-jsonl", "Rollscope's JSON lines", _is_ours),
    Test("otlp", "OTLP as JSON", _is_otlp),
    Test("jaeger", "Jaeger's JSON", _is_jaeger),
    Test("slime", "slime's timeline cache", lambda r: {"cache_version", "rows"} <= r.keys()),
    Test("verifiers", "episodes of verifiers", _is_verifiers),
    Test(
        "areal-sessions",
        "AReaL's sessions",
        lambda r: "submit_ts" in r and ("session_id" in r or "request_id" in r),
    ),
    Test(
        "xtuner-producer",
        "XTuner's producer trace",
        lambda r: {"trace_id", "stage", "timestamp_s"} <= r.keys(),
    ),
    Test(
        "rl-insight",
        "RL-Insight's events",
        lambda r: "name" in r and r.get("kind") in ("counter", "gauge", "histogram", "trace"),
    ),
    Test("xtuner-sandbox", "XTuner's sandbox files", _is_sandbox),
    Test("areal-perf", "AReaL's perf events", _is_areal_perf),
    Test("chrome", "a Chrome trace", lambda r: "ph" in r or "traceEvents" in r),
)
_TITLES: Final = {test.format: test.title for test in TESTS}
_UNKNOWN: Final = Found("unknown", "nothing that is known")
_PROMETHEUS: Final = Found("prometheus", "Prometheus' text")
_EXPOSITION: Final = (b"# TYPE ", b"# HELP ")
_MEMBERS: Final = {"slime": "rows", "jaeger": "data"}
"""Where the records of the formats that are documents stand."""


def recognise_record(record: Record) -> str | None:
    """Name the format of one record; None if no test holds."""
    return next((test.format for test in TESTS if test.holds(record)), None)


def recognise(source: Source) -> Found:
    """Say what a file is, by its first lines, or by the beginning of the document that it is.

    Raises:
        OSError: It cannot be opened.
    """
    head = read_head(source, _HEAD_BYTES)
    start = head.lstrip()
    if start[:1] == b"[":
        return _array(start)
    if start.startswith(_EXPOSITION):
        return _PROMETHEUS
    lines = [line.strip() for line in start.split(b"\n")]
    if len(head) == _HEAD_BYTES and len(lines) > 1:
        lines.pop()
    if start[:1] == b"{" and decode_object(lines[0]) is None:
        found = _document(start, is_one_line=len(lines) == 1)
        if found is not None:
            return found
    seen: list[Found] = []
    for line in [line for line in lines if line][:_MOST_LINES]:
        read = decode_object(line)
        found = None if read is None else _of_record(read[0], head)
        if found is not None:
            seen.append(found)
            # Of events, metadata tells little.
            if found.format != "areal-perf" or b'"M"' not in line:
                break
    if seen:
        return seen[-1]
    return _PROMETHEUS if any(mark in head for mark in _EXPOSITION) else _UNKNOWN


def _of_record(record: Record, head: bytes) -> Found | None:
    """Judge by a record; one that holds the records of a document makes its file a document."""
    if "traceEvents" in record:
        return _chrome(head)
    name = recognise_record(record)
    if name is None:
        return None
    member = _MEMBERS.get(name)
    return Found(name, _TITLES[name], member if member in record else None)


def _document(start: bytes, *, is_one_line: bool) -> Found | None:
    """Judge a document that stands on many lines, or on one that is longer than what was read."""
    read = decode_object(start) or decode_object(mended(start) or b"")
    found = None if read is None else _of_record(read[0], start)
    if found is None or found.is_document or is_one_line:
        return found
    return found._replace(member="")


def _array(start: bytes) -> Found:
    """Judge an array by its first element that is known."""
    text = start.decode("utf-8", "replace")
    window = Window(io.StringIO(text), len(text))
    window.enter("")
    for _ in range(_MOST_LINES):
        raw = window.element()
        whole = raw.encode() if raw is not None else (mended(start) or b"")[1:-1]
        read = decode_object(whole)
        name = None if read is None else recognise_record(read[0])
        if read is not None and name is not None:
            return _chrome(start) if "ph" in read[0] else Found(name, _TITLES[name], "[]")
        if raw is None:
            break
    return _UNKNOWN


def _chrome(head: bytes) -> Found:
    is_areal = _AREAL_BYTES.search(head) and not _OWN_BYTES.search(head)
    name = "areal-perf" if is_areal else "chrome"
    return Found(name, _TITLES[name], "traceEvents")
