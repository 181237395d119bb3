"""Everything without a mouse: Tab reaches each control and shows where it is, keys do the rest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.sweep import settle, unfold

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser.conftest import OpenPage, Serve

_CONTROLS = """() => {
    const all = "a[href], button, input, select, summary, [tabindex='0']";
    const found = [...document.querySelectorAll(all)].filter((one) =>
        one.checkVisibility() && !one.disabled && one.tabIndex >= 0 && !one.closest("dialog"));
    found.forEach((one, index) => { one.dataset.control = index; });
    return found.length;
}"""

_FOCUSED = """() => {
    const one = document.activeElement;
    const style = getComputedStyle(one);
    const isRinged = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
    return {control: one.dataset.control ?? "", isRinged, what: one.outerHTML.slice(0, 120)};
}"""


@pytest.fixture(scope="module")
def site(server: Serve, hanging_run: Path) -> str:
    """Serve a run that lives."""
    return server(hanging_run.parent)


@pytest.mark.parametrize("name", ["now", "timeline", "sessions"])
def test_tab_reaches_every_control_and_shows_where_it_is(
    name: str, site: str, open_page: OpenPage
) -> None:
    page = open_page(f"{site}#/run/{name}")
    unfold(page)
    page.keyboard.press("Space")  # so that nothing comes or goes meanwhile
    total = page.evaluate(_CONTROLS)
    assert total > 10

    reached: set[str] = set()
    unringed: list[str] = []
    for _ in range(total + 20):
        page.keyboard.press("Tab")
        at = page.evaluate(_FOCUSED)
        if at["control"] in reached:
            break
        if at["control"]:
            reached.add(at["control"])
            unringed += [] if at["isRinged"] else [at["what"]]

    assert unringed == []
    missed = page.evaluate(
        """(reached) => [...document.querySelectorAll("[data-control]")].filter(
            (one) => !reached.includes(one.dataset.control)).map((one) => one.outerHTML)""",
        sorted(reached),
    )
    assert missed == []


def test_keys_go_to_pages_and_open_lists(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/run/now")
    settle(page)
    for key, name in (("s", "steps"), ("t", "timeline"), ("e", "sessions"), ("h", "health")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(re.compile(f"#/run/{name}"))
        settle(page)
    page.goto(f"{site}#/run/sessions")
    settle(page)
    page.keyboard.press("/")
    box = page.get_by_label("Filter", exact=True)
    expect(box).to_be_focused()
    page.keyboard.type("g h status:open")
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile("/sessions"))

    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("Go to Health")
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()

    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Command")).to_be_focused()
    page.keyboard.type("go to steps")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("#/run/steps"))


def test_keys_can_be_switched_off(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/run/now")
    settle(page)
    page.keyboard.press("?")
    page.get_by_label("Keys without Ctrl are on").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("h")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Commands")).to_be_visible()
    expect(page).to_have_url(re.compile("/now"))


def test_a_row_opens_and_a_link_survives_a_reload(site: str, open_page: OpenPage) -> None:
    page = open_page(f"{site}#/run/steps")
    rows = page.get_by_role("table", name="Steps").locator("tbody tr")
    rows.first.focus()
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("#/run/step/4"))
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_contain_text("4")
    page.keyboard.press("Escape")
    page.wait_for_url(re.compile("#/run/steps"))
