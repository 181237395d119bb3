"""The sessions of a step that matter most: who held its tail, and which took longest."""

from collections.abc import Sequence
from typing import Final

from rollscope.analysis.rows import SessionRow
from rollscope.analysis.wording import say_count, say_ns, say_share
from rollscope.answers.steps import StepAnswer
from rollscope.model.refs import span_hex
from rollscope.screens.hints import Hints
from rollscope.screens.plots import share_bar
from rollscope.screens.sessions import say_end, say_reason
from rollscope.screens.sheet import RankedColumn, Sheet
from rollscope.screens.tables import Column
from rollscope.screens.words import say_phase, say_reward, say_session

__all__ = ["CHARGED_COLUMNS", "charged_cells", "show_slowest", "show_tail"]

_BAR: Final = 12
_MOST_HOLDERS: Final = 10


def _columns(last: str) -> tuple[RankedColumn, ...]:
    return (
        (0, Column("session", can_shrink=True)),
        (0, Column("ran", "right")),
        (2, Column("")),
        (0, Column("outcome")),
        (4, Column("reason", can_shrink=True)),
        (3, Column("where", can_shrink=True)),
        (1, Column(last, "right")),
        (0, Column("id")),
    )


CHARGED_COLUMNS: Final = _columns("charged")
"""With the part of the tail that a session is charged with."""


def show_tail(sheet: Sheet, answer: StepAnswer, *, has_sessions: bool = True) -> None:
    """Say what the tail cost and who held it; with the sessions, if they stand nowhere else."""
    tail, wall_ns = answer.parts.tail, answer.summary.wall_ns
    sheet.heading("Tail")
    if not tail.bubble_ns:
        sheet.say("No slot stood idle for it.", indent=2)
        return
    sheet.say(
        f"{say_ns(tail.bubble_ns)} of slot time ({say_share(tail.share)}) stood idle with no "
        f"session left to start; {say_ns(tail.tail_wall_ns)} "
        f"({say_share(tail.tail_wall_ns, wall_ns)} of the wall) passed after 95 % had ended.",
        indent=2,
    )
    if tail.is_broad:
        sheet.say(
            f"It is a broad tail of {say_count(len(tail.holders), 'session')}, no single culprit.",
            indent=2,
        )
    if has_sessions:
        _show_holders(sheet, answer)
    slack = answer.parts.path.slack
    if slack is not None:
        sheet.say(
            f"Without the {say_count(len(slack.sessions), 'session')} that held it, the step ends "
            f"{say_ns(slack.earlier_ns)} earlier; then "
            f"{say_phase(slack.next_name, slack.next_detail)} is next.",
            indent=2,
        )
    if has_sessions and len(answer.holders) > _MOST_HOLDERS:
        sheet.say(f"{len(answer.holders) - _MOST_HOLDERS} more; --json names all.", indent=2)


def _show_holders(sheet: Sheet, answer: StepAnswer) -> None:
    rows = charged_cells(answer, answer.holders[:_MOST_HOLDERS], is_unicode=sheet.is_unicode)
    sheet.table(CHARGED_COLUMNS, rows, indent=2)


def charged_cells(
    answer: StepAnswer, sessions: Sequence[SessionRow], *, is_unicode: bool = True
) -> list[list[str]]:
    """Write sessions of a step, each with what it is charged with, for a table."""
    charges = {charge.session_id: charge.charge_ns for charge in answer.parts.tail.charges}
    longest = max((_ran(row) for row in answer.slowest), default=0) or 1
    return [
        [
            say_session(one),
            say_ns(_ran(one)) if one.end_ns is not None else "open",
            share_bar(_ran(one), longest, _BAR, is_unicode=is_unicode),
            say_end(one),
            say_reason(one),
            " / ".join(dict.fromkeys(part for part in (one.host, one.pool) if part)),
            say_ns(charges.get(one.span_id, 0)),
            span_hex(one.span_id),
        ]
        for one in sessions
    ]


def _ran(row: SessionRow) -> int:
    return 0 if row.end_ns is None else row.end_ns - row.start_ns


def show_slowest(sheet: Sheet, sessions: Sequence[SessionRow], now_ns: int, ask: Hints) -> None:
    """List the longest sessions."""
    if not sessions:
        return
    sheet.heading("Slowest sessions")
    lengths = [(now_ns if one.end_ns is None else one.end_ns) - one.start_ns for one in sessions]
    rows = [
        [
            say_session(one),
            say_ns(length),
            share_bar(length, max(lengths), _BAR, is_unicode=sheet.is_unicode),
            say_end(one),
            say_reason(one),
            " / ".join(dict.fromkeys(part for part in (one.host, one.pool) if part)),
            "" if one.reward is None else say_reward(one.reward),
            span_hex(one.span_id),
        ]
        for one, length in zip(sessions, lengths, strict=True)
    ]
    sheet.table(_columns("reward"), rows, indent=2)
    sheet.command(
        "The first of them, turn by turn:", ask.line("show", span_hex(sessions[0].span_id))
    )
