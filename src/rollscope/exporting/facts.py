"""What a viewer shows of a span beside its name and times."""

from typing import Any, Final

import msgspec

from rollscope.exporting.rows import TraceRow

__all__ = ["categories_of", "facts_of", "hex_id"]

_NAMES: Final = {
    "status": "status",
    "outcome": "outcome",
    "reason": "reason",
    "step": "step",
    "consumed_step": "consumed_step",
    "version_start": "version_start",
    "version_end": "version_end",
    "task_key": "task_key",
    "family": "family",
    "sample": "sample",
    "group_key": "group",
    "lane": "lane",
    "replica": "replica",
    "attempt": "attempt",
    "turns": "turns",
    "tokens_in": "tokens_in",
    "tokens_out": "tokens_out",
    "reward": "reward",
}
"""Columns, and what they are called outside the store."""
_SHOWN: Final = tuple((TraceRow._fields.index(column), called) for column, called in _NAMES.items())
_FINE: Final = "ok"
_RESERVED: Final = frozenset(
    (
        *_NAMES.values(),
        *("span_id", "parent_id", "session_id", "trace_id", "process"),
        *("open", "clock_suspect", "recorded_end_ns", "consumed_ns"),
    )
)
_PREFIX: Final = "attr."
_read_attrs = msgspec.json.Decoder(dict[str, Any]).decode


def hex_id(number: int) -> str:
    """Write an id as all of them are written: sixteen digits."""
    return f"{number:016x}"


def facts_of(row: TraceRow) -> dict[str, Any]:
    """Give what is known of a span, and its attributes; one with a name of ours gets `attr.`."""
    facts: dict[str, Any] = {called: row[at] for at, called in _SHOWN if row[at] is not None}
    if row.status == _FINE:
        del facts["status"]
    facts["span_id"] = hex_id(row.span_id)
    if row.parent_id is not None:
        facts["parent_id"] = hex_id(row.parent_id)
    if row.session_id is not None:
        facts["session_id"] = hex_id(row.session_id)
    if row.end_ns is None:
        facts["open"] = True
    elif row.recorded_end_ns != row.end_ns:
        facts["clock_suspect"] = True
        facts["recorded_end_ns"] = row.recorded_end_ns
    if row.attrs and row.attrs != "{}":
        for name, value in _read_attrs(row.attrs).items():
            is_taken = name in _RESERVED or name.startswith(_PREFIX)
            facts[f"{_PREFIX}{name}" if is_taken else name] = value
    return facts


def categories_of(row: TraceRow) -> tuple[str, ...]:
    """Give the kind of a span, and what it spends its time on if it says."""
    return (row.kind,) if row.category is None else (row.kind, row.category)
