"""Why a step took as long as it did: its verdict, path, waits and tail, and who held it."""

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static

from rollscope.answers.steps import StepAnswer
from rollscope.model.refs import span_hex
from rollscope.screens.sheet import Sheet
from rollscope.screens.step import show_path, show_who_waits
from rollscope.screens.step_parts import show_eta
from rollscope.screens.step_sessions import CHARGED_COLUMNS, charged_cells, show_tail
from rollscope.screens.steps import say_outcomes, show_verdict
from rollscope.tui.grid import Grid
from rollscope.tui.pages.page import Page, Story, styled
from rollscope.tui.reader import Reading, Wish

__all__ = ["StepPage"]


class StepPage(Page):
    """The story of a step, and below it the sessions that held its tail or took longest."""

    KEYS = "Tab sessions  Enter open  [ ] other step  Esc back"

    def __init__(self, step: int) -> None:
        super().__init__(f"Step {step}", Wish("step", (("step", str(step)),)))
        self._previous: int | None = None
        self._following: int | None = None

    def neighbour(self, by: int) -> Page | None:
        """Give the page of the step before or after."""
        number = self._previous if by < 0 else self._following
        return None if number is None else StepPage(number)

    def compose_body(self) -> ComposeResult:
        """Give the story above and the sessions below."""
        yield Story(id="words")
        yield Static("Sessions that held the tail, then the slowest", classes="table-head")
        yield Grid(id="sessions")

    def on_mount(self) -> None:
        """Begin with the story."""
        super().on_mount()
        self.query_one("#words", Story).focus()

    def draw(self, reading: Reading) -> None:
        """Show the step."""
        answer = reading.answer
        if not isinstance(answer, StepAnswer):
            return
        self._previous, self._following = answer.previous, answer.following
        self.query_one("#words", Story).tell(self._words(answer, reading.run.now_ns))
        held = {one.span_id for one in answer.holders}
        sessions = [*answer.holders, *(one for one in answer.slowest if one.span_id not in held)]
        self.query_one("#sessions", Grid).fill(
            CHARGED_COLUMNS,
            charged_cells(answer, sessions),
            [span_hex(one.span_id) for one in sessions],
        )

    def _words(self, answer: StepAnswer, now_ns: int) -> Text:
        sheet = Sheet(self.canvas)
        show_verdict(sheet, answer.verdict)
        if answer.eta is not None:
            show_eta(sheet, answer.eta, now_ns)
        sheet.say(
            f"{answer.summary.sessions:,} sessions: {say_outcomes(answer.summary) or 'none'}."
        )
        show_path(sheet, answer.parts.path)
        show_who_waits(sheet, answer.parts.trainer, answer.parts.idle)
        show_tail(sheet, answer, has_sessions=False)
        return styled(sheet.text)
