"""Pages that are left before they are done: whatever they had begun ends without a complaint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser.conftest import OpenPage, Serve

_PAGES = ("now", "steps", "sessions", "timeline", "compare", "health", "step/1")
_LEAVE_AMID_A_PICTURE = """async (there) => {
    const surface = document.querySelector(".tl-surface");
    const { left, top, width, height } = surface.getBoundingClientRect();
    surface.dispatchEvent(new WheelEvent("wheel", {
        deltaY: -40, ctrlKey: true, bubbles: true, cancelable: true,
        clientX: left + width / 2, clientY: top + height / 2,
    }));
    // As a click on a link, but at once: the next frame of the screen must find the page gone.
    history.pushState(null, "", there);
    dispatchEvent(new HashChangeEvent("hashchange"));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
_HOP = """async (places) => {
    for (const place of places) {
        location.hash = place;
        await new Promise((done) => setTimeout(done, 40));
    }
}"""


@pytest.fixture(scope="module")
def run(server: Serve, crashed_run: Path) -> tuple[str, str]:
    """Give where the server is, and the part of addresses that names the run."""
    return server(crashed_run), f"#/{crashed_run.name}"


def test_a_timeline_can_be_left_while_it_is_painted(
    run: tuple[str, str], open_page: OpenPage
) -> None:
    site, base = run
    page = open_page(f"{site}{base}/timeline")
    for _ in range(3):
        page.locator(".tl-base[data-whole=true]").wait_for()
        page.evaluate(_LEAVE_AMID_A_PICTURE, f"{base}/health")
        expect(page.locator(".tl")).to_have_count(0)
        page.evaluate("there => { location.hash = there; }", f"{base}/timeline")


def test_pages_can_be_left_as_soon_as_they_are_opened(
    run: tuple[str, str], open_page: OpenPage
) -> None:
    site, base = run
    page = open_page(f"{site}{base}/timeline")
    page.locator(".tl-base[data-whole=true]").wait_for()
    page.evaluate(_HOP, [f"{base}/{one}" for one in _PAGES * 6])
    page.evaluate("there => { location.hash = there; }", f"{base}/timeline")
    page.locator(".tl-base[data-whole=true]").wait_for()
