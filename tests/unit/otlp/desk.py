"""A receiver whose logs are kept in memory, and requests made by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from rollscope.errors import NoRoom, WrongRun
from rollscope.model.batch import SCHEMA_VERSION, Batch, Payload, decode_batch, encode_batch
from rollscope.model.clockline import ClockLine, ClockMap
from rollscope.model.records import EventRecord, FactRecord, MetricRecord, Record, SpanRecord
from rollscope.model.unpack import batch_records
from rollscope.otlp.answering import Form, Signal
from rollscope.otlp.receiver import Receiver

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

    from rollscope.model.batch import ProcessHeader

NOW_NS = 1_794_725_158_000_000_000
TRACE = bytes.fromhex("14f4733f3e7d1bfbc7a2ea20b2f14c94")


class MemoryLog:
    """Takes what an authored log would write."""

    def __init__(self, header: ProcessHeader, process: bytes) -> None:
        self.header = header
        self.process = process
        self.batches: list[Batch] = []
        self.payloads: list[Payload] = []
        self.drops: dict[str, int] = {}

    def write(self, *, at_ns: int, payloads: Any = (), drops: Any = None, **content: Any) -> None:
        self.payloads += payloads
        self.drops |= drops or {}
        number = len(self.batches)
        batch = Batch(SCHEMA_VERSION, self.process, number, at_ns, ClockLine(0, 0), **content)
        self.batches.append(decode_batch(encode_batch(batch)))  # as a reader would see it


class Desk:
    """Takes requests, and shows what was written of them."""

    def __init__(self, *, only_run: str | None = None, **options: Any) -> None:
        self.only_run = only_run
        self.logs: dict[tuple[str, str], MemoryLog] = {}
        self.is_full = False
        self.now_ns = NOW_NS
        authors: Any = self
        self.receiver = Receiver(authors, only_run=only_run, now_ns=lambda: self.now_ns, **options)

    def author(self, run: str, key: str, header: ProcessHeader) -> MemoryLog:
        if self.is_full:
            raise NoRoom("the disk is full")
        if self.only_run not in (None, run):
            raise WrongRun("another run")
        number = len(self.logs).to_bytes(8)
        return self.logs.setdefault((run, key), MemoryLog(header, number))

    def take(self, *spans: Span, **resource: Any) -> bytes:
        body = trace_request(*spans, **resource).SerializeToString()
        return self.receiver.take(Signal.TRACES, Form.PROTOBUF, body)

    def records(self, run: str | None = None) -> list[Record]:
        return [
            record
            for (name, _), log in self.logs.items()
            for batch in log.batches
            for record in batch_records(batch, ClockMap())
            if run in (None, name)
        ]

    def spans(self, run: str | None = None) -> list[SpanRecord]:
        return [record for record in self.records(run) if isinstance(record, SpanRecord)]

    def named(self, name: str) -> SpanRecord:
        """Give the last record of the span of a name."""
        return [span for span in self.spans() if span.name == name][-1]

    def events(self) -> list[EventRecord]:
        return [record for record in self.records() if isinstance(record, EventRecord)]

    def facts(self) -> list[FactRecord]:
        return [record for record in self.records() if isinstance(record, FactRecord)]

    def metrics(self) -> list[MetricRecord]:
        return [record for record in self.records() if isinstance(record, MetricRecord)]


def any_value(value: Any) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case bytes():
            return AnyValue(bytes_value=value)
        case list():
            made = AnyValue()
            made.array_value.values.extend([any_value(item) for item in value])
            made.array_value.SetInParent()
            return made
        case _:
            return AnyValue(string_value=value)


def pairs(attrs: dict[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=any_value(value)) for key, value in attrs.items()]


def span(name: str, number: int, parent: int = 0, **options: Any) -> Span:
    """Make a span; its number gives its id, and its place in time unless it says otherwise."""
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as Made

    start = options.pop("start", NOW_NS - 10_000_000_000 + number)
    end = options.pop("end", start + 1_000_000_000)
    attrs = options.pop("attrs", {})
    return Made(
        name=name,
        trace_id=options.pop("trace", TRACE),
        span_id=number.to_bytes(8),
        parent_span_id=parent.to_bytes(8) if parent else b"",
        start_time_unix_nano=start,
        end_time_unix_nano=end,
        attributes=pairs(attrs),
        **options,
    )


def trace_request(*spans: Span, **resource: Any) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    owned = request.resource_spans.add()
    named = {"service_name": "agents", **resource}
    attrs = {key.replace("_", "."): value for key, value in named.items()}
    owned.resource.attributes.extend(pairs(attrs))
    part = owned.scope_spans.add()
    part.scope.name = str(resource.get("scope", "tests"))
    part.spans.extend(spans)
    return request


def metric_request(**resource: Any) -> tuple[ExportMetricsServiceRequest, Any]:
    """Make an empty request, and give the list that its metrics go into."""
    request = ExportMetricsServiceRequest()
    owned = request.resource_metrics.add()
    owned.resource.attributes.extend(pairs({"service.name": "engine", **resource}))
    return request, owned.scope_metrics.add().metrics
