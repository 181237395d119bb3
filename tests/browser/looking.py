"""What a reader sees on the page: tables as rows, panels as text. Nothing here asks the server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect

from tests.browser.figures import agree, apart, figures
from tests.browser.sweep import settle, unfold

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playwright.sync_api import Page

__all__ = ["Look", "assert_same_cells"]

_TABLE = """(table) => {
    const heads = [...table.querySelectorAll("thead tr > *")];
    const titles = heads.map((one) => one.innerText.replace(/[▲▼]/g, "").trim());
    return [...table.querySelectorAll("tbody tr:not(.unfolded)")].map((row) => {
        const cells = [...row.cells].map((one, i) => [titles[i], one.innerText.trim()]);
        const link = row.querySelector("a")?.getAttribute("href") ?? "";
        return {...Object.fromEntries(cells), link};
    }).filter((row) => Object.keys(row).length > 2);
}"""

Row = dict[str, str]


class Look:
    """One page, at the places that a test goes to."""

    def __init__(self, page: Page, site: str, run: str) -> None:
        """Begin where the page is."""
        self.page, self._site, self._run = page, site, run

    def go(self, place: str) -> None:
        """Open a place of the run and wait for all of it."""
        self.page.goto(f"{self._site}#/{self._run}/{place}")
        unfold(self.page)

    def press(self, name: str) -> None:
        """Press a button of the page."""
        self.page.get_by_role("button", name=name, exact=True).first.click()
        settle(self.page)

    def table(self, name: str) -> list[Row]:
        """Read all rows of a table."""
        found = self.page.get_by_role("table", name=name, exact=True)
        box = self.page.locator(".table-box", has=found)
        for more in box.get_by_role("button", name="Show all").all():
            more.click()
        expect(found).to_have_count(1)
        rows: list[Row] = found.evaluate(_TABLE)
        return rows

    def text(self, panel: str) -> str:
        """Read a panel, its blanks made alike."""
        return _plain(self.page.locator(f"[data-panel={panel}]").first.inner_text())

    def lines(self, selector: str) -> list[str]:
        """Read the text of some elements."""
        return [_plain(each) for each in self.page.locator(selector).all_inner_texts()]

    def read(self, script: str) -> Any:
        """Read what else the document says."""
        return self.page.evaluate(script)

    def shares(self, label: str) -> dict[str, str]:
        """Read the parts of a bar: what is written beside each name."""
        parts = self.lines(f".split[aria-label='{label}'] .split-list li")
        cut = [re.fullmatch(r"(?:waiting: )?(.*?) ([<\d].*)", each.strip()) for each in parts]
        return {match[1]: match[2] for match in cut if match}


def _plain(text: str) -> str:
    return re.sub(r"[ \u00a0]+", " ", text)


def assert_same_cells(printed: Row, shown: Row, columns: Mapping[str, str | None]) -> None:
    """See that a printed row says what a row of the page says.

    Args:
        printed: By heads of the command.
        shown: By heads of the page.
        columns: The page's head for each printed one; None where the test looks elsewhere. One of
            several figures in a cell is named by its place, as in `Outcomes[1]`.
    """
    for head, cell in printed.items():
        if not figures(cell):
            continue
        assert head in columns, f"{head}: {cell} is compared with nothing"
        place = columns[head]
        if place is None:
            continue
        title, _, which = place.partition("[")
        if not which:
            assert apart(cell, shown[title]) == [], f"{head}: {cell} / {title}: {shown[title]}"
            continue
        there = figures(shown[title])[int(which[:-1])]
        assert agree(figures(cell)[0], there), f"{head}: {cell} / {place}: {shown[title]}"
