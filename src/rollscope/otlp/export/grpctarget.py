"""OTLP over gRPC, where the `[grpc]` extra is installed."""

import re
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from urllib.parse import urlsplit

from rollscope.errors import MissingExtra
from rollscope.otlp.answering import Form, Signal
from rollscope.otlp.export.replies import read_delivered, read_retry_info
from rollscope.otlp.export.sending import Again, Delivered, ExportFailed, TooLarge
from rollscope.otlp.export.settings import ExportSettings

__all__ = ["GrpcTarget"]

_METHODS: Final = {
    Signal.TRACES: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    Signal.METRICS: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}
_AGAIN: Final = frozenset(
    {"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"}
)
_FULL: Final = "RESOURCE_EXHAUSTED"
_LARGER: Final = re.compile(r"larger than max|too large", re.IGNORECASE)
_PORT: Final = 4317


class GrpcTarget:
    """An endpoint that is spoken to over gRPC."""

    def __init__(self, settings: ExportSettings) -> None:
        """Make ready; nothing is connected yet.

        Raises:
            MissingExtra: gRPC is not installed.
        """
        try:
            import grpc  # type: ignore[import-untyped]
        except ImportError as error:
            raise MissingExtra(
                "OTLP over gRPC needs grpcio; install it with: pip install 'rollscope[grpc]', or "
                "use --protocol http/protobuf"
            ) from error
        self._grpc: ModuleType = grpc
        self._settings = settings
        self._metadata = [(name.lower(), value) for name, value in settings.headers.items()]
        self._channels: dict[str, Any] = {}

    def send(self, signal: Signal, body: bytes) -> Delivered:
        """Send a request once."""
        address = self._settings.endpoints[signal]
        if address not in self._channels:
            self._channels[address] = self._connect(address)
        call = self._channels[address].unary_unary(_METHODS[signal])
        try:
            answer: bytes = call(body, timeout=self._settings.timeout_s, metadata=self._metadata)
        except self._grpc.RpcError as error:
            raise self._meaning(urlsplit(address).netloc, error) from error
        return read_delivered(Form.PROTOBUF, answer)

    def _connect(self, address: str) -> Any:  # noqa: ANN401  (grpc has no types)
        grpc, parts = self._grpc, urlsplit(address)
        place = f"{parts.hostname}:{parts.port or _PORT}"
        packing = grpc.Compression.NoCompression
        if self._settings.compression == "gzip":
            packing = grpc.Compression.Gzip
        if parts.scheme == "http":
            return grpc.insecure_channel(place, compression=packing)
        try:
            file = self._settings.certificate
            roots = None if file is None else Path(file).read_bytes()
        except OSError as error:
            raise ExportFailed(f"the certificate cannot be read: {error}") from error
        return grpc.secure_channel(place, grpc.ssl_channel_credentials(roots), compression=packing)

    def _meaning(self, place: str, error: Any) -> Exception:  # noqa: ANN401
        """Say what an error of gRPC asks for."""
        name, details = error.code().name, error.details() or ""
        said = f"{place} answers {name} ({details})"
        if name == _FULL and _LARGER.search(details):
            return TooLarge(said)
        if name in _AGAIN or (name == _FULL and self._retry_after(error) is not None):
            return Again(said, self._retry_after(error))
        advice = "see what the endpoint logs about it"
        if name in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
            advice = "give a token, as --header 'authorization=Bearer ...'"
        elif name == "UNIMPLEMENTED":
            advice = "see that OTLP over gRPC is spoken there (often port 4317)"
        return ExportFailed(f"{said}; {advice}")

    def _retry_after(self, error: Any) -> float | None:  # noqa: ANN401
        """Read for how long to stay away, from the details that gRPC sends beside an error."""
        for key, value in error.trailing_metadata() or ():
            if key == "grpc-status-details-bin" and (found := read_retry_info(value)) is not None:
                return found
        return None

    def close(self) -> None:
        """Let go of the connections."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()
