"""Which step was slow, and since when: the landing page of a run that is over."""

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static

from rollscope.analysis.wording import say_count
from rollscope.answers.steps import Steps
from rollscope.screens.sheet import Sheet
from rollscope.screens.steps import STEP_COLUMNS, say_change, say_slowest, show_verdict, step_cells
from rollscope.tui.grid import Grid
from rollscope.tui.pages.page import Page, styled
from rollscope.tui.reader import Reading, Wish

__all__ = ["StepsPage"]


class StepsPage(Page):
    """The last steps, the newest first, with what the newest one waited for."""

    KEYS = "Enter step  g n now  Space pause"

    def __init__(self) -> None:
        super().__init__("Steps", Wish("steps"))

    def compose_body(self) -> ComposeResult:
        """Give the words above and the table below."""
        yield Static(id="numbers", markup=False)
        yield Grid(id="steps")

    def on_mount(self) -> None:
        """Begin in the table."""
        super().on_mount()
        self.query_one("#steps", Grid).focus()

    def draw(self, reading: Reading) -> None:
        """Show the steps."""
        answer = reading.answer
        if not isinstance(answer, Steps):
            return
        self.query_one("#numbers", Static).update(self._words(answer))
        newest_first = answer.steps[::-1]
        longest = max((line.summary.wall_ns for line in newest_first), default=0)
        self.query_one("#steps", Grid).fill(
            STEP_COLUMNS,
            [step_cells(line, longest) for line in newest_first],
            ["" if one.summary.step is None else str(one.summary.step) for one in newest_first],
        )

    def _words(self, answer: Steps) -> Text:
        sheet = Sheet(self.canvas)
        if not answer.steps:
            sheet.say("The run records no steps; rs.step(n) in the trainer does.", style="bold")
        else:
            show_verdict(sheet, answer.steps[-1].verdict, has_advice=False)
            sheet.say(f"{say_slowest(answer)} Enter on a step tells why.")
        for change in answer.changes.largest:
            sheet.say(say_change(change))
        if answer.unassigned:
            sheet.say(f"{say_count(answer.unassigned, 'session')} outside of any step.")
        if answer.of > len(answer.steps):
            sheet.say(f"The last {len(answer.steps)} of {answer.of:,} steps; * is running.")
        return styled(sheet.text)
