"""What is asked of every page alike: to settle, be accessible, fit, and show text as text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["AXE", "accessibility_faults", "overflow", "settle", "smuggled", "unfold"]

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"

_LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]

_SETTLED = """() => document.querySelector("main#main")
    && !document.querySelector(".skeleton, [aria-busy=true]")
    && !document.querySelector(".tl-base:not([data-whole=true])")
    && document.getAnimations().every((one) => one.playState !== "running"
        || one.effect.getComputedTiming().iterations === Infinity)"""

_FAULTS = """async (only) => {
    const found = await axe.run(document, {runOnly: only, resultTypes: ["violations"]});
    return found.violations.flatMap((rule) => rule.nodes.map((node) =>
        `${rule.id}: ${node.target.join(" ")}: ${node.failureSummary} ${node.html.slice(0, 120)}`));
}"""

_SMUGGLED = r"""() => {
    const marks = /[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
    const made = "[data-evil], [onerror], img, iframe, #app script, body > script";
    const found = [...document.querySelectorAll(made)].map((one) => one.outerHTML.slice(0, 200));
    if (marks.test(document.title)) found.push(`title ${document.title}`);
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const text = texts.currentNode;
        if (marks.test(text.data)) found.push(`text ${text.parentElement.outerHTML.slice(0, 300)}`);
    }
    for (const element of document.body.querySelectorAll("*")) {
        for (const {name, value} of element.attributes) {
            const isShown = name !== "value";
            if (isShown && marks.test(value)) found.push(`${name} ${value.slice(0, 300)}`);
        }
    }
    return found;
}"""


def settle(page: Page) -> None:
    """Wait until every panel in sight has got its answer, and a timeline all of its spans.

    It draws a picture from the server first, in which short neighbours are one.
    """
    page.wait_for_function(_SETTLED)


def unfold(page: Page) -> None:
    """Scroll to the end and back, since panels below the fold come late."""
    settle(page)
    seen = -1.0
    while (at := page.evaluate("scrollY + innerHeight")) != seen:
        seen = at
        page.evaluate("scrollBy(0, innerHeight * 0.9)")
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        settle(page)
    page.evaluate("scrollTo(0, 0)")


def accessibility_faults(page: Page, *, rules: list[str] | None = None) -> list[str]:
    """Give what axe finds at levels A and AA, or what breaks some of its rules."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    only: Any = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": _LEVELS}
    faults: list[str] = page.evaluate(_FAULTS, only)
    return [re.sub(r"\s+", " ", fault) for fault in faults]


def overflow(page: Page) -> int:
    """Say by how many pixels the page can be scrolled sideways."""
    wide: int = page.evaluate("document.scrollingElement.scrollWidth - innerWidth")
    return wide


def smuggled(page: Page) -> list[str]:
    """Give what became an element, or kept its power over the direction of text."""
    found: list[str] = page.evaluate(_SMUGGLED)
    return found
