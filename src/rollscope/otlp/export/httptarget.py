"""OTLP over HTTP: one connection that is kept, in protobuf or JSON."""

import gzip
from typing import Final

from rollscope._version import __version__
from rollscope.otlp.answering import Form, Signal
from rollscope.otlp.export.connection import KeptConnection
from rollscope.otlp.export.replies import read_delivered, read_words
from rollscope.otlp.export.sending import Again, Delivered, ExportFailed, TooLarge
from rollscope.otlp.export.settings import ExportSettings

__all__ = ["HttpTarget"]

_AGAIN: Final = frozenset({408, 429, 502, 503, 504})
_TOO_LARGE: Final = 413
_TRUST: Final = "give --certificate FILE, or OTEL_EXPORTER_OTLP_CERTIFICATE"
_ADVICE: Final = {
    400: "the endpoint cannot read what it is sent; see that it takes OTLP in this form",
    401: "give a token, as --header 'Authorization=Bearer ...' or in OTEL_EXPORTER_OTLP_HEADERS",
    403: "see that the token may write there",
    404: "see that the address is right; an address for all signals has no path of a signal",
    405: "see that the address is right; an address for all signals has no path of a signal",
    415: "try another --protocol, or --compression none",
}


class HttpTarget:
    """An endpoint that is spoken to over HTTP."""

    def __init__(self, settings: ExportSettings) -> None:
        self._settings = settings
        self._form = Form.JSON if settings.protocol == "http/json" else Form.PROTOBUF
        self._connections: dict[Signal, KeptConnection] = {}

    def send(self, signal: Signal, body: bytes) -> Delivered:
        """Send a request once."""
        connection = self._connection(signal)
        headers = {
            "Content-Type": str(self._form),
            "User-Agent": f"rollscope-otlp-exporter/{__version__}",
        }
        if self._settings.compression == "gzip":
            body = gzip.compress(body, 1, mtime=0)
            headers["Content-Encoding"] = "gzip"
        answer = connection.post(body, headers | dict(self._settings.headers), trust=_TRUST)
        if answer.is_taken:
            return read_delivered(self._form, answer.data)
        status = answer.status
        said = f"{connection.place} answers {status} {answer.reason}{read_words(answer.data)}"
        if status in _AGAIN:
            raise Again(said, answer.retry_after_s)
        if status == _TOO_LARGE:
            raise TooLarge(said)
        raise ExportFailed(f"{said}; {_ADVICE.get(status, 'see what the endpoint logs about it')}")

    def _connection(self, signal: Signal) -> KeptConnection:
        known = self._connections.get(signal)
        if known is None:
            settings = self._settings
            address = settings.endpoints[signal]
            known = KeptConnection(address, settings.timeout_s, settings.certificate)
            self._connections[signal] = known
        return known

    def close(self) -> None:
        """Let go of the connections."""
        for connection in self._connections.values():
            connection.close()
