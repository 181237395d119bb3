"""Who gets in, and from where: tokens, cookies, other sites, and a path in front of the page."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.sweep import settle
from tests.browser.tunnel import Tunnel

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.browser.conftest import OpenPage, Serve

REFUSED = "the server responded with a status of 40"


@pytest.fixture(scope="module")
def guarded(server: Serve, crashed_run: Path) -> str:
    """Serve a run to those who know the token, which is in the address."""
    return server(crashed_run, "--host", "127.0.0.1")


@pytest.fixture(scope="module")
def open_server(server: Serve, crashed_run: Path) -> str:
    """Serve a run to everybody on this machine."""
    return server(crashed_run)


def test_the_token_becomes_a_cookie_and_leaves_the_address(
    guarded: str, open_page: OpenPage
) -> None:
    page = open_page(f"{guarded}#/crashed/health")
    expect(page.get_by_role("heading", name="Health")).to_be_attached()

    assert "token" in guarded
    assert "token" not in page.url
    assert page.url.endswith("#/crashed/health")
    (cookie,) = page.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert page.evaluate("document.cookie") == ""
    page.reload()
    settle(page)
    expect(page.get_by_role("table", name="Processes")).to_be_visible()


def test_without_the_token_nothing_is_shown(guarded: str, open_page: OpenPage) -> None:
    page = open_page(guarded.split("?")[0], forgiven=REFUSED)

    expect(page.get_by_text("rollscope view")).to_be_visible()
    answer = page.request.get(f"{guarded.split('?')[0]}api/v1/runs")
    assert answer.status == 401
    assert "crashed" not in page.content()


def test_another_site_learns_nothing_from_a_reader_who_is_in(
    guarded: str, browser: Browser
) -> None:
    with closing(browser.new_context()) as context:
        page = context.new_page()
        page.goto(guarded)
        home = guarded.split("?")[0]
        ask = """(url) => fetch(url, {credentials: "include"}).then(
            (answer) => answer.status, () => "stopped")"""
        assert page.evaluate(ask, f"{home}api/v1/runs") == 200

        page.goto(f"{home.replace('127.0.0.1', 'localhost')}app.css")  # another site, to a browser

        assert page.evaluate(ask, f"{home}api/v1/runs") == "stopped"


def test_the_page_works_below_any_path(open_server: str, open_page: OpenPage) -> None:
    asked: list[str] = []
    with Tunnel(open_server, "/proxy/here") as prefixed:
        page = open_page(prefixed.url)
        page.on("request", lambda request: asked.append(request.url))
        page.wait_for_url("**/proxy/here/#/crashed")
        for name in ("Timeline", "Health"):
            page.get_by_role("navigation", name="Pages").get_by_role("link", name=name).click()
            settle(page)
        expect(page.get_by_role("table", name="Processes")).to_be_visible()
        page.context.close()

    assert asked
    assert [url for url in asked if not url.startswith(prefixed.url)] == []
