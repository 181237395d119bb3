"""A table that one moves in: as many columns as fit, and a cursor that stays with its line."""

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.message import Message
from textual.widgets import DataTable

from rollscope.screens.sheet import RankedColumn, fitting_columns
from rollscope.screens.tables import Column, clean, fit_widths

__all__ = ["Grid"]

_SCROLLBAR: Final = 1
_PADDING: Final = 1
_STYLES: Final = {
    "stuck": "bold red",
    "overdue": "bold red",
    "silent": "bold magenta",
    "slow": "yellow",
    "failed": "red",
    "timeout": "red",
    "lost": "magenta",
    "accepted": "green",
}
"""Words that have a colour wherever they fill a cell; all of them can be told without it."""


class Grid(DataTable[Text]):
    """Lines of text under heads; Enter opens the one under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
    ]

    class Opened(Message):
        """Somebody wants to see more of a line."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, *, name: str | None = None, id: str | None = None) -> None:
        super().__init__(
            name=name, id=id, cursor_type="row", zebra_stripes=False, cell_padding=_PADDING
        )
        self._columns: Sequence[RankedColumn] = ()
        self._lines: list[list[str]] = []
        self._keys: list[str] = []
        self._drawn: object = None

    def fill(
        self, columns: Sequence[RankedColumn], lines: list[list[str]], keys: list[str]
    ) -> None:
        """Show other lines; the cursor stays with the key it is on.

        Args:
            columns: Heads, and which go first where there is little room.
            lines: Cells as they were recorded; they are made safe here.
            keys: What `Opened` tells of each line; empty where there is nothing to open.
        """
        self._columns, self._lines, self._keys = columns, lines, keys
        self._draw()

    def on_resize(self, event: Resize) -> None:
        """Fit the columns to the new width."""
        self._draw()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Pass on which line was opened."""
        event.stop()
        if event.cursor_row < len(self._keys) and self._keys[event.cursor_row]:
            self.post_message(self.Opened(self._keys[event.cursor_row]))

    def _draw(self) -> None:
        # With the bar always counted: filling a table shows it, and would change the width again.
        room = self.outer_size.width - _SCROLLBAR
        drawn = (room, self._lines, self._keys, self._columns)
        if room <= 0 or drawn == self._drawn:
            return
        at, top = self._place_of_cursor(), self.scroll_y
        self._drawn = drawn
        self.clear(columns=True)
        # The gap that text tables keep between columns is the padding on both sides of a cell here.
        places = fitting_columns(self._columns, self._lines, room - 2 * _PADDING)
        columns = [self._columns[place][1] for place in places]
        safe = [[clean(line[place]) for place in places] for line in self._lines]
        natural = [
            max([cell_len(column.head), *(cell_len(line[number]) for line in safe)])
            for number, column in enumerate(columns)
        ]
        widths = fit_widths(columns, natural, room - 2 * _PADDING)
        for column, width in zip(columns, widths, strict=True):
            self.add_column(Text(column.head, justify=column.align), width=width)
        for line in safe:
            cells = zip(line, columns, widths, strict=True)
            self.add_row(*(_cell(text, column, width) for text, column, width in cells))
        self.move_cursor(row=at, animate=False, scroll=False)
        self.scroll_to(y=top, animate=False, force=True)

    def _place_of_cursor(self) -> int:
        """Give the line that the cursor should be on: that of the same key, else the same one."""
        before = self._drawn
        if isinstance(before, tuple) and self.cursor_row < len(before[2]):
            key = before[2][self.cursor_row]
            if key and key in self._keys:
                return self._keys.index(key)
        return min(self.cursor_row, max(len(self._keys) - 1, 0))


def _cell(text: str, column: Column, width: int) -> Text:
    return Text(
        column.cut_to(text, width),
        style=_STYLES.get(text, ""),
        justify=column.align,
        no_wrap=True,
    )
