"""What all pages have: the head with the state of the run, a line for troubles, the keys below."""

from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Resize
from textual.screen import Screen as TextualScreen
from textual.widgets import Static

from rollscope.answers.overview import Overview
from rollscope.screens.now import say_state
from rollscope.screens.tables import Screen, clean, shorten
from rollscope.screens.words import say_clock
from rollscope.tui.reader import Opening, Reading, Trouble, Wish

__all__ = ["Page", "Story", "styled"]

_FREE: Final = 3
_BROKEN: Final = 20
"""What breaking a sentence into two lines may leave empty at the end of the first."""


def styled(text: str) -> Text:
    """Give a text of ours with its styles, which are all that it has of escape sequences."""
    return Text.from_ansi(text.rstrip("\n"), no_wrap=True, end="")


class Story(VerticalScroll):
    """A text that may be taller than its place."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", show=False),
        Binding("k", "scroll_up", show=False),
    ]

    def compose(self) -> ComposeResult:
        """Hold one text."""
        yield Static(id="story", markup=False)

    def tell(self, text: Text) -> None:
        """Show another text, from the same place on."""
        self.query_one("#story", Static).update(text)


class Page(TextualScreen[None]):
    """One page; shows what it is given, and again when the terminal changes its size."""

    KEYS: ClassVar[str]
    """The keys that matter here, for the line at the bottom."""

    def __init__(self, heading: str, wish: Wish) -> None:
        """Make a page.

        Args:
            heading: What it is called in its head.
            wish: What it wants to know.
        """
        super().__init__()
        self.heading = heading
        self.wish = wish
        self._reading: Reading | None = None
        self._notice: Trouble | Opening | None = None
        self._is_paused = False

    def compose(self) -> ComposeResult:
        """Hold the head, the page's own parts, and the keys."""
        yield Static(id="head", markup=False)
        yield Static(id="notice", markup=False)
        yield from self.compose_body()
        yield Static(f" {self.KEYS}  ? keys  q quit", id="keys", markup=False)

    def compose_body(self) -> ComposeResult:
        """Give the page's own parts."""
        raise NotImplementedError

    def draw(self, reading: Reading) -> None:
        """Show an answer; called again when the size changes."""
        raise NotImplementedError

    @property
    def canvas(self) -> Screen:
        """What a text of the whole width can hold.

        A cell stays free on both sides, and one for the bar that a story is scrolled with.
        """
        return Screen(width=max(self.size.width - _FREE, 20), has_colour=True)

    def show(self, reading: Reading) -> None:
        """Show what was read."""
        self._reading, self._notice = reading, None
        self._redraw()

    def show_notice(self, notice: Trouble | Opening | None) -> None:
        """Say why there is nothing new; what was shown before stays."""
        self._notice = notice
        self._draw_head()

    def show_paused(self, is_paused: bool) -> None:
        """Say whether anything new is looked for."""
        self._is_paused = is_paused
        self._draw_head()

    def on_mount(self) -> None:
        """Say at once that something is being read."""
        self._draw_head()

    def on_resize(self, event: Resize) -> None:
        """Fit everything to the new size."""
        self._redraw()

    def _redraw(self) -> None:
        if not self.is_mounted:
            return
        if self._reading is not None and self._reading.answer is not None:
            self.draw(self._reading)
        self._draw_head()

    def _draw_head(self) -> None:
        if not self.is_mounted:
            return
        width = max(self.size.width - 2, 20)
        self.query_one("#head", Static).update(self._head(width))
        sentence, style = self._say_notice()
        notice = self.query_one("#notice", Static)
        notice.update(Text(shorten(clean(sentence), 2 * width - _BROKEN), style=style))
        notice.display = bool(sentence)

    def _head(self, width: int) -> Text:
        run = None if self._reading is None else self._reading.run
        title = f"rollscope top  {self.heading}"
        if run is None:
            return Text(title, style="bold")
        state = "paused" if self._is_paused else say_state(run)
        right = f"{state}  {say_clock(run.now_ns)}"
        left = f"{self.heading}  {clean(run.name)}"
        left = shorten(left, max(width - len(right) - 2, 8))
        return Text(f"{left}{' ' * max(width - len(left) - len(right), 1)}{right}", style="bold")

    def _say_notice(self) -> tuple[str, str]:
        match self._notice:
            case Trouble(sentence):
                again = "paused" if self._is_paused else "looking again"
                return f"Cannot read the run, {again}: {sentence}", "bold red"
            case Opening(share):
                return f"Reading the logs: {share:.0%}", "bold"
        if self._reading is None:
            return "Looking for the run…", "bold"
        if self._reading.refusal:
            return self._reading.refusal, "bold red"
        return _say_badges(self._reading.run), "yellow"


def _say_badges(run: Overview) -> str:
    return " ".join(badge.sentence for badge in run.completeness.badges)
