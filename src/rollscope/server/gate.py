"""The gate in front of every route: it lets requests in or not, and marks every answer.

A plain ASGI layer outside of the application, so that errors of any kind carry the headers too.

What lies below `/v1/` is for programs, and another matter than the page. Only a token that is sent
on purpose counts there, no cookie. With such a token the Host header may say anything, since
senders use whatever name they reach this machine by: names are checked against sites that let a
name of their own point at us, and those can make a browser send much, but no token that they do not
know. Without a token at all, names and origins are checked as for the page.

`/metrics` is for programs too, but one that runs on the same machine needs no token where no other
machine reaches the server: numbers and names are all that it says.

Whoever names targets makes this server ask other machines. So that takes the token; or, where the
server was started without one, a program of this machine that asks for nobody else. A browser
cannot pass for such a program: it names the site that a change comes from, and sends no JSON to
another site before that site has agreed, which we never do.
"""

from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rollscope.server.access import Access, Caller
from rollscope.server.bodyreading import discard
from rollscope.server.failures import Failure, failure_response

__all__ = ["HEALTH_PATH", "METRICS_PATH", "POLICY", "TARGETS_PATH", "Gate"]

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_MARKS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_API: Final = "/api/"
HEALTH_PATH: Final = "/healthz"
METRICS_PATH: Final = "/metrics"
TARGETS_PATH: Final = "/api/v1/prometheus/targets"
"""Where clients of RL-Insight, who know of no token, name targets to a server without one."""
_PROGRAMS: Final = "/v1/"
_READING: Final = frozenset({"GET", "HEAD"})
_NAMING: Final = frozenset({"POST", "DELETE"})
_COOKIE_AGE_S: Final = 30 * 24 * 3600
_COME_AGAIN: Final = (
    "This address needs its token. Open the whole address that `rollscope view` printed, the part "
    "with ?token= included."
)
_AUTHORIZE: Final = (
    "Send Authorization: Bearer TOKEN, with the token of the address that `rollscope view` printed."
)


class Gate:
    """Stands between the network and the application."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _MARKS.items():
                    headers[name] = value
                if "cache-control" not in headers:
                    headers["Cache-Control"] = "no-store"
            await send(message)

        refusal = self._refuse(scope)
        if refusal is not None and scope["path"].startswith(_PROGRAMS):
            await discard(receive)  # or a sender that is still at it would not hear why
        await (refusal or self._app)(scope, receive, marked)

    def _refuse(self, scope: Scope) -> Response | None:
        """Give what a request gets instead of an answer; None lets it in."""
        headers = Headers(scope=scope)
        method, path = scope["method"], scope["path"]
        if path.startswith(_PROGRAMS):
            return self._refuse_program(headers)
        if path == HEALTH_PATH:
            return None  # says no more than that somebody listens
        if path == METRICS_PATH:
            return self._refuse_monitor(scope, headers)
        if not self._access.knows_host(headers.get("host")):
            return _unknown_name()
        is_page = method in _READING and not path.startswith(_API)
        if self._access.is_foreign(headers) and not (is_page and Access.is_navigation(headers)):
            return _foreign()
        if is_page and (given := _token_in(scope)) is not None:
            return self._take_token(scope, headers, given)
        caller = self._access.caller(headers)
        is_vouched = caller is Caller.BEARER or Access.is_own(headers)
        if method not in _READING and not (is_vouched or self._names_targets(scope, headers)):
            return _foreign()
        return self._check_caller(caller, headers, path)

    def _names_targets(self, scope: Scope, headers: Headers) -> bool:
        """Say whether a client of RL-Insight on this machine names targets, where no token is."""
        peer, _ = scope.get("client") or (None, None)
        is_asked_for = scope["method"] in _NAMING and scope["path"] == TARGETS_PATH
        is_open = is_asked_for and self._access.caller(headers) is Caller.OPEN
        return is_open and self._access.is_neighbour(peer, headers) and _is_program(headers)

    def _refuse_program(self, headers: Headers) -> Response | None:
        if self._access.token is not None:
            if self._access.caller(headers) is Caller.BEARER:
                return None
            return failure_response(Failure(401, "The token is missing or wrong.", _AUTHORIZE))
        if not self._access.knows_host(headers.get("host")):
            return _unknown_name()
        return _foreign() if Access.is_foreign(headers) else None

    def _refuse_monitor(self, scope: Scope, headers: Headers) -> Response | None:
        """Let monitoring systems in: with the token under any name, else as neighbours."""
        caller = self._access.caller(headers)
        if caller is Caller.BEARER:
            return None
        if not self._access.knows_host(headers.get("host")):
            return _unknown_name()
        if Access.is_foreign(headers):
            return _foreign()
        peer, _ = scope.get("client") or (None, None)
        if caller is not Caller.NOBODY or self._access.is_neighbour(peer, headers):
            return None
        return failure_response(Failure(401, "The token is missing or wrong.", _AUTHORIZE))

    def _check_caller(self, caller: Caller, headers: Headers, path: str) -> Response | None:
        if caller is not Caller.NOBODY:
            return None
        if path.startswith(_API):
            return failure_response(Failure(401, "The token is missing or wrong.", _COME_AGAIN))
        # The page itself is public code. A link from another site comes without the cookie,
        # which the page's own requests will carry; then the page can tell.
        if path != "/" or Access.is_foreign(headers):
            return None
        return PlainTextResponse(_COME_AGAIN + "\n", status_code=401)

    def _take_token(self, scope: Scope, headers: Headers, given: str) -> Response:
        """Turn the token of the address into a cookie, and take it out of the address."""
        if self._access.token is not None and not self._access.is_token(given):
            return PlainTextResponse(f"That token is wrong. {_COME_AGAIN}\n", status_code=401)
        rest = [pair for pair in _pairs(scope) if pair[0] != "token"]
        # Relative: a proxy may serve us below any path.
        place = "./" + scope["path"].rpartition("/")[2]
        response = Response(
            status_code=303,
            headers={"Location": place + (f"?{urlencode(rest)}" if rest else "")},
        )
        if self._access.token is not None:
            response.set_cookie(
                self._access.cookie_name(headers.get("host")),
                given,
                max_age=_COOKIE_AGE_S,
                httponly=True,
                samesite="strict",
                secure=scope.get("scheme") == "https",
            )
        return response


def _is_program(headers: Headers) -> bool:
    """Say whether no browser sent this: those name the site that a change comes from."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" and not {"origin", "sec-fetch-site"} & set(headers)


def _unknown_name() -> Response:
    return failure_response(
        Failure(
            403,
            "This server does not go by that name.",
            "Use localhost, or start it with --allow-host NAME.",
        )
    )


def _foreign() -> Response:
    return failure_response(
        Failure(
            403,
            "Another site must not ask this server.",
            "Open the address of the server itself, or send Authorization: Bearer.",
        )
    )


def _pairs(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)


def _token_in(scope: Scope) -> str | None:
    return dict(_pairs(scope)).get("token")
