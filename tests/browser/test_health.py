"""The page Health, on a real server: what was lost, whose clock is off, what the page costs.

And what can be said of a run that was read from files, in which nothing lives.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from rollscope.cli.main import main
from tests.browser.conftest import PHONE
from tests.browser.sweep import settle

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage, Serve

FILES = Path(__file__).parents[1] / "fixtures" / "areal"
LEFT_OPEN = "496#0"


@pytest.fixture(scope="module")
def site(server: Serve, crashed_run: Path) -> str:
    """Serve a run in which a process died, and beside it one that files tell of."""
    runs = crashed_run.parent
    main(["import", str(FILES), "--dir", str(runs), "--run", "old"])
    return server(runs)


@pytest.fixture(scope="module")
def crashed(site: str, crashed_run: Path) -> str:
    """Say where Health of the run is in which a process died."""
    return f"{site}#/{crashed_run.name}/health"


def test_findings_come_first_and_tables_follow(crashed: str, open_page: OpenPage) -> None:
    page = open_page(crashed)
    answer = page.request.get(f"{crashed.split('#')[0]}api/v1/run/crashed/answer/health")
    health: dict[str, Any] = answer.json()
    assert health["findings"]
    assert len(health["processes"]) > 1

    first = page.locator(".panel").first
    expect(first.get_by_role("heading")).to_have_text("Findings")
    lines = first.locator("li")
    expect(lines).to_have_count(len(health["findings"]))
    for found, line in zip(health["findings"], lines.all(), strict=True):
        expect(line).to_contain_text(found["severity"])
        for text in (found["sentence"], found["advice"]):
            expect(line).to_contain_text(text.replace("`", ""))
    rows = page.get_by_role("table", name="Processes").locator("tbody tr")
    expect(rows).to_have_count(len(health["processes"]))
    for process, row in zip(health["processes"], rows.all(), strict=True):
        expect(row).to_contain_text(process["title"])
        expect(row.locator("td[data-title=Spans]")).to_have_text(f"{process['spans']:,}")
    clocks = page.get_by_role("table", name="Clocks").locator("tbody tr")
    expect(clocks).to_have_count(len(health["clocks"]))


def test_lines_to_type_can_be_copied(crashed: str, open_page: OpenPage) -> None:
    page = open_page(crashed, permissions=["clipboard-read", "clipboard-write"])

    page.get_by_role("button", name="Copy: Check the run's data").click()

    expect(page.get_by_text("Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "rollscope doctor crashed"


def test_the_page_says_what_it_costs_itself(crashed: str, open_page: OpenPage) -> None:
    page = open_page(crashed)
    panel = page.locator("section", has=page.get_by_role("heading", name="This page"))

    expect(panel).to_contain_text(re.compile(r"median \d+\.\d ms, longest \d+ ms"))
    expect(panel).to_contain_text(re.compile(r"Received[\d.]+ [KM]?B in \d+ requests"))


def test_everything_fits_a_phone(crashed: str, open_page: OpenPage) -> None:
    page = open_page(crashed, viewport=PHONE)
    expect(page.get_by_role("table", name="Processes")).to_be_visible()

    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def heads(page: Page, table: str) -> list[str]:
    settle(page)
    return page.get_by_role("table", name=table, exact=True).locator("th").all_inner_texts()


def test_nothing_of_an_imported_run_seems_to_live(site: str, open_page: OpenPage) -> None:
    page = open_page(site)
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="old", exact=True))
    expect(row).to_contain_text("imported")
    row.get_by_role("link").click()
    page.get_by_role("link", name="Now", exact=True).click()
    expect(page.locator(".head-end")).to_contain_text("imported")
    expect(page.get_by_role("table", name="Stuck and slow")).to_contain_text(LEFT_OPEN)
    assert "Await" not in heads(page, "Stuck and slow")
    assert heads(page, "Hosts") == ["Host", "In flight", "By phase"]
    expect(page.locator(".badge", has_text="silent")).to_have_count(0)

    page.get_by_role("link", name=LEFT_OPEN, exact=True).click()
    expect(page.locator(".crumbs")).to_contain_text(LEFT_OPEN)
    expect(page.get_by_text("The imported files hold no text of it.")).to_be_visible()
    expect(page.get_by_role("button", name="Await")).to_have_count(0)
    expect(page.get_by_text("reward pending")).to_have_count(0)

    page.goto(f"{site}#/old/health")
    expect(page.get_by_role("table", name="Processes")).to_contain_text("imported")
    assert not {"Heart-beat", "Silent"} & set(heads(page, "Processes"))
    expect(page.get_by_text("--watch")).to_have_count(0)


def test_a_list_of_sessions_has_no_column_without_a_value(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/old/sessions")
    expect(page.get_by_role("table", name="Sessions").locator("tbody tr").nth(1)).to_be_visible()
    shown = {one.strip(" ▲▼") for one in heads(page, "Sessions")}
    assert {"Session", "Outcome", "Ran", "Tokens out", "Started"} <= shown
    assert not {"Waited", "Reward", "Versions", "Lag", "Try"} & shown
