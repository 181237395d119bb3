"""One HTTP connection to an endpoint: kept open between requests, made anew when it broke."""

import email.utils
import http.client
import math
import ssl
import time
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from rollscope.otlp.export.sending import Again, ExportFailed

__all__ = ["HttpAnswer", "KeptConnection"]

_MOST_ANSWER: Final = 1024 * 1024
_MOST_AWAY_S: Final = 3600.0


class HttpAnswer(NamedTuple):
    """What came back."""

    status: int
    reason: str
    data: bytes
    """At most a megabyte of it."""
    retry_after: str | None = None
    """The header of that name."""

    @property
    def is_taken(self) -> bool:
        """Whether the request was taken."""
        return self.status in range(200, 300)

    @property
    def retry_after_s(self) -> float | None:
        """For how long to stay away, if it says so: in seconds, or up to a date."""
        if self.retry_after is None:
            return None
        try:
            away_s = float(self.retry_after)
        except ValueError:
            try:
                away_s = email.utils.parsedate_to_datetime(self.retry_after).timestamp()
                away_s -= time.time()
            except ValueError:
                return None
        return min(max(away_s, 0.0), _MOST_AWAY_S) if math.isfinite(away_s) else None


class KeptConnection:
    """Posts to one address."""

    def __init__(self, address: str, timeout_s: float, certificate: str | None = None) -> None:
        """Make ready; nothing is connected yet.

        Args:
            address: With the path; nothing of it but host and port is ever shown.
            timeout_s: For one request.
            certificate: A file with who signed the endpoint's; None: who the system trusts.
        """
        self._address: SplitResult = urlsplit(address)
        self._timeout_s = timeout_s
        self._certificate = certificate
        self._connection: http.client.HTTPConnection | None = None

    @property
    def place(self) -> str:
        """Host and port, to be named in messages."""
        return self._address.netloc.rpartition("@")[2]

    def post(self, body: bytes, headers: Mapping[str, str], *, trust: str = "") -> HttpAnswer:
        """Send a request once, whatever comes back.

        Args:
            body: The request.
            headers: Sent with it.
            trust: What to do where the certificate is not trusted.

        Raises:
            Again: Nothing came back.
            ExportFailed: The endpoint is not who it should be, or a header cannot be sent.
        """
        for name, value in headers.items():
            if not _is_sendable(value):  # said here: the client would repeat it, a token as well
                raise ExportFailed(
                    f"the header {name} for {self.place} holds a line break or another character "
                    "that HTTP cannot carry"
                )
        try:
            return self._post(body, headers)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            why = str(error) or type(error).__name__
            if isinstance(error, ssl.SSLCertVerificationError):
                advice = f"; {trust}" if trust else ""
                raise ExportFailed(f"{self.place} is not trusted ({why}){advice}") from error
            raise Again(f"{self.place} cannot be reached ({why})") from error

    def _post(self, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        if self._connection is not None:
            try:
                return self._ask(self._connection, body, headers)
            except (BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected):
                # The other side may let go of a connection that nobody used for a while.
                self.close()
        self._connection = self._connect()
        return self._ask(self._connection, body, headers)

    def _ask(
        self, connection: http.client.HTTPConnection, body: bytes, headers: Mapping[str, str]
    ) -> HttpAnswer:
        query = f"?{self._address.query}" if self._address.query else ""
        connection.request("POST", (self._address.path or "/") + query, body, dict(headers))
        answer = connection.getresponse()
        data = answer.read(_MOST_ANSWER)
        if not answer.isclosed():
            connection.close()  # longer than any answer should be
        return HttpAnswer(answer.status, answer.reason, data, answer.headers.get("Retry-After"))

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._address.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=self._timeout_s)
        try:
            context = ssl.create_default_context(cafile=self._certificate)
        except OSError as error:
            raise ExportFailed(
                f"the certificate {self._certificate} cannot be read: {error}"
            ) from error
        return http.client.HTTPSConnection(host, port, timeout=self._timeout_s, context=context)

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _is_sendable(value: str) -> bool:
    return not set("\r\n") & set(value) and all(ord(char) < 256 for char in value)
