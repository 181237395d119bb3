"""Finding a running server, and talking to its API with Python's own client."""

import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

import msgspec

from rollscope.config import resolve
from rollscope.errors import CommandError
from rollscope.model.undecodable import UNDECODABLE

if TYPE_CHECKING:
    from urllib.error import HTTPError

__all__ = ["Server", "add_server_arguments", "find_server"]

_USUAL: Final = "http://127.0.0.1:7077"
_TIMEOUT_S: Final = 30.0
_MOST_BYTES: Final = 16 * 1024 * 1024
_NO_TOKEN: Final = "the token is missing or wrong; give --token-file FILE, or set ROLLSCOPE_TOKEN"  # noqa: S105


class _Refusal(msgspec.Struct):
    error: str
    advice: str = ""


class Server(NamedTuple):
    """A server that is asked."""

    url: str
    """Without a slash at the end."""
    token: str | None = None
    ca_file: str | None = None

    def ask(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401  (JSON)
        """Ask the API, and give what it answers; None if that is nothing.

        Args:
            method: Of HTTP.
            path: Below `api/v1/`.
            body: Sent as JSON.

        Raises:
            CommandError: It refused, or nobody is there; the message says which.
        """
        from http.client import HTTPException
        from urllib.error import HTTPError, URLError

        try:
            return self._exchange(method, path, body)
        except HTTPError as error:
            with error:
                raise CommandError(self._refusal(error)) from None
        except (OSError, HTTPException) as error:
            reason = error.reason if isinstance(error, URLError) else error
            why = getattr(reason, "strerror", None) or str(reason) or type(error).__name__
            raise CommandError(
                f"no server answers at {self.url}: {why}; `rollscope server start` or `rollscope "
                "view` starts one, --server says where it is"
            ) from None
        except UNDECODABLE:
            raise CommandError(f"what answers at {self.url} is no Rollscope server") from None

    def _exchange(self, method: str, path: str, body: object) -> Any:  # noqa: ANN401
        import ssl
        from urllib.request import HTTPSHandler, Request

        from rollscope.stack.directhttp import direct_opener

        headers = {"Accept": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        else:  # a server without a token takes changes from its own page only
            parts = urlsplit(self.url)
            headers["Origin"] = f"{parts.scheme}://{parts.netloc}"
        data = None
        if body is not None:
            data = msgspec.json.encode(body)
            headers["Content-Type"] = "application/json"
        request = Request(  # noqa: S310  (the scheme was checked)
            f"{self.url}/api/v1/{path}", data=data, headers=headers, method=method
        )
        secure = HTTPSHandler(context=ssl.create_default_context(cafile=self.ca_file))
        with direct_opener(secure).open(request, timeout=_TIMEOUT_S) as answer:
            said = answer.read(_MOST_BYTES)
        return msgspec.json.decode(said) if said else None

    def _refusal(self, error: "HTTPError") -> str:
        if error.code == 401:
            return f"{self.url}: {_NO_TOKEN}"
        try:
            said = msgspec.json.decode(error.read(_MOST_BYTES), type=_Refusal)
        except (*UNDECODABLE, OSError):
            return f"what answers at {self.url} is no Rollscope server (status {error.code})"
        return f"{said.error} {said.advice}".strip()


def add_server_arguments(parser: ArgumentParser) -> None:
    """Declare which server is asked."""
    parser.add_argument(
        "--server",
        metavar="URL",
        help="which server; its token may stand in it (default: the one that `rollscope server` "
        f"runs here, else {_USUAL})",
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="a file that holds the token (default: ROLLSCOPE_TOKEN)",
    )


def find_server(args: Namespace) -> Server:
    """Find the server that is meant, and say which, if nobody has named it.

    Raises:
        CommandError: What was given makes no sense.
    """
    settings = resolve({}, os.environ)
    token = settings.token if args.token_file is None else _read_token(args.token_file)
    if args.server is not None:
        return _named(args.server, token, settings.ca_file)
    found = _started_here(token)
    url = found.url if found else _USUAL
    why = "which `rollscope server` runs here" if found else "the usual place"
    print(f"Asking {url}, {why}.", file=sys.stderr)
    return Server(url, found.token if found else token, settings.ca_file)


def _named(given: str, token: str | None, ca_file: str | None) -> Server:
    from rollscope.instrument.sinks.httpaddress import split_http

    parts = split_http(given)
    if parts is None:
        raise CommandError(f"--server: {given} is no address such as http://HOST:PORT", 2)
    given_token = parse_qs(parts.query).get("token", [None])[0]
    url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    return Server(url, token or given_token, ca_file)


def _started_here(token: str | None) -> Server | None:
    from rollscope.stack.statefile import StateDir, default_state_dir

    where = StateDir(default_state_dir(os.environ))
    state = where.read() if where.holder() is not None else None
    if state is None:
        return None
    if token is None and state.token_file is not None:
        token = _read_token(Path(state.token_file))
    return Server(state.page.rstrip("/"), token)


def _read_token(path: Path) -> str:
    try:
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise CommandError(f"cannot read the token file {path}: {why}") from None
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise CommandError(f"the token file {path} has to hold one word of plain characters")
    return token
