"""Zooming and panning: how many pictures a second a page paints while somebody moves it."""

from __future__ import annotations

import itertools
import statistics
from typing import TYPE_CHECKING, Any, Final

from browsing.harness import wait_for
from browsing.opening import new_page, open_timeline

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["measure_moving"]

_LANES: Final = 64
_WATCH: Final = """() => {
    const seen = { at: [], painted: [] };
    globalThis.rollscopeSeen = seen;
    const canvas = document.querySelector(".tl-base");
    const note = (at) => {
        seen.at.push(at);
        seen.painted.push(Number(canvas.dataset.paintMs));
        if (!seen.isOver) requestAnimationFrame(note);
    };
    requestAnimationFrame(note);
}"""
_TAKE: Final = """() => {
    const seen = globalThis.rollscopeSeen;
    seen.isOver = true;
    return seen;
}"""
_FRAMES: Final = "() => Number(document.querySelector('.tl-base').dataset.frames)"


def measure_moving(browser: Browser, url: str, seconds: float) -> dict[str, Any]:
    """Move a timeline of about 64 lanes in view by wheel, drag and keys."""
    page = new_page(browser)
    open_timeline(page, url)
    lanes = _show_lanes(page)
    page.evaluate(_WATCH)
    frames = page.evaluate(_FRAMES)
    _move(page, seconds)
    seen = page.evaluate(_TAKE)
    painted = page.evaluate(_FRAMES) - frames
    page.context.close()
    times = seen["at"]
    gaps = sorted(after - before for before, after in itertools.pairwise(times))
    return {
        "lanes": lanes,
        "fps_median": 1e3 / statistics.median(gaps),
        "frame_p95_ms": gaps[int(0.95 * (len(gaps) - 1))],
        "frame_max_ms": gaps[-1],
        "painted_per_s": painted / ((times[-1] - times[0]) / 1e3),
        "paint_median_ms": statistics.median(seen["painted"]),
    }


def _show_lanes(page: Page) -> int:
    """Unfold the groups and make the window so high that 64 lanes are in view; count them."""
    unfold = page.get_by_role("button", name="Unfold all")
    if unfold.count():
        unfold.click()
    wait_for(page, "() => document.querySelector('.tl-lane, .tl-group') !== null")
    page.wait_for_timeout(300)
    in_view = _lanes_in_view(page)
    if in_view not in (0, _LANES):
        box = page.locator(".tl-surface").bounding_box()
        assert box is not None
        size = page.viewport_size
        assert size is not None
        spare = int(box["height"] * (1 - _LANES / in_view))
        page.set_viewport_size({"width": size["width"], "height": size["height"] - spare})
        page.wait_for_timeout(300)
    return _lanes_in_view(page)


def _lanes_in_view(page: Page) -> int:
    """Count lanes by the share of their height that is in view: low ones have no name to count."""
    return int(
        page.evaluate(
            """() => {
                const surface = document.querySelector(".tl-surface");
                const words = surface.getAttribute("aria-label").match(/, (\\d+) lanes/);
                const high = document.querySelector(".tl-spacer").offsetHeight;
                const share = Math.min(surface.clientHeight / Math.max(high, 1), 1);
                return Math.round(Number(words?.[1] ?? 0) * share);
            }"""
        )
    )


def _move(page: Page, seconds: float) -> None:
    """Zoom in and out with the wheel, drag to and fro, and hold keys down."""
    box = page.locator(".tl-surface").bounding_box()
    assert box is not None
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    rounds = max(int(seconds * 1e3 / 16 / 3), 10)
    page.keyboard.down("Control")
    for number in range(rounds):
        page.mouse.wheel(0, -40 if number < rounds * 0.7 else 40)
        page.wait_for_timeout(12)
    page.keyboard.up("Control")
    page.keyboard.down("Shift")
    page.mouse.down()
    for number in range(rounds):
        page.mouse.move(middle[0] + 300 * (number % 60 - 30) / 30, middle[1])
        page.wait_for_timeout(12)
    page.mouse.up()
    page.keyboard.up("Shift")
    for number in range(rounds // 4):
        page.keyboard.press("aadd"[number % 4])
        page.wait_for_timeout(40)
