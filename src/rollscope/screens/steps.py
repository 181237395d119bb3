"""What `rollscope steps` prints of several steps."""

from typing import Final

from rollscope.analysis.changes import Change
from rollscope.analysis.steps import NO_OUTCOME, STILL_OPEN, StepSummary
from rollscope.analysis.verdict import Verdict
from rollscope.analysis.wording import say_count, say_ns, say_seconds, say_share
from rollscope.answers.steps import StepLine, Steps
from rollscope.screens.hints import Hints
from rollscope.screens.plots import share_bar, sparkline
from rollscope.screens.sheet import RankedColumn, Sheet
from rollscope.screens.tables import Column, Screen
from rollscope.screens.words import say_number, say_reward, say_signed_share

__all__ = [
    "STEP_COLUMNS",
    "say_change",
    "say_outcomes",
    "say_slowest",
    "show_verdict",
    "step_cells",
    "steps_screen",
]

_BAR: Final = 8
_NO_VERDICT: Final = {NO_OUTCOME: "without outcome", STILL_OPEN: "open"}
STEP_COLUMNS: Final[tuple[RankedColumn, ...]] = (
    (0, Column("step", "right")),
    (0, Column("wall", "right")),
    (7, Column("")),
    (1, Column("vs median", "right")),
    (6, Column("sessions", "right")),
    (9, Column("outcomes", can_shrink=True, cut="end")),
    (2, Column("tail", "right")),
    (2, Column("wait", "right")),
    (3, Column("waste", "right")),
    (5, Column("lag", "right")),
    (4, Column("tok/s", "right")),
    (4, Column("reward", "right")),
    (8, Column("because", can_shrink=True, cut="end")),
)


def steps_screen(answer: Steps, screen: Screen, hints: Hints | None = None) -> str:
    """Put a list of steps into words, a table and a line of their walls.

    Args:
        answer: The steps.
        screen: Where they are shown.
        hints: How the reader calls the run.
    """
    sheet, ask = Sheet(screen), hints or Hints()
    if not answer.steps:
        _show_none(sheet, answer, ask)
        return sheet.text
    last = answer.steps[-1]
    show_verdict(sheet, last.verdict, has_advice=False)
    sheet.blank()
    longest = max(line.summary.wall_ns for line in answer.steps)
    rows = [step_cells(line, longest, is_unicode=sheet.is_unicode) for line in answer.steps]
    sheet.table(STEP_COLUMNS, rows)
    _show_legend(sheet, answer)
    _show_walls(sheet, answer)
    for change in answer.changes.largest:
        sheet.say(say_change(change))
    if answer.unassigned:
        belong = "belongs" if answer.unassigned == 1 else "belong"
        sheet.say(f"{say_count(answer.unassigned, 'session')} {belong} to no step.")
    slowest = _slowest(answer)
    sheet.command(
        f"Why step {slowest.step} took longest, {say_ns(slowest.wall_ns)}, and what to try:",
        ask.line("steps", "--step", str(slowest.step)),
    )
    return sheet.text


def _show_legend(sheet: Sheet, answer: Steps) -> None:
    summaries = [line.summary for line in answer.steps]
    parts = [
        "tail: after 95 % of sessions had ended",
        "wait: the trainer's",
        "waste: of slot time",
    ]
    if any(one.unconsumed for one in summaries):
        parts.insert(0, "sessions: in brackets, those that no step has consumed")
    if any(line.change is not None for line in answer.steps):
        parts.insert(0, "vs median: of the ten before")
    if any(one.lag_p50 is not None for one in summaries):
        parts.append("lag: versions, p50/max")
    sheet.say(f"{'; '.join(parts)}.")


def _slowest(answer: Steps) -> StepSummary:
    """Give the step that took longest of those that are over, if any is."""
    summaries = [line.summary for line in answer.steps]
    over = [one for one in summaries if not one.is_open] or summaries
    return max(over, key=lambda one: one.wall_ns)


def say_slowest(answer: Steps) -> str:
    """Name the step that took longest of those listed."""
    slowest = _slowest(answer)
    return f"Step {slowest.step} took longest of these: {say_ns(slowest.wall_ns)}."


def _show_none(sheet: Sheet, answer: Steps, ask: Hints) -> None:
    if not answer.unassigned:
        sheet.say("The run has no steps and no sessions.", style="bold")
        return
    number = say_count(answer.unassigned, "session")
    sheet.say(f"The run records no steps; it has {number} outside of any.", style="bold")
    sheet.say("In the trainer, rs.step(n) records steps.")
    sheet.command("See the sessions with:", ask.line("sessions"))


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
        _say_sessions(one),
        say_outcomes(one),
        say_share(one.tail_wall_ns, one.wall_ns),
        say_share(one.trainer_wait_share),
        say_share(one.waste_share),
        "" if one.lag_p50 is None else f"{one.lag_p50}/{one.lag_max}",
        say_number(one.tokens_per_s, 0) if one.tokens_per_s else "",
        say_reward(one.mean_reward),
        _because(line),
    ]


def say_outcomes(one: StepSummary) -> str:
    """Write how many sessions had which outcome."""
    named = sorted(one.outcomes.items(), key=lambda item: (item[0] in _NO_VERDICT, -item[1]))
    return ", ".join(f"{count} {_NO_VERDICT.get(name, name)}" for name, count in named)


def _say_sessions(one: StepSummary) -> str:
    """Write how many sessions a step has, those apart that a later one may consume."""
    return f"{one.sessions:,}{f' ({one.unconsumed:,})' if one.unconsumed else ''}"


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
        before, after = say_seconds(change.before), say_seconds(change.after)
    else:
        before, after = say_share(change.before), say_share(change.after)
    return f"Since step {change.step}: {change.series} went from {before} to {after}."
