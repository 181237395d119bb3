"""The app: keys, the way from page to page, and the hand-over from the reading thread."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import App
from textual.binding import Binding, BindingType
from textual.events import Event, Key
from textual.message import Message

from rollscope.tui.grid import Grid
from rollscope.tui.help import HelpScreen
from rollscope.tui.reader import Fault, Opening, Reader, Reading, Report, Trouble, Wish
from rollscope.tui.waiting import WaitingScreen

if TYPE_CHECKING:
    from rollscope.tui.pages.page import Page

__all__ = ["TopApp"]

_THEMES: Final = ("ansi-dark", "textual-dark", "textual-light")
_ONLY_THERE: Final = {"t": "The timeline", "e": "The list of sessions", "h": "Health"}
_FIRST: Final = Wish("overview")
"""Tells which page to land on."""


class TopApp(App[Exception | None]):
    """`rollscope top`; ends with the error of the reading thread, if that had one."""

    CSS_PATH = "top.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", show=False),
        Binding("question_mark", "help", show=False),
        Binding("escape", "leave", show=False),
        Binding("space", "pause", show=False),
        Binding("t", "theme", show=False),
        Binding("left_square_bracket", "neighbour(-1)", show=False),
        Binding("right_square_bracket", "neighbour(1)", show=False),
    ]

    class Told(Message):
        """The reading thread has found something."""

        def __init__(self, report: Report) -> None:
            super().__init__()
            self.report = report

    def __init__(
        self, find: Callable[[], Path], *, every_s: float = 1.0, threads: int | None = None
    ) -> None:
        """Prepare the app.

        Args:
            find: Finds the run; raises while there is none.
            every_s: How often to look at it.
            threads: How many threads a query may use; all cores if not given.
        """
        # The terminal's own sixteen colours: with them alone NO_COLOR leaves no colour at all.
        super().__init__(ansi_color=True)
        self.theme = _THEMES[0]
        self._reader = Reader(find, self._hear, every_s=every_s, threads=threads)
        self._is_paused = False
        self._is_going = False
        self._has_landed = False
        self._waiting = WaitingScreen()
        self._known: dict[Wish, Reading] = {}

    def on_mount(self) -> None:
        """Draw something at once, and begin to read."""
        self.push_screen(self._waiting)
        self._reader.want(_FIRST)
        self._reader.start()

    def on_unmount(self) -> None:
        """Let go of the run."""
        self._reader.stop()

    def _hear(self, report: Report) -> None:
        if isinstance(report, Reading):
            import rollscope.tui.pages.now  # noqa: F401  (loaded here, where it keeps nobody waiting)
        self.post_message(self.Told(report))

    def on_top_app_told(self, told: Told) -> None:
        """Show what the thread has found, unless the screens are being taken down."""
        if not self.is_running:
            return
        match told.report:
            case Fault(error):
                self.exit(error)
            case Reading() as reading if reading.wish == _FIRST:
                self._land(reading)
            case Reading() as reading:
                self._known = {**self._known, reading.wish: reading}
                for page in self._pages():
                    if page.wish == reading.wish:
                        page.show(reading)
                    page.show_notice(None)
            case Opening() | Trouble() as notice:
                self._show_notice(notice)

    def _land(self, reading: Reading) -> None:
        """Show the first page: what is going on in a run that lives, else its steps."""
        if self._has_landed:
            return
        self._has_landed = True
        from rollscope.tui.pages.now import NowPage
        from rollscope.tui.pages.steps import StepsPage

        self._go_to(StepsPage() if reading.run.home == "steps" else NowPage())

    def _show_notice(self, notice: Opening | Trouble) -> None:
        if not self._has_landed:  # pages are not loaded yet
            self._waiting.show_notice(notice)
            return
        for page in self._pages():
            page.show_notice(notice)

    def _pages(self) -> "list[Page]":
        from rollscope.tui.pages.page import Page

        return [screen for screen in self.screen_stack if isinstance(screen, Page)]

    def _go_to(self, page: "Page", *, is_deeper: bool = False) -> None:
        """Show a page: above the present one, or instead of all there are."""
        if not is_deeper:
            while self._pages():
                self.pop_screen()
        self.push_screen(page)
        self._arrive(page)

    def _arrive(self, page: "Page") -> None:
        """Ask for what a page needs; what is known of it is shown meanwhile."""
        self._reader.want(page.wish)
        page.show_paused(self._is_paused)
        if page.wish in self._known:
            page.show(self._known[page.wish])

    def on_grid_opened(self, opened: Grid.Opened) -> None:
        """Open the step or session of a line."""
        from rollscope.tui.pages.session import SessionPage
        from rollscope.tui.pages.step import StepPage

        opened.stop()
        is_step = opened.key.isdigit() and len(opened.key) < 16
        page = StepPage(int(opened.key)) if is_step else SessionPage(opened.key)
        self._go_to(page, is_deeper=True)

    def action_leave(self) -> None:
        """Leave a page for the one below; the last one stays."""
        pages = self._pages() if self._has_landed else []
        if len(pages) > 1:
            self.pop_screen()
            self._arrive(pages[-2])

    def action_neighbour(self, by: int) -> None:
        """Go to the step or sibling before or after."""
        pages = self._pages() if self._has_landed else []
        turn = getattr(pages[-1], "neighbour", None) if pages else None
        page = None if turn is None else turn(by)
        if page is not None:
            self.pop_screen()
            self._go_to(page, is_deeper=True)

    async def on_event(self, event: Event) -> None:
        """Take g and the key after it before anything else does: both may arrive at once."""
        if isinstance(event, Key) and not event.is_forwarded:
            if self._is_going:
                self._is_going = False
                self._go_by(event.key)
                return
            if event.key == "g" and not self.screen.is_modal:
                self._is_going = True
                return
        await super().on_event(event)

    def _go_by(self, key: str) -> None:
        if not self._has_landed:
            return
        from rollscope.tui.pages.now import NowPage
        from rollscope.tui.pages.steps import StepsPage

        if key == "n":
            self._go_to(NowPage())
        elif key == "s":
            self._go_to(StepsPage())
        elif key in _ONLY_THERE:
            self.notify(f"{_ONLY_THERE[key]} is on the page: rollscope view")

    def action_pause(self) -> None:
        """Stop looking for what is new, or go on."""
        self._is_paused = not self._is_paused
        self._reader.pause(self._is_paused)
        for page in self._pages() if self._has_landed else ():
            page.show_paused(self._is_paused)

    def action_theme(self) -> None:
        """Take the next set of colours."""
        self.theme = _THEMES[(_THEMES.index(self.theme) + 1) % len(_THEMES)]

    def action_help(self) -> None:
        """List the keys."""
        self.push_screen(HelpScreen())
