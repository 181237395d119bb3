from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from rollscope.server.gate import POLICY
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from tests.integration.served import TOKEN, Answer, Site, served

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

NAVIGATION = {"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    generate_run(place / "first", RunShape.sized(300))
    (place.parent / "secret").mkdir(exist_ok=True)
    return place


def at(place: Path, visit: Callable[[Site], Awaitable[T]], token: str | None = TOKEN) -> T:
    async def scenario() -> T:
        async with served(place, token=token) as site:
            return await visit(site)

    return asyncio.run(scenario())


def test_the_token_of_the_address_becomes_a_cookie_and_leaves_the_address(runs: Path) -> None:
    async def visit(site: Site) -> tuple[Answer, Answer, Answer]:
        first = await site.ask(f"/?token={TOKEN}&theme=dark", bearer=None)
        cookie = first.headers["Set-Cookie"].partition(";")[0]
        inside = await site.ask("/api/v1/runs", bearer=None, Cookie=cookie)
        other_port = cookie.replace(str(site.port), "1")
        return first, inside, await site.ask("/api/v1/runs", bearer=None, Cookie=other_port)

    first, inside, other_port = at(runs, visit)
    assert (first.status, first.headers["Location"]) == (303, "./?theme=dark")
    cookie = first.headers["Set-Cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert (inside.status, other_port.status) == (200, 401)


STRANGERS = [
    ("/api/v1/runs", None),
    ("/api/v1/runs", "wrong"),
    ("/api/v1/runs", ""),
    (f"/api/v1/runs?token={TOKEN}", None),
    ("/api/v1/events", None),
    ("/api/v1/run/first/export?what=steps", None),
    ("/", None),
    ("/?token=wrong", None),
    ("/?token=", None),
]


def test_without_the_token_there_is_nothing_to_see(runs: Path) -> None:
    async def visit(site: Site) -> list[Answer]:
        return [await site.ask(path, bearer=bearer) for path, bearer in STRANGERS]

    for asked, answer in zip(STRANGERS, at(runs, visit), strict=True):
        assert answer.status == 401, asked
        assert b"rollscope view" in answer.body
        assert b"first" not in answer.body
        assert "Set-Cookie" not in answer.headers


def test_a_name_that_points_here_but_is_not_ours_is_refused(runs: Path) -> None:
    async def visit(site: Site) -> list[Answer]:
        return [
            await site.ask(path, Host=host)
            for host in ("evil.example", f"evil.example:{site.port}", "127.0.0.1.evil.example")
            for path in ("/", "/api/v1/runs", f"/?token={TOKEN}")
        ]

    for answer in at(runs, visit):
        assert answer.status == 403
        assert "--allow-host" in answer.json["advice"]


def test_a_name_that_was_allowed_is_served(runs: Path) -> None:
    async def scenario() -> int:
        async with served(runs, hosts=("gpu-07",)) as site:
            return (await site.api("runs", Host="gpu-07:7077")).status

    assert asyncio.run(scenario()) == 200


FOREIGN = [
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "same-site"},
    {"Sec_Fetch_Site": "cross-site", **NAVIGATION},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
]


@pytest.mark.parametrize("token", [TOKEN, None], ids=["token", "no token"])
def test_other_sites_get_nothing_from_the_api(runs: Path, token: str | None) -> None:
    async def visit(site: Site) -> list[Answer]:
        return [await site.api("runs", **headers) for headers in FOREIGN]

    for headers, answer in zip(FOREIGN, at(runs, visit, token), strict=True):
        assert answer.status == 403, headers


def test_a_link_from_another_site_may_open_the_page_but_no_frame_may(runs: Path) -> None:
    async def visit(site: Site) -> tuple[int, int]:
        foreign = {"Sec_Fetch_Site": "cross-site"}
        link = await site.ask("/", bearer=None, **foreign, **NAVIGATION)
        frame = {**NAVIGATION, "Sec_Fetch_Dest": "iframe"}
        return link.status, (await site.ask("/", bearer=None, **foreign, **frame)).status

    link, frame = at(runs, visit)
    assert link in (200, 503)  # 503 where the page is not built
    assert frame == 403


def test_what_makes_processes_do_something_must_come_from_our_own_page(runs: Path) -> None:
    async def visit(site: Site) -> list[int]:
        path, cookie = "/api/v1/run/first/stack", f"rollscope-{site.port}={TOKEN}"
        own = f"http://127.0.0.1:{site.port}"
        answers = [
            await site.ask(path, "POST", bearer=None, Cookie=cookie),
            await site.ask(path, "POST", bearer=None, Cookie=cookie, Origin="http://evil.example"),
            await site.ask(path, "POST", bearer=None, Cookie=cookie, Origin=own),
            await site.ask(path, "POST"),
            await site.ask(path, "GET"),
        ]
        return [answer.status for answer in answers]

    assert at(runs, visit) == [403, 403, 200, 200, 405]


def test_without_a_token_another_site_still_cannot_post(runs: Path) -> None:
    async def visit(site: Site) -> int:
        return (await site.ask("/api/v1/run/first/stack", "POST", bearer=None)).status

    assert at(runs, visit, None) == 403


NAMES = [
    "..",
    "..%2f",
    "..%2fsecret",
    "%2e%2e",
    "%2e%2e%2fsecret",
    "%2fetc",
    "%00",
    "first%00",
    "first%2f..",
    "first%2flog",
    ".",
    "%E2%80%AE",
    "FIRST",
    "a" * 3000,
]


def test_names_are_looked_up_and_lead_nowhere_else(runs: Path) -> None:
    async def visit(site: Site) -> list[Answer]:
        paths = [
            path
            for name in NAMES
            for path in (
                f"/api/v1/run/{name}/answer/steps",
                f"/api/v1/run/{name}",
                f"/api/v1/events?run={name}",
                f"/{name}",
            )
        ]
        return [await site.ask(path) for path in paths]

    for number, answer in enumerate(at(runs, visit)):
        assert answer.status == 404, NAMES[number // 4]
        assert set(answer.json) == {"error", "advice"}


ADDRESSES = [
    "/",
    "/nothing",
    "/api/v1/runs",
    "/api/v1/nothing",
    "/api/v1/run/first/answer/steps",
    "/api/v1/run/first/answer/steps?unknown=1",
    "/api/v1/run/first/answer/nothing",
    "/api/v1/run/none",
    "/api/v1/run/first/export?what=steps",
    "/api/v1/schema",
    f"/?token={TOKEN}",
]


@pytest.mark.parametrize("bearer", [TOKEN, "wrong"])
def test_every_answer_carries_the_policy(runs: Path, bearer: str) -> None:
    async def visit(site: Site) -> list[Answer]:
        answers = [await site.ask(path, bearer=bearer) for path in ADDRESSES]
        answers.append(await site.ask("/api/v1/runs", "DELETE", bearer=bearer))
        answers.append(await site.ask("/", Host="evil.example"))
        return answers

    for answer in at(runs, visit):
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert "Server" not in answer.headers
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_a_fault_of_ours_is_marked_too_and_tells_no_details(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: object) -> None:
        raise ZeroDivisionError("a secret detail")

    monkeypatch.setattr("rollscope.server.library.Library.describe", fail)

    answer = at(runs, lambda site: site.api("runs"))
    assert answer.status == 500
    assert "ZeroDivisionError" in answer.json["error"]
    assert b"secret" not in answer.body
    assert answer.headers["Content-Security-Policy"] == POLICY
