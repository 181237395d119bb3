"""Reading the files of both designs into a run, so that Rollscope's own answers tell of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from rollscope.collect.collector import Collector
from rollscope.integrations.xtuner.otlpfile import EndedSpan, trace_request
from rollscope.otlp.answering import Form, Signal
from rollscope.otlp.forms import OtlpError
from rollscope.otlp.receiver import Receiver

__all__ = ["ImportReport", "read_files"]

_ENDS: Final = ("start", "end", "error")
_AT_ONCE: Final = 500
_PRODUCER_RUN: Final = "producer-trace"
"""Such files name no run."""


@dataclass
class ImportReport:
    """What was found."""

    files: int = 0
    spans: int = 0
    bad: list[str] = field(default_factory=list)
    """File and number of every line that could not be read."""


def read_files(place: Path, runs: Path) -> ImportReport:
    """Read a file, or every file of JSON lines below a folder, into runs.

    Args:
        place: The file or folder.
        runs: Where runs are made: those that the spans name, and one for a producer trace.
    """
    report = ImportReport()
    collector = Collector(runs)
    receiver = Receiver(collector)
    events: list[dict[str, Any]] = []
    try:
        for line, where in _lines(place, report):
            try:
                found = json.loads(line, parse_float=Decimal)
                if "resourceSpans" in found:
                    receiver.take(Signal.TRACES, Form.JSON, line)
                    report.spans += line.count(b'"spanId"')
                elif {"trace_id", "stage", "timestamp_s"} <= found.keys():
                    events.append(found)
            except (ValueError, TypeError, AttributeError, OtlpError):
                report.bad.append(where)
        spans = list(_paired(events))
        report.spans += len(spans)
        for start in range(0, len(spans), _AT_ONCE):
            body = json.dumps(
                trace_request(spans[start : start + _AT_ONCE], {"run.id": _PRODUCER_RUN})
            )
            receiver.take(Signal.TRACES, Form.JSON, body.encode())
    finally:
        collector._close()
    return report


def _lines(place: Path, report: ImportReport) -> Iterator[tuple[bytes, str]]:
    for file in [place] if place.is_file() else sorted(place.rglob("*.jsonl")):
        report.files += 1
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield line, f"{file.name}:{number}"


def _paired(events: list[dict[str, Any]]) -> Iterator[EndedSpan]:
    """Make spans of starts and ends: the last start of a name is the first to end."""
    rollouts: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        rollouts.setdefault(str(event["trace_id"]), []).append(event)
    for key, own in rollouts.items():
        own.sort(key=lambda event: event["timestamp_s"])
        yield from _of_rollout(key, own)


def _of_rollout(key: str, events: list[dict[str, Any]]) -> Iterator[EndedSpan]:
    running: list[EndedSpan] = []
    for number, event in enumerate(events):
        name, _, what = str(event["stage"]).rpartition(".")
        at_ns = int(event["timestamp_s"] * 10**9)
        if what not in _ENDS:
            continue
        if what == "start":
            running.append(_begun(key, number, name, at_ns, event, running))
            continue
        span = next((each for each in reversed(running) if each.name == name), None)
        length_ns = int((event.get("elapsed_s") or 0) * 10**9)
        if span is None:
            span = _begun(key, number, name, at_ns - length_ns, event, running)
        else:
            running.remove(span)
        span.end_ns = span.start_ns + length_ns if length_ns else at_ns
        span.attributes |= _told(event)
        span.error = event.get("error_msg") or "error" if what == "error" else None
        yield span
    yield from running


def _begun(
    key: str,
    number: int,
    name: str,
    at_ns: int,
    event: dict[str, Any],
    running: list[EndedSpan],
) -> EndedSpan:
    made = hashlib.blake2b(f"{key}/{number}".encode(), digest_size=8).hexdigest()
    trace = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
    parent = running[-1].span_id if running else ""
    return EndedSpan(trace, made, parent, name, at_ns, 0, _told(event))


def _told(event: dict[str, Any]) -> dict[str, Any]:
    told = {
        "xtuner.rollout_id": event.get("uid"),
        "xtuner.session_id": event.get("session_uid"),
        "xtuner.task_name": event.get("task_name"),
        "xtuner.status": event.get("status"),
        "rollscope.step": event.get("train_step"),
        "model_step": event.get("model_step"),
        "worker_rank": event.get("worker_rank"),
        "error.message": event.get("error_msg"),
    }
    return {name: item for name, item in told.items() if item is not None}
