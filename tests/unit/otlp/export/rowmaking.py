"""Rows as the store gives them, with only what a test is about."""

from __future__ import annotations

from typing import Any

from rollscope.otlp.export.spans import ExportRow
from rollscope.otlp.forms import Sender

__all__ = ["SENDER", "TRACE", "row_of"]

TRACE = bytes(range(16))
SENDER = Sender({"service.name": "rollout"}, key="1")


def row_of(**fields: Any) -> ExportRow:
    """Give a phase of a session, but for what is said."""
    plain: dict[str, Any] = dict.fromkeys(ExportRow._fields)
    plain |= {
        "process": 1,
        "trace_id": TRACE,
        "span_id": 3,
        "parent_id": 2,
        "session_id": 2,
        "kind": "phase",
        "name": "generate",
        "start_ns": 1_000,
        "end_ns": 2_000,
        "status": "ok",
        "attrs": "{}",
    }
    return ExportRow(**{**plain, **fields})
