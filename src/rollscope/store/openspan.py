"""Spans that have started and not ended: few, so kept as objects, and what becomes of them."""

from typing import Any, Final

import msgspec
import pyarrow as pa

from rollscope.errors import FrameError
from rollscope.model.kinds import WHAT_OF_CODE, Status
from rollscope.model.scope import ScopeRow
from rollscope.store.attributes import PROMOTED, family_of, json_column, read_columns, whole_number
from rollscope.store.rawrows import read_attrs
from rollscope.store.schema import SPANS

__all__ = ["CAUSE_COLUMNS", "Fate", "OpenSpan", "open_causes", "open_table"]

CAUSE_COLUMNS: Final = ["span_id", "parent_id", "process", "start_ns", "end_ns", "parent_path"]
"""What tells causes from effects."""


class OpenSpan(msgspec.Struct):
    """A span whose end has not been seen."""

    what: int
    name: str
    span_id: int
    parent_id: int
    start_ns: int
    scope: ScopeRow
    attrs: bytes
    """As the frame held them."""
    fields: dict[str, Any]
    path: str
    parent_path: str
    missed_ns: int = 0
    """When a heart-beat first left it out; left out twice, it is taken for lost."""


class Fate(msgspec.Struct):
    """How a span without an end is to be shown."""

    status: Status
    end_ns: int | None
    reason: str | None
    overlap_ns: int


def open_table(processes: list[int], spans: list[OpenSpan], fates: list[Fate]) -> pa.Table:
    """Give the rows of spans without an end.

    Args:
        processes: Who recorded each.
        spans: The spans.
        fates: How each is to be shown.
    """
    kinds = [WHAT_OF_CODE[span.what] for span in spans]
    scopes = [span.scope for span in spans]
    attrs = [_read_attrs(span.attrs) for span in spans]
    columns: dict[str, Any] = {
        "process": processes,
        "trace_id": [scope[0] for scope in scopes],
        "span_id": [span.span_id for span in spans],
        "parent_id": [span.parent_id or None for span in spans],
        "session_id": [scope[4] for scope in scopes],
        "kind": [what.kind for what in kinds],
        "name": [span.name for span in spans],
        "category": [what.category for what in kinds],
        "start_ns": [span.start_ns for span in spans],
        "end_ns": [fate.end_ns for fate in fates],
        "status": [fate.status for fate in fates],
        "reason": [fate.reason for fate in fates],
        "outcome": [None] * len(spans),
        "step": [whole_number(scope[1]) for scope in scopes],
        "version_start": [whole_number(span.fields.get("version_start")) for span in spans],
        "version_end": [whole_number(span.fields.get("version_end")) for span in spans],
        "task_key": [scope[2] for scope in scopes],
        "sample": [whole_number(scope[5]) for scope in scopes],
        "group_key": [scope[3] for scope in scopes],
        "lane": [_text(span.fields.get("lane")) for span in spans],
        "path": [span.path for span in spans],
        "parent_path": [span.parent_path for span in spans],
        "overlap_ns": [fate.overlap_ns for fate in fates],
    }
    arrays = {name: _column(values, SPANS.field(name).type) for name, values in columns.items()}
    arrays["attrs"] = json_column(attrs)
    arrays |= read_columns(attrs, PROMOTED, SPANS)
    families = [family_of(scope[2]) for scope in scopes]
    own = arrays["family"].to_pylist()
    merged = [mine or other for mine, other in zip(own, families, strict=True)]
    arrays["family"] = _column(merged, SPANS.field("family").type)
    return pa.table([arrays[name] for name in SPANS.names], schema=SPANS)


def open_causes(process: int, spans: list[OpenSpan], end_ns: int | None) -> pa.Table:
    """Give of spans without an end only what tells causes from effects: it is asked for often.

    Args:
        process: Who recorded them.
        spans: The spans.
        end_ns: When they are taken to have ended, if they are.
    """
    columns: dict[str, list[Any]] = {
        "span_id": [span.span_id for span in spans],
        "parent_id": [span.parent_id or None for span in spans],
        "process": [process] * len(spans),
        "start_ns": [span.start_ns for span in spans],
        "end_ns": [None if end_ns is None else max(end_ns, span.start_ns) for span in spans],
        "parent_path": [span.parent_path for span in spans],
    }
    types = [SPANS.field(name) for name in CAUSE_COLUMNS]
    return pa.table(
        [_column(columns[field.name], field.type) for field in types], schema=pa.schema(types)
    )


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return (
            pa.array([None if v is None else str(v) for v in values])
            .cast(pa.string())
            .dictionary_encode()
        )
    return pa.array(values, kind)


def _read_attrs(raw: bytes) -> dict[str, Any]:
    try:
        return read_attrs([raw])[0]
    except FrameError:  # told when the span ends; until then it is shown without
        return {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
