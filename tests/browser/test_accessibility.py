"""Every page and state for everybody: no fault that axe knows, in both themes, on any screen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from tests.browser.conftest import PHONE
from tests.browser.sweep import accessibility_faults, overflow, settle, unfold

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage, Serve
    from tests.integration.support import Lab

RICH = RunShape(
    steps=3,
    tasks_per_step=6,
    slots=6,
    queue_share=0.5,
    retry_share=0.3,
    replicas=2,
    gates=True,
    declares_slots=True,
    loop_lag=True,
    stacks=True,
)
"""A crashed run with something in every panel."""

PAGES = [
    "now",
    "steps",
    "step/1",
    "timeline",
    "sessions",
    "sessions?tab=tasks",
    "session/{session}",
    "compare?sa=0&sb=1",
    "health",
]

SHOWS = """(scheme) => {
    const [red] = getComputedStyle(document.body).backgroundColor.match(/\\d+/);
    return (red < 128 ? "dark" : "light") === scheme;
}"""
"""Whether the page has taken on a colour scheme."""

NOT_FOUND = "the server responded with a status of 404"


@pytest.fixture(scope="module")
def site(server: Serve, module_lab: Lab, hanging_run: Path) -> str:
    """Serve a run that lives and one that has crashed."""
    generate_run(module_lab.run.with_name("rich"), RICH)
    return server(hanging_run.parent)


@pytest.fixture(scope="module")
def empty_site(server: Serve, module_lab: Lab) -> str:
    """Serve a directory in which there is no run."""
    folder = module_lab.folder / "empty"
    folder.mkdir()
    return server(folder)


def check(page: Page) -> None:
    """See that axe finds nothing, in both themes, and that the page fits its window."""
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(SHOWS, arg=scheme)
        settle(page)
        assert (scheme, accessibility_faults(page)) == (scheme, [])
    assert overflow(page) <= 0


def some_session(page: Page, site: str, run: str) -> str:
    """Name the session of a run that ran longest."""
    answer = page.request.get(f"{site}api/v1/run/{run}/answer/sessions?sort=-ran&limit=1")
    found: str = answer.json()["sessions"][0]["row"]["span_id"]
    return found


def turn_into_tables(page: Page) -> None:
    """Have every chart shown as a table; those of the timeline stand below its canvas."""
    if page.locator("canvas.tl-base").count():
        page.get_by_role("button", name="Table", exact=True).click()
        expect(page.locator(".tl-tables table")).to_have_count(3)
    charts = page.locator("canvas.canvas")
    for _ in range(charts.count()):
        panel = page.locator("figure, section", has=charts.first).last
        panel.get_by_role("button", name=re.compile("table", re.IGNORECASE)).first.click()
    expect(charts).to_have_count(0)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_with_charts_with_tables_and_on_a_phone(
    name: str, site: str, open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/rich/health")
    page.goto(f"{site}#/rich/{name.format(session=some_session(page, site, 'rich'))}")
    unfold(page)
    expect(page.locator("h1")).to_have_count(1)
    expect(page.locator(".failure")).to_have_count(0)
    check(page)

    turn_into_tables(page)
    check(page)

    page.set_viewport_size(PHONE)
    unfold(page)
    assert overflow(page) <= 0
    assert accessibility_faults(page, rules=["target-size", "scrollable-region-focusable"]) == []


@pytest.mark.parametrize("name", ["now", "timeline", "session/{session}"])
def test_a_page_of_a_run_that_lives_is_accessible(
    name: str, site: str, open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/run/health")
    page.goto(f"{site}#/run/{name.format(session=some_session(page, site, 'run'))}")
    unfold(page)
    check(page)


def test_drawers_and_dialogs_are_accessible(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/run/now")
    page.get_by_role("button", name="Await stack of").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    check(page)
    page.keyboard.press("Escape")
    for key, name in (("?", "Keys"), ("Control+k", "Commands")):
        page.keyboard.press(key)
        expect(page.get_by_role("dialog", name=name)).to_be_visible()
        check(page)
        page.keyboard.press("Escape")
    page.goto(f"{site}#/rich/timeline")
    unfold(page)
    page.get_by_role("button", name="Table", exact=True).click()
    page.get_by_role("table", name="Spans in view").locator("tbody button").first.click()
    expect(page.locator("aside, [role=dialog]").first).to_be_visible()
    check(page)


def test_lists_of_runs_are_accessible(site: str, empty_site: str, open_page: OpenPage) -> None:
    page = open_page(site)
    expect(page.get_by_role("table", name="Runs").locator("tbody tr")).to_have_count(2)
    check(page)
    page = open_page(empty_site)
    expect(page.get_by_text("No run yet")).to_be_visible()
    check(page)


@pytest.mark.parametrize(
    "place", ["#/nothing/now", "#/rich/step/77", "#/rich/session/0000000000000001"]
)
def test_what_cannot_be_shown_is_said_accessibly(
    place: str, site: str, open_page: OpenPage
) -> None:
    page = open_page(f"{site}{place}", forgiven=NOT_FOUND)
    expect(page.get_by_role("alert").first).to_be_visible()
    expect(page.get_by_role("button", name="Try again").first).to_be_visible()
    check(page)
