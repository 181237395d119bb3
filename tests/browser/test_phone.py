"""Every page at 390 pixels: nothing scrolls sideways, on a small run and on a large one's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.sweep import overflow, unfold

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser.conftest import OpenPage, Serve

PAGES = ("now", "steps", "step/{step}", "timeline", "sessions", "compare?sa=4&sb=5", "health")


@pytest.fixture(scope="module")
def site(server: Serve, hanging_run: Path, crashed_run: Path) -> str:
    """Serve a run in which rollouts hang, and one that is over."""
    assert hanging_run.parent == crashed_run.parent
    return server(hanging_run.parent)


@pytest.mark.parametrize(("run", "step"), [("run", 5), ("crashed", 0)])
def test_no_page_scrolls_sideways(run: str, step: int, site: str, open_page: OpenPage) -> None:
    page = open_page(site, viewport=PHONE, has_touch=True, is_mobile=True, forgiven="status of 404")
    expect(page.get_by_role("table", name="Runs")).to_be_visible()
    wide = {"runs": overflow(page)}
    for name in PAGES:
        page.goto(f"{site}#/{run}/{name.format(step=step)}")
        unfold(page)
        wide[name] = overflow(page)

    assert {name: pixels for name, pixels in wide.items() if pixels > 0} == {}


def test_menus_and_tables_can_be_used_with_a_finger(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/run/steps", viewport=PHONE, has_touch=True, is_mobile=True)
    unfold(page)
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Health").tap()
    page.wait_for_url("**/#/run/health")
    unfold(page)
    cells = page.get_by_role("table", name="Processes").locator("tbody td")
    left = {round(cell.bounding_box()["x"]) for cell in cells.all()}  # type: ignore[index]  # shown

    assert len(left) == 1  # a card: one cell below the other


def test_the_buttons_of_a_crashed_runs_head_share_its_first_line(
    site: str, open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/crashed/health", viewport=PHONE, has_touch=True, is_mobile=True)
    unfold(page)
    head = page.get_by_role("banner")
    expect(head.get_by_text("crashed")).to_have_count(2)  # its name, and its state
    top = {round(one.bounding_box()["y"]) for one in head.get_by_role("button").all()}  # type: ignore[index]  # shown

    assert head.get_by_role("button").count() == 3
    assert len(top) == 1
    assert top.pop() < 40
