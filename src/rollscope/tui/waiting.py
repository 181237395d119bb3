"""What is seen until the run is open: drawn at once, before anything heavy is loaded."""

from rich.text import Text
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from rollscope.tui.reader import Opening, Trouble

__all__ = ["WaitingScreen"]


class WaitingScreen(Screen[None]):
    """Says what is waited for."""

    def compose(self) -> ComposeResult:
        """Hold a head, a sentence and the keys."""
        yield Static(Text("rollscope top", style="bold"), id="head")
        yield Static("Looking for the run…", id="waiting", markup=False)
        yield Static(" q quit", id="keys", markup=False)

    def show_notice(self, notice: Opening | Trouble) -> None:
        """Say how far the opening is, or why there is nothing to open."""
        if isinstance(notice, Opening):
            sentence = f"Reading the logs: {notice.share:.0%}"
        else:
            safe = notice.sentence if notice.sentence.isprintable() else ascii(notice.sentence)
            sentence = f"{safe}\n\nLooking again every second."
        self.query_one("#waiting", Static).update(sentence)
