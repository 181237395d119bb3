"""Is it healthy, what is stuck: the landing page of a run that lives."""

from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from rollscope.analysis.wording import say_count
from rollscope.answers.now import Now
from rollscope.model.refs import span_hex
from rollscope.screens.now import (
    ERROR_COLUMNS,
    HOST_COLUMNS,
    OPEN_COLUMNS,
    error_cells,
    host_cells,
    is_imported,
    open_cells,
    show_phases,
    show_waits,
)
from rollscope.screens.sheet import Sheet
from rollscope.screens.tiles import show_tiles, tiles_of
from rollscope.tui.grid import Grid
from rollscope.tui.pages.page import Page, styled
from rollscope.tui.reader import Reading, Wish

__all__ = ["NowPage"]

_TALL: Final = 44
"""From which height on all tables are shown at once."""
_PHASES_LOW: Final = 3
_PHASES_TALL: Final = 8
_TABLES: Final = ("stuck", "hosts", "errors")
_BINS: Final = "180"


class NowPage(Page):
    """Tiles, sessions in flight by phase, who waits; then what is stuck, hosts and errors."""

    KEYS = "Enter session  Tab table  g s steps  Space pause"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "turn(1)", show=False, priority=True),
        Binding("shift+tab", "turn(-1)", show=False, priority=True),
    ]

    def __init__(self) -> None:
        super().__init__("Now", Wish("now", (("bins", _BINS),)))
        self._table = 0
        self._heads: list[str] = [""] * len(_TABLES)

    def compose_body(self) -> ComposeResult:
        """Give the numbers above and the tables below."""
        yield Static(id="numbers", markup=False)
        with Vertical(id="tables"):
            for name in _TABLES:
                yield Static(id=f"{name}-head", classes="table-head", markup=False)
                yield Grid(id=name)

    def on_mount(self) -> None:
        """Begin with what is stuck."""
        super().on_mount()
        self._arrange()
        self.query_one("#stuck", Grid).focus()

    def action_turn(self, by: int) -> None:
        """Go to another table."""
        self._table = (self._table + by) % len(_TABLES)
        self._arrange()
        self.query_one(f"#{_TABLES[self._table]}", Grid).focus()

    def draw(self, reading: Reading) -> None:
        """Show how the run is doing."""
        now = reading.answer
        if not isinstance(now, Now):
            return
        self.heading = "Now" if now.is_alive else "Now, as of its end"
        sheet = Sheet(self.canvas)
        show_tiles(sheet, tiles_of(now))
        show_phases(sheet, now.by_phase, most=_PHASES_TALL if self._is_tall else _PHASES_LOW)
        if now.waits:
            show_waits(sheet, now.waits)
        self.query_one("#numbers", Static).update(styled(sheet.text))
        self._fill(now, lives=not is_imported(reading.run))
        self._heads = [
            f"Stuck and slow: {say_count(now.alarms, 'alarm')}, {now.open_sessions:,} open",
            f"Hosts: {len(now.hosts.lines):,}",
            f"Errors in 15 min: {now.errors.total:,}",
        ]
        self._arrange()

    def _fill(self, now: Now, *, lives: bool) -> None:
        self.query_one("#stuck", Grid).fill(
            OPEN_COLUMNS,
            [open_cells(row, now.now_ns) for row in now.stuck],
            ["" if row.session_id is None else span_hex(row.session_id) for row in now.stuck],
        )
        hosts = now.hosts.lines
        self.query_one("#hosts", Grid).fill(
            HOST_COLUMNS, [host_cells(line, lives=lives) for line in hosts], [""] * len(hosts)
        )
        lines = now.errors.lines
        self.query_one("#errors", Grid).fill(
            ERROR_COLUMNS,
            [error_cells(line, now.now_ns) for line in lines],
            ["" if one.example_session is None else span_hex(one.example_session) for one in lines],
        )

    @property
    def _is_tall(self) -> bool:
        return self.size.height >= _TALL

    def _arrange(self) -> None:
        """Show all tables where there is room, else one and the heads of all in a line."""
        self.set_class(self._is_tall, "tall")
        for place, name in enumerate(_TABLES):
            is_here = place == self._table
            head = self.query_one(f"#{name}-head", Static)
            self.query_one(f"#{name}", Grid).display = self._is_tall or is_here
            head.display = self._is_tall or place == 0
            head.update(self._head_of(place) if self._is_tall else self._all_heads())

    def _head_of(self, place: int) -> Text:
        style = "bold reverse" if place == self._table else "bold"
        return Text(f" {self._heads[place]} ", style=style)

    def _all_heads(self) -> Text:
        return Text(" ").join(self._head_of(place) for place in range(len(_TABLES)))
