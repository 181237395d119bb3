"""A program that sends spans with OpenTelemetry's own SDKs, and prints what it sent.

Run as `python -m tests.integration.otlp_sender KIND ADDRESS TOKEN`; it knows nothing of Rollscope.
Its context comes from the environment, as that of a service would come from a request's headers.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.trace import Status, StatusCode

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

RESOURCE: dict[str, Any] = {"service.name": "agents", "host.name": "box-7", "process.pid": 4711}


def exporter_of(kind: str, address: str, token: str) -> SpanExporter:
    headers = {"authorization": f"Bearer {token}"}
    if kind == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
            OTLPSpanExporter as GrpcExporter,
        )

        # Over TLS it takes the certificate of whom to trust from its own environment variable.
        is_plain = not address.startswith("https://")
        return GrpcExporter(address, insecure=is_plain, headers=tuple(headers.items()))
    endpoint = f"{address}/v1/traces"
    if kind == "json":
        from opentelemetry.exporter.otlp.json.http.trace_exporter import (
            OTLPSpanExporter as JsonExporter,
        )

        return JsonExporter(endpoint, headers=headers)
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint, headers=headers, compression=Compression.Gzip)


def told(span: ReadableSpan) -> dict[str, Any]:
    assert span.context is not None
    return {
        "name": span.name,
        "trace_id": f"{span.context.trace_id:032x}",
        "span_id": f"{span.context.span_id:016x}",
        "parent_id": f"{span.parent.span_id:016x}" if span.parent else None,
        "start_ns": span.start_time,
        "end_ns": span.end_time,
    }


class Telling(SpanExporter):
    """Sends on, and remembers what was sent."""

    def __init__(self, inner: SpanExporter) -> None:
        self.inner = inner
        self.sent: list[dict[str, Any]] = []

    def export(self, spans: Any) -> Any:
        self.sent += [told(span) for span in spans]
        return self.inner.export(spans)

    def shutdown(self) -> None:
        self.inner.shutdown()


def work(tracer: Tracer) -> None:
    """Do what an agent does: one answer, one tool that fails."""
    context = extract({name.lower(): value for name, value in os.environ.items()})
    with tracer.start_as_current_span(
        "invoke_agent solver", context, attributes={"gen_ai.operation.name": "invoke_agent"}
    ):
        with tracer.start_as_current_span("chat policy") as chat:
            chat.set_attribute("gen_ai.operation.name", "chat")
            chat.set_attribute("gen_ai.usage.output_tokens", 41)
            chat.add_event("first token", {"n": 1})
        with tracer.start_as_current_span("execute_tool python") as tool:
            tool.set_attribute("gen_ai.operation.name", "execute_tool")
            tool.set_attribute("gen_ai.tool.name", "python")
            tool.record_exception(ValueError("no such file"))
            tool.set_status(Status(StatusCode.ERROR, "no such file"))


def main() -> None:
    kind, address, token = sys.argv[1:]
    exporter = Telling(exporter_of(kind, address, token))
    provider = TracerProvider(resource=Resource(RESOURCE))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    work(provider.get_tracer("solver"))
    provider.shutdown()
    print(json.dumps(exporter.sent))  # noqa: T201


if __name__ == "__main__":
    main()
