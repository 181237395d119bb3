"""A program that records with Logfire, which tells of spans when they start.

Run as `python -m tests.integration.otlp_logfire ADDRESS TOKEN`: opens two spans, prints their ids,
and ends them when its input ends.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import logfire
from logfire.testing import TestExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SimpleSpanProcessor


class Forwarding(TestExporter):
    """Logfire hands pending spans to exporters of its own kinds only."""

    def __init__(self, inner: OTLPSpanExporter) -> None:
        super().__init__()
        self.inner = inner

    def export(self, spans: Any) -> Any:
        return self.inner.export(spans)


def main() -> None:
    address, token = sys.argv[1:]
    headers = {"authorization": f"Bearer {token}"}
    exporter = Forwarding(OTLPSpanExporter(f"{address}/v1/traces", headers=headers))
    logfire.configure(
        send_to_logfire=False,
        console=False,
        service_name="chatty",
        inspect_arguments=False,
        additional_span_processors=[SimpleSpanProcessor(exporter)],
    )
    with logfire.span("episode"), logfire.span("think") as inner:
        contexts = [inner.parent, inner.context]
        print(json.dumps([f"{context.span_id:016x}" for context in contexts if context]))  # noqa: T201
        sys.stdout.flush()
        sys.stdin.read()
    logfire.shutdown()


if __name__ == "__main__":
    main()
