"""Collectors made of OpenTelemetry's own messages: over HTTP and gRPC, and able to refuse."""

from __future__ import annotations

import gzip
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc  # type: ignore[import-untyped]
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

__all__ = ["Reply", "Sink", "grpc_sink", "http_sink"]

TLS = Path(__file__).parent / "tls"


class Reply(NamedTuple):
    """What a sink answers instead of taking a request."""

    status: int
    headers: dict[str, str]
    body: bytes = b""


class Sink:
    """What came, and what is to be answered next."""

    def __init__(self) -> None:
        self.address = ""
        self.requests: list[ExportTraceServiceRequest] = []
        self.metric_requests: list[ExportMetricsServiceRequest] = []
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.connections: set[Any] = set()
        self.replies: list[Reply | None] = []
        """For the next requests, in turn; None takes one."""
        self.most_spans = 1_000_000
        self.came = threading.Condition()

    def take(self, path: str, kind: str, body: bytes) -> None:
        with self.came:
            self.raw.append(body)
            if kind == "application/json":
                pass
            elif path.endswith("metrics"):
                self.metric_requests.append(ExportMetricsServiceRequest.FromString(body))
            else:
                self.requests.append(ExportTraceServiceRequest.FromString(body))
            self.came.notify_all()

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def metrics(self) -> list[Metric]:
        return [
            metric
            for request in self.metric_requests
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]

    def wait_for(self, count: int) -> None:
        """Wait until so many spans have come."""
        with self.came:
            assert self.came.wait_for(lambda: len(self.spans) >= count, 30)


@contextmanager
def http_sink(*, is_tls: bool = False, port: int = 0) -> Iterator[Sink]:
    """Run a collector on a port of its own."""
    sink = Sink()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            sink.headers.append(dict(self.headers))
            sink.connections.add(self.client_address)
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            reply = sink.replies.pop(0) if sink.replies else None
            if reply is None and body.count(b"rollscope.kind") > sink.most_spans:
                reply = Reply(413, {})
            if reply is None or reply.status == 200:
                sink.take(self.path, self.headers["Content-Type"], body)
            self.send_response(reply.status if reply else 200)
            for name, value in (reply.headers if reply else {}).items():
                self.send_header(name, value)
            said = reply.body if reply else b""
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Say nothing of clients that go away."""

    server = Server(("127.0.0.1", port), Handler)
    if is_tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    sink.address = f"http{'s' if is_tls else ''}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield sink
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def grpc_sink() -> Iterator[Sink]:
    """Run a collector that speaks gRPC."""
    sink = Sink()

    class Service(TraceServiceServicer):
        def Export(
            self, request: ExportTraceServiceRequest, context: Any
        ) -> ExportTraceServiceResponse:
            sink.headers.append(dict(context.invocation_metadata()))
            reply = sink.replies.pop(0) if sink.replies else None
            if reply is not None:
                context.abort(grpc.StatusCode.UNAVAILABLE, "come back later")
            sink.take("traces", "application/x-protobuf", request.SerializeToString())
            return ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(Service(), server)  # type: ignore[no-untyped-call]
    sink.address = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield sink
    finally:
        server.stop(None).wait()
