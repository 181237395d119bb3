"""Who may name targets to a server that was started without a token."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.server.access import Access
from rollscope.server.gate import TARGETS_PATH, Gate

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

JSON = {"host": "127.0.0.1:7077", "content-type": "application/json"}
OPEN = Access(token=None, port=7077, is_local=True)
INSIDE = 204


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": INSIDE, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def status(
    access: Access = OPEN,
    *,
    method: str = "POST",
    path: str = TARGETS_PATH,
    peer: str | None = "127.0.0.1",
    headers: dict[str, str] | None = None,
) -> int:
    """Send one request to the gate and say what comes back."""
    given = JSON if headers is None else headers
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": None if peer is None else (peer, 40000),
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(Gate(application, access)(scope, receive, send))
    return int(sent[0]["status"])


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize("peer", ["127.0.0.1", "::1"])
def test_a_program_of_this_machine_names_targets_where_there_is_no_token(
    method: str, peer: str
) -> None:
    assert status(method=method, peer=peer) == INSIDE


def test_no_other_machine_names_targets_even_if_it_reaches_the_port() -> None:
    assert status(peer="10.0.0.7") == 403
    assert status(peer=None) == 403
    assert status(Access(token=None, port=7077, is_local=False)) == 403


@pytest.mark.parametrize(
    "told", ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"]
)
def test_nobody_names_targets_through_a_proxy(told: str) -> None:
    assert status(headers={**JSON, told: "10.0.0.7"}) == 403


@pytest.mark.parametrize(
    "mark",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"host": "evil.example:7077"},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "multipart/form-data; boundary=x"},
        {"content-type": "text/plain; application/json"},
        {"content-type": ""},
    ],
    ids=lambda mark: "-".join(next(iter(mark.items()))),
)
def test_no_site_makes_a_browser_name_targets(mark: dict[str, str]) -> None:
    assert status(headers={**JSON, **mark}) == 403


def test_our_own_page_names_targets() -> None:
    assert status(headers={**JSON, "origin": "http://127.0.0.1:7077"}) == INSIDE


def test_the_way_in_for_programs_leads_to_targets_only() -> None:
    assert status(path="/api/v1/targets") == 403
    assert status(path="/api/v1/run/r/stack") == 403
    assert status(path=f"{TARGETS_PATH}/x") == 403
    assert status(method="PUT") == 403


def test_with_a_token_nothing_but_the_token_counts() -> None:
    access = Access(token="t", port=7077, is_local=True)  # noqa: S106  (of this test)
    assert status(access) == 403
    assert status(access, headers={**JSON, "authorization": "Bearer wrong"}) == 403
    assert status(access, headers={**JSON, "authorization": "Bearer t"}) == INSIDE
    elsewhere = Access(token="t", port=7077, hosts=frozenset({"head"}))  # noqa: S106
    bearer = {**JSON, "host": "head:7077", "authorization": "Bearer t"}
    assert status(elsewhere, peer="10.0.0.7", headers=bearer) == INSIDE
