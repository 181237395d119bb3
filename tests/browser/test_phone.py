"""Every page at 390 pixels: nothing scrolls sideways, on a small run and on a large one's names."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from tests.browser.conftest import PHONE
from tests.browser.sweep import overflow, unfold

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser.conftest import OpenPage, Serve

PAGES = ("now", "steps", "step/{step}", "timeline", "sessions", "compare?sa=4&sb=5", "health")
LONG = "qwen3-32b-agentic-swe-grpo-long-context-seed-7"

_SHOW_TABLES = """() => [...document.querySelectorAll("button")]
    .filter((one) => one.textContent.startsWith("Table")).forEach((one) => one.click())"""

_SMALL_LINKS = """() => [...document.querySelectorAll("table a")].map((one) =>
    [one.closest("table").ariaLabel, one.textContent, one.getBoundingClientRect()])
    .filter(([, , {width, height}]) => Math.min(width, height) < 24)
    .map(([table, text]) => `${table}: ${text}`)"""

_EMPTY_CELLS = """() => [...document.querySelectorAll(".table-box tbody td")].filter((one) =>
    !one.textContent.trim() && !one.querySelector("[role=img]")
    && !getComputedStyle(one, "::after").content.includes("\\u2013"))
    .map((one) => `${one.closest("table").ariaLabel}: ${one.dataset.title}`)"""


@pytest.fixture(scope="module")
def site(server: Serve, hanging_run: Path, crashed_run: Path) -> str:
    """Serve a run in which rollouts hang, one that is over, and one with a long name."""
    assert hanging_run.parent == crashed_run.parent
    generate_run(hanging_run.with_name(LONG), RunShape(steps=1, tasks_per_step=2))
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


@pytest.mark.parametrize("place", ["crashed/health", f"{LONG}/health", f"{LONG}/step/0"])
def test_the_buttons_of_the_head_share_its_first_line(
    place: str, site: str, open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/{place}", viewport=PHONE, has_touch=True, is_mobile=True)
    unfold(page)
    head = page.get_by_role("banner")
    expect(head.locator(".badge.bad")).to_contain_text("crashed")
    top = {round(one.bounding_box()["y"]) for one in head.get_by_role("button").all()}  # type: ignore[index]  # shown
    crumbs = head.get_by_role("navigation", name="You are here").get_by_role("link").all()
    boxes = [one.bounding_box() for one in [*crumbs, head.get_by_role("button").first]]

    assert head.get_by_role("button").count() == 3
    assert len(top) == 1
    assert top.pop() < 40
    for box, following in pairwise(boxes):
        assert box["x"] + box["width"] <= following["x"]  # type: ignore[index]  # shown


@pytest.mark.parametrize("name", ["now", "steps", "step/0", "sessions", "health"])
def test_cells_say_that_they_are_empty_and_links_fit_a_finger(
    name: str, site: str, open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/crashed/{name}", viewport=PHONE, has_touch=True, is_mobile=True)
    unfold(page)
    page.evaluate(_SHOW_TABLES)
    unfold(page)

    assert page.evaluate(_EMPTY_CELLS) == []
    assert page.evaluate(_SMALL_LINKS) == []


def test_a_verdict_in_the_list_of_steps_is_read_whole(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/run/steps", viewport=PHONE, has_touch=True, is_mobile=True)
    unfold(page)
    cells = page.get_by_role("table", name="Steps").locator("td[data-title=Verdict]")
    sentences = cells.locator("bdi").filter(has_text=".")
    expect(sentences.first).to_be_visible()
    read = [one.inner_text() for one in sentences.all()]
    assert max(map(len, read)) > 90  # what a wide screen shows of one
    assert {text[-1] for text in read} == {"."}
    assert overflow(page) <= 0

    page.set_viewport_size({"width": 1280, "height": 800})
    assert max(len(one.inner_text()) for one in sentences.all()) <= 90
