"""The keys of `rollscope top`, on a sheet over the page."""

from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Static

__all__ = ["KEYS", "HelpScreen"]

KEYS: Final[tuple[tuple[str, str], ...]] = (
    ("g n", "Now: what is in flight, what is stuck"),
    ("g s", "Steps"),
    ("j k, arrows", "next and previous line"),
    ("Enter", "open the line: its session, or its step"),
    ("Esc", "one level back"),
    ("Tab", "next table, or from the text to the table"),
    ("[ ]", "previous and next step, or sibling"),
    ("Space", "pause, and go on"),
    ("t", "colours: the terminal's own, dark, light"),
    ("?", "these keys"),
    ("q", "quit"),
)
"""Every key and what it does, in the order in which help lists them."""


class HelpScreen(ModalScreen[None]):
    """Lists the keys; any of them closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter,space", "dismiss", show=False, priority=True)
    ]

    def compose(self) -> ComposeResult:
        """Hold the list."""
        wide = max(len(key) for key, _ in KEYS)
        lines = [f"{key:<{wide}}  {text}" for key, text in KEYS]
        yield Static(Text("\n".join(lines)), id="help")
