"""OTLP over HTTP: one connection that is kept, in protobuf or JSON."""

import email.utils
import gzip
import http.client
import ssl
import time
from typing import Final
from urllib.parse import SplitResult, urlsplit

from rollscope._version import __version__
from rollscope.otlp.answering import Form, Signal
from rollscope.otlp.export.replies import read_delivered, read_words
from rollscope.otlp.export.sending import Again, Delivered, ExportFailed, TooLarge
from rollscope.otlp.export.settings import ExportSettings

__all__ = ["HttpTarget"]

_AGAIN: Final = frozenset({408, 429, 502, 503, 504})
_TOO_LARGE: Final = 413
_MOST_ANSWER: Final = 1024 * 1024
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
        self._connections: dict[Signal, http.client.HTTPConnection] = {}

    def send(self, signal: Signal, body: bytes) -> Delivered:
        """Send a request once."""
        address = urlsplit(self._settings.endpoints[signal])
        try:
            answer, data = self._ask(signal, address, body)
        except (OSError, http.client.HTTPException) as error:
            self._forget(signal)
            why = str(error) or type(error).__name__
            if isinstance(error, ssl.SSLCertVerificationError):
                raise ExportFailed(
                    f"{address.netloc} is not trusted ({why}); give --certificate FILE, or "
                    "OTEL_EXPORTER_OTLP_CERTIFICATE"
                ) from error
            raise Again(f"{address.netloc} cannot be reached ({why})") from error
        status = answer.status
        if status in range(200, 300):
            return read_delivered(self._form, data)
        said = f"{address.netloc} answers {status} {answer.reason}{read_words(data)}"
        if status in _AGAIN:
            raise Again(said, _retry_after(answer.headers.get("Retry-After")))
        if status == _TOO_LARGE:
            raise TooLarge(said)
        raise ExportFailed(f"{said}; {_ADVICE.get(status, 'see what the endpoint logs about it')}")

    def _ask(
        self, signal: Signal, address: SplitResult, body: bytes
    ) -> tuple[http.client.HTTPResponse, bytes]:
        headers = {
            "Content-Type": str(self._form),
            "User-Agent": f"rollscope-otlp-exporter/{__version__}",
        }
        if self._settings.compression == "gzip":
            body = gzip.compress(body, 1, mtime=0)
            headers["Content-Encoding"] = "gzip"
        path = (address.path or "/") + (f"?{address.query}" if address.query else "")
        headers |= self._settings.headers
        connection = self._connections.get(signal)
        if connection is not None:
            try:
                return _post(connection, path, body, headers)
            except (BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected):
                # The other side may let go of a connection that nobody used for a while.
                self._forget(signal)
        connection = self._connections[signal] = self._connect(address)
        return _post(connection, path, body, headers)

    def _connect(self, address: SplitResult) -> http.client.HTTPConnection:
        host, port = address.hostname or "", address.port
        timeout = self._settings.timeout_s
        if address.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=timeout)
        try:
            context = ssl.create_default_context(cafile=self._settings.certificate)
        except OSError as error:
            raise ExportFailed(
                f"the certificate {self._settings.certificate} cannot be read: {error}"
            ) from error
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)

    def _forget(self, signal: Signal) -> None:
        connection = self._connections.pop(signal, None)
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Let go of the connections."""
        for signal in list(self._connections):
            self._forget(signal)


def _post(
    connection: http.client.HTTPConnection, path: str, body: bytes, headers: dict[str, str]
) -> tuple[http.client.HTTPResponse, bytes]:
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    data = answer.read(_MOST_ANSWER)
    if not answer.isclosed():
        connection.close()  # longer than any answer should be
    return answer, data


def _retry_after(text: str | None) -> float | None:
    """Read for how long to stay away: seconds, or a date."""
    if text is None:
        return None
    try:
        return max(float(text), 0.0)
    except ValueError:
        pass
    try:
        return max(email.utils.parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except ValueError:
        return None
