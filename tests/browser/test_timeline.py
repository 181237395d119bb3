"""The page Timeline, on a real server: drawn, moved, picked from, added up, followed live."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import FloatRect, Page

    from tests.browser.conftest import OpenPage, Serve


_LINK_NAMES = """(shown) => {
    const kept = /[?&]t=([\\d.]+)-([\\d.]+)/.exec(location.hash);
    return kept && shown.every((text, at) => Math.abs(kept[at + 1] - text) < 0.1);
}"""
"""Says whether the link names a window; it does so a moment after the window has last changed."""


@pytest.fixture(scope="module")
def finished(server: Serve, crashed_run: Path) -> str:
    """Say where the timeline of a run is that is over."""
    return f"{server(crashed_run)}#/{crashed_run.name}/timeline"


@pytest.fixture(scope="module")
def live(server: Serve, hanging_run: Path) -> str:
    """Say where the timeline of a run is that lives."""
    return f"{server(hanging_run)}#/{hanging_run.name}/timeline"


def _loaded(page: Page) -> FloatRect:
    """Wait until every span is in the page; give where the lanes are."""
    page.locator(".tl-base[data-whole=true]").wait_for()
    box = page.locator(".tl-surface").bounding_box()
    assert box is not None
    return box


def _unfold(page: Page) -> None:
    if page.get_by_role("button", name="Unfold all").count():
        page.get_by_role("button", name="Unfold all").click()


def _find_span(page: Page, box: FloatRect) -> tuple[float, float]:
    """Move down the middle of the lanes until a span is under the pointer."""
    for share in (0.05, 0.1, 0.3, 0.5):
        for height in range(30, int(box["height"]), 6):
            place = (box["x"] + box["width"] * share, box["y"] + height)
            page.mouse.move(*place)
            if page.locator(".tl-tooltip").is_visible():
                return place
    raise AssertionError("there is no span to be found")


def test_every_span_is_drawn_and_the_canvas_is_not_blank(
    finished: str, open_page: OpenPage
) -> None:
    page = open_page(finished)
    _loaded(page)
    overview: dict[str, Any] = page.request.get(
        f"{finished.split('#')[0]}api/v1/run/crashed"
    ).json()
    expect(page.locator(".tl-base")).to_have_attribute("data-spans", str(overview["spans"]))
    colours = page.evaluate(
        """() => {
            const canvas = document.querySelector(".tl-base");
            const { width, height } = canvas;
            const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
            return new Set(new Uint32Array(data.buffer)).size;
        }"""
    )
    assert colours > 5


def test_a_click_opens_the_exact_span_and_keys_go_on_from_it(
    finished: str, open_page: OpenPage
) -> None:
    page = open_page(finished)
    box = _loaded(page)
    _unfold(page)

    page.mouse.click(*_find_span(page, box))

    drawer = page.get_by_role("dialog", name="Span")
    expect(drawer).to_contain_text("span id")
    spoken = page.locator(".tl p[role=status]")
    first = spoken.inner_text()
    assert first
    page.keyboard.press(".")
    expect(spoken).not_to_have_text(first)
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)


def test_zooming_is_kept_in_the_link_which_shows_the_same_again(
    finished: str, open_page: OpenPage
) -> None:
    page = open_page(finished)
    _loaded(page)
    window = page.get_by_role("slider", name="Window in the run")
    for _ in range(4):
        before = window.get_attribute("aria-valuetext") or ""
        page.keyboard.press("w")
        expect(window).not_to_have_attribute("aria-valuetext", before)
    shown = window.get_attribute("aria-valuetext") or ""
    page.wait_for_function(_LINK_NAMES, arg=re.findall(r"[\d.]+", shown))

    again = open_page(page.url)
    _loaded(again)

    window = again.get_by_role("slider", name="Window in the run")
    expect(window).to_have_attribute("aria-valuetext", shown)


def test_a_drawn_area_is_added_up(finished: str, open_page: OpenPage) -> None:
    page = open_page(finished)
    box = _loaded(page)
    _unfold(page)
    page.mouse.move(box["x"] + 2, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] - 20, steps=4)
    page.mouse.up()

    area = page.get_by_role("dialog", name="Area")
    expect(area.get_by_role("table", name="area by name")).to_contain_text("generate")
    expect(area.get_by_role("table", name="area by host")).to_contain_text("host-")


def test_a_key_lists_what_is_drawn_as_tables(finished: str, open_page: OpenPage) -> None:
    page = open_page(finished)
    _loaded(page)
    _unfold(page)
    page.keyboard.press("l")
    tables = page.get_by_role("region", name="What is in view, as tables")
    expect(tables).to_be_focused()
    spans = tables.get_by_role("table", name="Spans in view").locator("tbody tr")
    note = tables.locator("p").first.inner_text()
    listed, more = (int(each.replace(",", "")) for each in re.findall(r"\d[\d,]*", note))
    expect(spans).to_have_count(listed)

    mean = tables.get_by_role("table", name="In flight in the run").locator("td:nth-child(2)")
    assert max(float(each) for each in mean.all_inner_texts()) > 1
    assert mean.all_inner_texts() == (
        tables.get_by_role("table", name="In flight in view")
        .locator("td:nth-child(2)")
        .all_inner_texts()
    )

    page.get_by_role("button", name="Zoom in (W)").click()
    expect(tables.locator("p").first).not_to_have_text(note)
    now = tables.locator("p").first.inner_text()
    fewer = sum(int(each.replace(",", "")) for each in re.findall(r"\d[\d,]*", now))
    assert 0 < fewer < listed + more

    spans.first.get_by_role("button").press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()


def test_the_table_below_holds_the_spans_in_view_also_on_a_phone(
    finished: str, open_page: OpenPage
) -> None:
    page = open_page(finished, viewport=PHONE)
    _loaded(page)
    _unfold(page)
    page.get_by_role("button", name="Table", exact=True).click()
    spans = page.get_by_role("table", name="Spans in view").locator("tbody tr")
    expect(spans.first.locator("td[data-title=Lane]")).to_have_text("trainer 0")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_live_run_is_followed_until_the_reader_moves(live: str, open_page: OpenPage) -> None:
    page = open_page(live)
    _loaded(page)
    expect(page.get_by_text("Following")).to_be_visible()
    page.keyboard.press("a")
    pill = page.get_by_role("button", name=re.compile("Paused, .* new"))
    expect(pill).to_be_visible()
    pill.click()
    expect(page.get_by_text("Following")).to_be_visible()
