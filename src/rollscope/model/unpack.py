"""From batches to records: the one place where columns, codes and clocks are resolved row by row.

Readers that work on whole columns do not come through here.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from rollscope.errors import FrameError
from rollscope.model.batch import (
    Batch,
    ProcessHeader,
    SpanColumns,
    read_index_column,
    read_number_column,
)
from rollscope.model.clockline import ClockMap
from rollscope.model.kinds import STATUS_OF_CODE, WHAT_OF_CODE, Outcome
from rollscope.model.records import (
    DropRecord,
    EndRecord,
    EventRecord,
    FactRecord,
    HeartbeatRecord,
    MetricRecord,
    PayloadRecord,
    ProcessRecord,
    Record,
    SpanRecord,
    StackRecord,
)
from rollscope.model.refs import span_hex, trace_hex
from rollscope.model.scope import ScopeRow
from rollscope.model.undecodable import UNDECODABLE

__all__ = ["batch_records"]

_attrs_decoder = msgspec.msgpack.Decoder(list[dict[str, Any]] | None)


def batch_records(batch: Batch, clock: ClockMap) -> Iterator[Record]:
    """Turn a batch into records, in the order in which a reader wants them.

    `clock` holds the process's earlier clock lines and is told of this batch's.

    Raises:
        FrameError: Its spans cannot be read; no record of them has been given then.
    """
    clock.add(batch.clock)
    process = batch.process.hex()
    now_ns = clock.wall_at(batch.mono_ns)
    if batch.header is not None:
        yield _process_record(process, batch.header, batch.schema)
    if batch.spans is not None:
        yield from _span_records(process, batch.spans, clock)
    for fact in batch.facts:
        yield FactRecord(
            process=process,
            trace_id=trace_hex(fact.trace_id),
            span_id=span_hex(fact.span_id),
            time_ns=clock.wall_at(fact.mono_ns),
            facts=fact.facts,
        )
    for metric in batch.metrics:
        values = msgspec.structs.asdict(metric)
        time_ns = clock.wall_at(values.pop("mono_ns") or batch.mono_ns)
        yield MetricRecord(process=process, time_ns=time_ns, **values)
    for payload in batch.payloads:
        yield PayloadRecord(
            process=process,
            trace_id=trace_hex(payload.trace_id),
            span_id=span_hex(payload.span_id),
            time_ns=clock.wall_at(payload.mono_ns),
            name=payload.name,
            text=payload.text,
            cut=payload.cut,
        )
    for stack in batch.stacks:
        yield StackRecord(
            process=process,
            span_id=span_hex(stack.span_id),
            time_ns=clock.wall_at(stack.mono_ns),
            task=stack.task,
            frames=stack.frames,
        )
    if batch.heartbeat is not None:
        ids = batch.heartbeat.open_ids
        listed = None if ids is None else [span_hex(i) for i in read_number_column(ids)]
        yield HeartbeatRecord(process=process, time_ns=now_ns, open_spans=listed)
    if batch.drops:
        yield DropRecord(process=process, time_ns=now_ns, counts=batch.drops)
    if batch.end is not None:
        yield EndRecord(process=process, time_ns=now_ns, why=batch.end)


def _process_record(process: str, header: ProcessHeader, schema: int) -> ProcessRecord:
    values = msgspec.structs.asdict(header)
    values["parent"] = None if header.parent is None else header.parent.hex()
    return ProcessRecord(process=process, schema=schema, **values)


def _span_records(
    process: str, columns: SpanColumns, clock: ClockMap
) -> Iterator[SpanRecord | EventRecord]:
    rows = len(columns.what)
    names = read_index_column(columns.name, rows)
    scopes = read_index_column(columns.scope, rows)
    span_ids = read_number_column(columns.span_id)
    parent_ids = read_number_column(columns.parent_id)
    starts = read_number_column(columns.start_ns)
    ends = read_number_column(columns.end_ns)
    attrs = _read_attrs(columns.attrs, rows)
    outcomes = {row: _read_outcome(fields) for row, fields in columns.fields.items()}
    scope_texts = [_scope_text(scope) for scope in columns.scopes]
    for row in range(rows):
        kind, category = WHAT_OF_CODE[columns.what[row]]
        scope = scope_texts[scopes[row]]
        start_ns = clock.wall_at(starts[row])
        parent_id = span_hex(parent_ids[row]) if parent_ids[row] else None
        if kind is None:
            yield EventRecord(
                process=process,
                trace_id=scope["trace_id"],
                event_id=span_hex(span_ids[row]),
                parent_id=parent_id,
                name=columns.names[names[row]],
                time_ns=start_ns,
                step=scope["step"],
                session_id=scope["session_id"],
                attrs=attrs[row],
            )
            continue
        fields = columns.fields.get(row, {})
        yield SpanRecord(
            process=process,
            span_id=span_hex(span_ids[row]),
            parent_id=parent_id,
            kind=kind,
            name=columns.names[names[row]],
            category=category,
            start_ns=start_ns,
            # The length is the monotonic clock's: a clock line may start inside the span.
            end_ns=start_ns + (ends[row] - starts[row]) if ends[row] else None,
            status=STATUS_OF_CODE[columns.status[row]],
            reason=fields.get("reason"),
            outcome=outcomes.get(row),
            version_start=fields.get("version_start"),
            version_end=fields.get("version_end"),
            lane=fields.get("lane"),
            attrs=attrs[row],
            **scope,
        )


def _read_attrs(column: msgspec.Raw, rows: int) -> list[dict[str, Any]]:
    try:
        attrs: list[dict[str, Any]] | None = _attrs_decoder.decode(column)
    except UNDECODABLE as error:
        raise FrameError(f"a frame holds attributes that cannot be read: {error}") from None
    if attrs is None:
        return [{} for _ in range(rows)]
    if len(attrs) != rows:
        raise FrameError(f"a frame holds the attributes of {len(attrs)} rows, not {rows}")
    return attrs


def _read_outcome(fields: dict[str, Any]) -> Outcome | None:
    outcome = fields.get("outcome")
    try:
        return None if outcome is None else Outcome(outcome)
    except ValueError:
        raise FrameError(f"a frame holds the unknown outcome {outcome!r:.100}") from None


def _scope_text(scope: ScopeRow) -> dict[str, Any]:
    trace_id, step, task_key, group, session_id, sample = scope
    return {
        "trace_id": trace_hex(trace_id),
        "step": step,
        "task_key": task_key,
        "group": group,
        "session_id": None if session_id is None else span_hex(session_id),
        "sample": sample,
    }
