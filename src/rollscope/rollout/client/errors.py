"""How a server can let a client down.

EndpointError
├── RequestRefused       the server does not want the request (4xx); not tried again
├── EndpointUnavailable  5xx, 429 or no connection, after the last try (also a ConnectionError)
├── EndpointTimeout      a time limit was passed (also a TimeoutError)
├── MalformedAnswer      what came is not what was asked for; quotes its first bytes
│   └── TornStream       a stream ended too early
└── AnswerTooLarge       the answer has more bytes than are allowed
"""

from typing import Any, Final

import msgspec

from rollscope.errors import RollscopeError

__all__ = [
    "AnswerTooLarge",
    "EndpointError",
    "EndpointTimeout",
    "EndpointUnavailable",
    "MalformedAnswer",
    "RequestRefused",
    "TornStream",
    "excerpt",
    "server_message",
]

_EXCERPT_BYTES: Final = 200
_MOST_MESSAGE: Final = 2_000


class EndpointError(RollscopeError):
    """A server let us down; `status` is None where it did not even answer."""

    def __init__(self, message: str, *, status: int | None = None, tries: int = 1) -> None:
        """Keep what the server answered, and how many tries were made."""
        super().__init__(message)
        self.status = status
        self.tries = tries


class RequestRefused(EndpointError):
    """The server does not want the request; the message has its reason."""


class EndpointUnavailable(EndpointError, ConnectionError):
    """The server cannot answer, or cannot be reached, however often it was tried."""


class EndpointTimeout(EndpointError, TimeoutError):
    """A time limit was passed; the message says which."""


class MalformedAnswer(EndpointError):
    """The answer cannot be read; the message quotes its first bytes."""


class TornStream(MalformedAnswer):
    """A stream ended before the answer did."""


class AnswerTooLarge(EndpointError):
    """The answer has more bytes than are allowed."""


def excerpt(body: bytes) -> str:
    """Quote the first bytes of an answer."""
    quoted = repr(body[:_EXCERPT_BYTES])[1:]
    return quoted if len(body) <= _EXCERPT_BYTES else f"{quoted}… ({len(body)} bytes)"


def server_message(body: bytes) -> str:
    """Find what a server says is wrong, in any of the forms that servers use."""
    try:
        said: Any = msgspec.json.decode(body)
    except ValueError:
        return excerpt(body)
    for _ in range(2):
        if isinstance(said, dict):
            said = next((said[key] for key in ("error", "message", "detail") if said.get(key)), "")
    return str(said)[:_MOST_MESSAGE] if said else excerpt(body)
