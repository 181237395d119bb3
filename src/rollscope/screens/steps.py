"""What `rollscope steps` prints of several steps."""

from typing import Final

from rollscope.analysis.changes import Change
from rollscope.analysis.steps import NO_OUTCOME, StepSummary
from rollscope.analysis.verdict import Verdict
from rollscope.analysis.wording import say_count, say_ns, say_share
from rollscope.answers.steps import StepLine, Steps
from rollscope.screens.plots import share_bar, sparkline
from rollscope.screens.sheet import RankedColumn, Sheet
from rollscope.screens.tables import Column, Screen
from rollscope.screens.words import say_number, say_signed_share

__all__ = [
    "STEP_COLUMNS",
    "say_change",
    "say_outcomes",
    "show_verdict",
    "step_cells",
    "steps_screen",
]

_BAR: Final = 8
STEP_COLUMNS: Final[tuple[RankedColumn, ...]] = (
    (0, Column("step", "right")),
    (0, Column("wall", "right")),
    (7, Column("")),
    (1, Column("vs median", "right")),
    (6, Column("sessions", "right")),
    (9, Column("outcomes", can_shrink=True)),
    (2, Column("tail", "right")),
    (2, Column("wait", "right")),
    (3, Column("waste", "right")),
    (5, Column("lag", "right")),
    (4, Column("tok/s", "right")),
    (4, Column("reward", "right")),
    (8, Column("because", can_shrink=True)),
)


def steps_screen(answer: Steps, screen: Screen) -> str:
    """Put a list of steps into words, a table and a line of their walls."""
    sheet = Sheet(screen)
    if not answer.steps:
        _show_none(sheet, answer)
        return sheet.text
    last = answer.steps[-1]
    show_verdict(sheet, last.verdict, has_advice=False)
    sheet.blank()
    longest = max(line.summary.wall_ns for line in answer.steps)
    rows = [step_cells(line, longest, is_unicode=sheet.is_unicode) for line in answer.steps]
    sheet.table(STEP_COLUMNS, rows)
    has_lag = any(line.summary.lag_p50 is not None for line in answer.steps)
    sheet.say(
        "vs median: of the ten before; tail: after 95 % of sessions had ended; wait: the "
        f"trainer's; waste: of slot time{'; lag: versions, p50/max' if has_lag else ''}."
    )
    _show_walls(sheet, answer)
    for change in answer.changes.largest:
        sheet.say(say_change(change))
    if answer.unassigned:
        sheet.say(f"{say_count(answer.unassigned, 'session')} belong to no step.")
    number = last.summary.step
    sheet.say(f"The whole story, and what to try: rollscope steps RUN --step {number}")
    return sheet.text


def _show_none(sheet: Sheet, answer: Steps) -> None:
    if not answer.unassigned:
        sheet.say("The run has no steps and no sessions yet.", style="bold")
        return
    number = say_count(answer.unassigned, "session")
    sheet.say(f"The run records no steps; it has {number} outside of any.", style="bold")
    sheet.say("See them with `rollscope sessions`; rs.step(n) in the trainer records steps.")


def show_verdict(sheet: Sheet, verdict: Verdict, *, has_advice: bool = True) -> None:
    """Say why a step took so long, and what to try."""
    sheet.say(verdict.opening, style="bold")
    for finding in verdict.findings:
        advice = f" Try: {finding.try_next}" if has_advice else ""
        sheet.point(f"{finding.sentence}{advice}")
    if verdict.closing:
        sheet.say(verdict.closing)


def step_cells(line: StepLine, longest: int, *, is_unicode: bool = True) -> list[str]:
    """Write a step for a line of a table, its bar against the longest one."""
    one = line.summary
    return [
        f"{one.step}{'*' if one.is_open else ''}",
        say_ns(one.wall_ns),
        share_bar(one.wall_ns, longest, _BAR, is_unicode=is_unicode),
        say_signed_share(line.change),
        f"{one.sessions:,}",
        say_outcomes(one),
        say_share(one.tail_wall_ns, one.wall_ns),
        say_share(one.trainer_wait_share),
        say_share(one.waste_share),
        "" if one.lag_p50 is None else f"{one.lag_p50}/{one.lag_max}",
        say_number(one.tokens_per_s, 0) if one.tokens_per_s else "",
        say_number(one.mean_reward),
        _because(line),
    ]


def say_outcomes(one: StepSummary) -> str:
    """Write how many sessions had which outcome."""
    named = sorted(one.outcomes.items(), key=lambda item: (item[0] == NO_OUTCOME, -item[1]))
    return ", ".join(f"{count} {name}" for name, count in named)


def _because(line: StepLine) -> str:
    """Name the rules that found something, with their part of the wall."""
    wall_ns = line.summary.wall_ns
    if line.summary.is_open:
        return "running"
    told = [
        f"{finding.rule} {say_share(min(finding.stake_ns, wall_ns), wall_ns)}"
        for finding in line.verdict.findings
        if finding.stake_ns
    ]
    return ", ".join(told)


def _show_walls(sheet: Sheet, answer: Steps) -> None:
    walls = [line.summary.wall_ns for line in answer.steps]
    first, last = answer.steps[0].summary.step, answer.steps[-1].summary.step
    drawn = sparkline(walls, width=max(sheet.width - 40, 10), is_unicode=sheet.is_unicode)
    of = f" of {answer.of:,}" if answer.of > len(walls) else ""
    low, high = say_ns(min(walls)), say_ns(max(walls))
    sheet.line(f"wall, steps {first} to {last}{of}: {drawn}  {low} to {high}")


def say_change(change: Change) -> str:
    """Say what changed from one step on."""
    if change.series == "wall":
        before, after = say_ns(round(change.before * 1e9)), say_ns(round(change.after * 1e9))
    else:
        before, after = say_share(change.before), say_share(change.after)
    return f"Since step {change.step}: {change.series} went from {before} to {after}."
