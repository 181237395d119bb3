"""Hostile text in every text of a run is shown as text, whatever page it comes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from tests.browser.conftest import PHONE
from tests.browser.every_field import MARKUP
from tests.browser.sweep import overflow, smuggled, unfold

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage, Serve

RUN_NAME = "<b data-evil>&amp;\"'\u202e\x1b[31m%2f..%00run"

SHOWN: dict[str, list[str]] = {
    "now": ["open task", "host", "waiting", "hung", "error"],
    "steps": ["work", "role", "gauge", "count", "seconds"],
    "step/1": ["phase", "tool", "function", "task", "host"],
    "timeline": ["host", "role", "phase", "lane"],
    "sessions": ["task", "reason", "host"],
    "sessions?tab=tasks": ["task", "open task"],
    "session/{done}": ["task", "phase", "span", "tool"],
    "session/{done}?tab=messages": ["speaker", "message", "payload"],
    "session/{done}?tab=attributes": ["key", "value", "group", "family", "replica"],
    "session/{done}?tab=events": ["event", "fact", "known"],
    "session/{open}?tab=await": ["coroutine"],
    "compare?sa=1&sb=2": ["phase"],
    "health": ["host", "role"],
}
"""Page: the fields that must be found there, each behind its own name."""


@pytest.fixture(scope="module")
def site(server: Serve, hostile_run: Path) -> str:
    """Serve a run with hostile text, and one with a hostile name."""
    generate_run(hostile_run.with_name(RUN_NAME), RunShape(steps=1, tasks_per_step=2))
    return server(hostile_run.parent)


@pytest.fixture(scope="module")
def sessions(site: str) -> dict[str, str]:
    """Keep the ids of a session that is over and of one that is open."""
    return {}


def find_sessions(page: Page, site: str, known: dict[str, str]) -> dict[str, str]:
    for name, wanted in (("done", "outcome:rejected"), ("open", "status:open")):
        if name not in known:
            question = f"{site}api/v1/run/hostile/answer/sessions?limit=1&filter={wanted}"
            rows = page.request.get(question).json()["sessions"]
            known[name] = rows[0]["row"]["span_id"]
    return known


def shown_text(page: Page) -> str:
    """Give all that the page says, in sight, on hover and to those who cannot see."""
    text: str = page.evaluate(
        """() => [...document.body.querySelectorAll("*")].flatMap((one) =>
            [one.title, one.ariaLabel]).concat(document.body.textContent).join("\\n")"""
    )
    return text


@pytest.mark.parametrize("name", SHOWN)
def test_hostile_text_is_shown_as_text(
    name: str, site: str, sessions: dict[str, str], open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/hostile/health")
    page.goto(f"{site}#/hostile/{name.format(**find_sessions(page, site, sessions))}")
    unfold(page)
    if name == "timeline":
        page.get_by_role("button", name="Table", exact=True).click()
        page.get_by_role("table", name="Spans in view").locator("tbody button").first.click()
    pictures = page.get_by_role("button", name="as a table")
    while pictures.count():  # one that was clicked has another name
        pictures.first.click()

    text = shown_text(page)
    missing = [field for field in SHOWN[name] if f"{field}:\\u202e\\u2066\\u001b[31m" not in text]
    assert missing == []
    assert smuggled(page) == []
    page.set_viewport_size(PHONE)
    unfold(page)
    assert overflow(page) <= 0


def test_a_run_with_a_hostile_name_is_listed_and_opened(site: str, open_page: OpenPage) -> None:
    page = open_page(site)
    link = page.get_by_role("table", name="Runs").get_by_role("link", name="data-evil")
    expect(link).to_have_text("<b data-evil>&amp;\"'\\u202e\\u001b[31m%2f..%00run")
    assert smuggled(page) == []

    link.click()
    unfold(page)
    expect(page.get_by_role("table", name="Steps")).to_be_visible()
    assert smuggled(page) == []


def test_markup_in_the_address_is_shown_as_text(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/{MARKUP.replace('/', '%2F')}/now", forgiven="status of 40")
    expect(page.get_by_role("alert").first).to_be_visible()
    page.goto(f'{site}#/hostile/sessions?f="<b data-evil>"&sort=<b data-evil>&sel=<b data-evil>')
    unfold(page)

    assert smuggled(page) == []
