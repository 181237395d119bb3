"""The page Health, on a real server: what was lost, whose clock is off, what the page costs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser.conftest import OpenPage, Serve


@pytest.fixture(scope="module")
def crashed(server: Serve, crashed_run: Path) -> str:
    """Say where Health of a run is in which a process died."""
    return f"{server(crashed_run)}#/{crashed_run.name}/health"


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
        expect(line).to_contain_text(found["sentence"])
        expect(line).to_contain_text(found["advice"])
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
