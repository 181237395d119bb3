"""A page of text in the making: sentences, tables that drop columns before they overflow, plots."""

import textwrap
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from rollscope.screens.tables import UNIT_GAP, Column, Screen, clean, render, shorten, show_table

__all__ = ["RankedColumn", "Sheet", "fitting_columns"]

RankedColumn = tuple[int, Column]
"""A column and how soon it goes where the terminal is narrow: 0 stays, the highest goes first.

Columns of one number go together, as those of two sides that are compared."""

_UNCUT: Final = 100
"""How wide plots are where nobody cuts lines."""
_GAP: Final = 2
_LEAST: Final = (16, 12)
"""What a column that may be shortened keeps before others go: one that stays, and any other."""
_GLUE: Final = "\x00"
"""Stands for a blank at which no line is broken; `clean` lets no other one through."""
_NOTHING: Final = frozenset({"", "-"})


class Sheet:
    """Collects what a command prints."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self._parts: list[str] = []

    @property
    def width(self) -> int:
        """How many cells a line has; plots are as wide at most."""
        return self.screen.width or _UNCUT

    @property
    def is_unicode(self) -> bool:
        """Whether more than ASCII can be shown."""
        return self.screen.is_unicode

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self._parts)

    def say(self, text: str, *, indent: int = 0, style: str = "") -> None:
        """Add a sentence, broken into lines; further lines are indented as much."""
        lines = self._broken(UNIT_GAP.sub(_GLUE, self._safe(text)), indent)
        self._add(Text("\n".join(lines), style=style))

    def point(self, text: str) -> None:
        """Add an item of a list; further lines are set below its text."""
        lines = self._broken(UNIT_GAP.sub(_GLUE, self._safe(text)), 2)
        self._add(Text("\n".join(["- " + lines[0][2:], *lines[1:]])))

    def items(self, items: Sequence[str], *, indent: int = 0) -> None:
        """Add short texts side by side, none of them broken."""
        glued = [self._safe(item).replace(" ", _GLUE) for item in items]
        self._add(Text("\n".join(self._broken((_GLUE + " ").join(glued), indent))))

    def command(self, lead: str, command: str) -> None:
        """Say what to type next; whole and on one line, so that it can be copied."""
        both = self._safe(f"{lead} {command}")
        if self.screen.width is not None and cell_len(both) > self.screen.width:
            self.say(lead)
            both = self._safe(f"  {command}")
        self._add(Text(both))

    def line(self, text: str, *, style: str = "") -> None:
        """Add a line that is cut, not broken."""
        safe = self._safe(text)
        if self.screen.width is not None:
            safe = shorten(safe, self.screen.width, dots="…" if self.is_unicode else "...")
        self._add(Text(safe, style=style))

    def blank(self) -> None:
        """Add an empty line."""
        self._parts.append("\n")

    def heading(self, text: str) -> None:
        """Begin a part, an empty line above it."""
        self.blank()
        self.line(text, style="bold")

    def table(
        self, columns: Sequence[RankedColumn], rows: Sequence[Sequence[str]], *, indent: int = 0
    ) -> list[str]:
        """Add a table, without columns that are empty or for which there is no room.

        Returns:
            The heads of those that are shown.
        """
        if not rows:
            return []
        room = None if self.screen.width is None else self.screen.width - indent
        kept = fitting_columns(columns, rows, room)
        shown = [columns[place][1] for place in kept]
        cells = [[row[place] for place in kept] for row in rows]
        self._parts.append(show_table(shown, cells, self.screen, indent=indent))
        return [column.head for column in shown]

    def _safe(self, text: str) -> str:
        return self.screen.fit(clean(text))

    def _broken(self, text: str, indent: int) -> list[str]:
        """Break a text into lines at its blanks."""
        lines = [text]
        if self.screen.width is not None:
            room = max(self.screen.width - indent, 20)
            lines = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
        return [" " * indent + line.replace(_GLUE, " ").rstrip() for line in lines]

    def _add(self, part: RenderableType) -> None:
        self._parts.append(render([part], self.screen))


def fitting_columns(
    columns: Sequence[RankedColumn], rows: Sequence[Sequence[str]], room: int | None
) -> list[int]:
    """Give the places of the columns to show: none that is empty, and no more than fit.

    Args:
        columns: All of them.
        rows: What stands in them.
        room: Cells of a line; None where nobody cuts lines.
    """
    kept = [
        place
        for place, (rank, _) in enumerate(columns)
        if rank == 0 or any(row[place].strip() not in _NOTHING for row in rows)
    ]
    if room is None:
        return kept
    least = {place: _least_width(columns[place], [r[place] for r in rows]) for place in kept}
    while sum(least[place] + _GAP for place in kept) - _GAP > room:
        highest = max(columns[place][0] for place in kept)
        if highest == 0:
            break
        kept = [place for place in kept if columns[place][0] < highest]
    return kept


def _least_width(ranked: RankedColumn, cells: Sequence[str]) -> int:
    rank, column = ranked
    natural = max([cell_len(column.head), *(cell_len(clean(cell)) for cell in cells)])
    least = max(cell_len(column.head), _LEAST[rank > 0])
    return min(natural, least) if column.can_shrink else natural
