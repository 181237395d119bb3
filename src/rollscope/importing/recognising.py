"""Telling formats apart, by a table: the first test that holds counts; names are hints only."""

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from rollscope.importing.reading import read_head
from rollscope.importing.sources import Source
from rollscope.importing.values import decode_object

__all__ = ["TESTS", "Found", "Test", "recognise", "recognise_record"]

_HEAD_BYTES: Final = 262_144
_MOST_LINES: Final = 20
_KEY: Final = re.compile(rb'"([^"\\]{1,64})"\s*:')
_AREAL_PROCESS: Final = re.compile(r"(?:^|\] |\[)Rank \d+, Process")
_AREAL_BYTES: Final = re.compile(rb"Rank \d+, Process")
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
    """Of a document, the member whose elements are its records; else None."""

    @property
    def is_document(self) -> bool:
        """Whether its records are the elements of one document, not lines."""
        return self.member is not None


def _is_otlp(record: Record) -> bool:
    return not record.keys().isdisjoint(("resourceSpans", "resourceMetrics", "resourceLogs"))


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
_MEMBERS: Final = {"slime": "rows", "jaeger": "data"}
"""Where the records of the formats that are documents stand."""


def recognise_record(record: Record) -> str | None:
    """Name the format of one record; None if no test holds."""
    return next((test.format for test in TESTS if test.holds(record)), None)


def recognise(source: Source) -> Found:
    """Say what a file is, by its first lines."""
    head = read_head(source, _HEAD_BYTES)
    start = head.lstrip()
    if start[:1] == b"[":
        return _chrome(head) if b'"ph"' in head else _UNKNOWN
    lines = head.split(b"\n")
    if len(head) == _HEAD_BYTES and len(lines) > 1:
        lines.pop()
    seen: list[str] = []
    # Which line is whole, of those that may be: metadata first tells little.
    for line in [line.strip() for line in lines if line.strip()][:_MOST_LINES]:
        read = decode_object(line)
        if read is not None and "traceEvents" in read[0]:
            return _chrome(head)
        name = None if read is None else recognise_record(read[0])
        if name is not None:
            seen.append(name)
            if name != "areal-perf" or b'"M"' not in line:
                break
    if seen:
        return Found(seen[-1], _TITLES[seen[-1]], _MEMBERS.get(seen[-1]))
    return _by_keys(head, start)


def _by_keys(head: bytes, start: bytes) -> Found:
    """Judge a document that does not fit into what was looked at, or text that is no JSON."""
    if b"# TYPE " in head or b"# HELP " in head:
        return Found("prometheus", "Prometheus' text")
    if start[:1] != b"{":
        return _UNKNOWN
    whole = decode_object(head)
    record = (
        whole[0]
        if whole
        else dict.fromkeys((key.decode("utf-8", "replace") for key in _KEY.findall(head)), None)
    )
    if "traceEvents" in record:
        return _chrome(head)
    name = recognise_record(record)
    return (
        _UNKNOWN if name is None else Found(name, _TITLES[name], _MEMBERS.get(name, "traceEvents"))
    )


def _chrome(head: bytes) -> Found:
    name = "areal-perf" if _AREAL_BYTES.search(head) else "chrome"
    return Found(name, _TITLES[name], "traceEvents")
