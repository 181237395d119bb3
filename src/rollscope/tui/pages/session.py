"""What one rollout did, and where it waits."""

from textual.app import ComposeResult

from rollscope.answers.session import SessionAnswer
from rollscope.model.refs import span_hex
from rollscope.screens.session import session_screen
from rollscope.tui.pages.page import Page, Story, styled
from rollscope.tui.reader import Reading, Wish

__all__ = ["SessionPage"]


class SessionPage(Page):
    """The chain of awaits of an open session first; then phases, spans, events and siblings."""

    KEYS = "j k scroll  [ ] sibling  Space pause  Esc back"

    def __init__(self, session: str) -> None:
        super().__init__("Session", Wish("session", (("session", session),)))
        self._group: list[str] = []
        self._place = 0

    def neighbour(self, by: int) -> Page | None:
        """Give the page of the sample before or after in the same group."""
        place = self._place + by
        return SessionPage(self._group[place]) if 0 <= place < len(self._group) else None

    def compose_body(self) -> ComposeResult:
        """Give one story."""
        yield Story(id="words")

    def on_mount(self) -> None:
        """Let keys move the story."""
        super().on_mount()
        self.query_one("#words", Story).focus()

    def draw(self, reading: Reading) -> None:
        """Show the session."""
        answer = reading.answer
        if not isinstance(answer, SessionAnswer):
            return
        group = sorted(
            [answer.session, *answer.siblings], key=lambda row: (row.sample or 0, row.attempt)
        )
        self._group = [span_hex(row.span_id) for row in group]
        self._place = self._group.index(span_hex(answer.session.span_id))
        text = session_screen(answer, self.canvas, is_whole=True)
        self.query_one("#words", Story).tell(styled(text))
