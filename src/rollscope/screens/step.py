"""What `rollscope steps --step N` prints: the verdict, the path, who waits; then the rest."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from rollscope.analysis.idle import IdleSplit
from rollscope.analysis.path import CriticalPath, Segment
from rollscope.analysis.trainer import TrainerSplit
from rollscope.analysis.wording import say_count, say_ns, say_share, say_sum
from rollscope.answers.steps import StepAnswer
from rollscope.model.refs import span_hex
from rollscope.screens.hints import Hints
from rollscope.screens.plots import stacked_bar
from rollscope.screens.sheet import RankedColumn, Sheet
from rollscope.screens.step_parts import (
    show_eta,
    show_replicas,
    show_staleness,
    show_sync,
    show_waste,
    show_what_if,
)
from rollscope.screens.step_sessions import show_slowest, show_tail
from rollscope.screens.steps import say_outcomes, show_verdict
from rollscope.screens.tables import Column, Screen
from rollscope.screens.words import place_bar, say_phase

__all__ = ["show_path", "show_who_waits", "step_screen"]

_MOST_PIECES: Final = 5
_PIECE_COLUMNS: Final[tuple[RankedColumn, ...]] = (
    (0, Column("at", "right")),
    (0, Column("took", "right")),
    (0, Column("share", "right")),
    (0, Column("on the path", can_shrink=True)),
    (1, Column("")),
    (2, Column("session")),
)


class _Piece(msgspec.Struct):
    """Neighbouring segments of the path that are of one phase and session."""

    start_ns: int
    end_ns: int
    title: str
    session_id: int | None
    is_inferred: bool


def step_screen(
    answer: StepAnswer, screen: Screen, *, now_ns: int, hints: Hints | None = None
) -> str:
    """Tell the story of one step.

    Args:
        answer: The step.
        screen: Where it is shown.
        now_ns: What counts as now, for when a running step will end.
        hints: How the reader calls the run.
    """
    sheet = Sheet(screen)
    show_verdict(sheet, answer.verdict)
    if answer.eta is not None:
        show_eta(sheet, answer.eta, now_ns)
    show_path(sheet, answer.parts.path)
    show_who_waits(sheet, answer.parts.trainer, answer.parts.idle)
    show_tail(sheet, answer)
    sheet.heading(f"Sessions: {answer.summary.sessions:,}")
    sheet.say(say_outcomes(answer.summary) or "none", indent=2)
    show_waste(sheet, answer.parts.waste)
    show_staleness(sheet, answer.staleness)
    show_sync(sheet, answer.parts.sync)
    show_replicas(sheet, answer.parts.replicas)
    show_what_if(sheet, answer.what_if, answer.summary)
    show_slowest(sheet, answer.slowest, now_ns, hints or Hints())
    return sheet.text


def show_path(sheet: Sheet, path: CriticalPath) -> None:
    """Show what the end of a step waited for, link by link."""
    if not path.segments:
        return
    hops = ""
    if path.hops:
        hops = f"; ~ inferred ({path.inferred_hops} of {path.hops} hops)"
    sheet.heading(f"Critical path: what its end waited for{hops}")
    pieces = _pieces(path.segments)
    start_ns, wall = path.segments[0].start_ns, path.wall_ns or 1
    worth = [one for one in pieces if (one.end_ns - one.start_ns) * 200 >= wall]
    longest = sorted(worth, key=lambda one: one.start_ns - one.end_ns)[:_MOST_PIECES]
    width = max(min(sheet.width // 3, 50), 10)
    rows = [
        [
            f"+{say_ns(one.start_ns - start_ns)}",
            say_ns(one.end_ns - one.start_ns),
            say_share(one.end_ns - one.start_ns, wall),
            f"{'~' if one.is_inferred else ' '}{one.title}",
            place_bar(
                (one.start_ns - start_ns) / wall,
                (one.end_ns - start_ns) / wall,
                width,
                is_unicode=sheet.is_unicode,
            ),
            "" if one.session_id is None else span_hex(one.session_id),
        ]
        for one in pieces
        if one in longest
    ]
    sheet.table(_PIECE_COLUMNS, rows)
    short = [one for one in pieces if one not in longest]
    left_ns = sum(one.end_ns - one.start_ns for one in short)
    whole, (_, left) = say_sum(path.wall_ns, [path.wall_ns - left_ns, left_ns])
    rest = f" + {say_count(len(short), 'shorter part')}, {left}" if short else ""
    sheet.say(f"These{rest} = {whole}. In all: {_totals(path)}.")


def _totals(path: CriticalPath) -> str:
    """Add the path up by phase, the largest first."""
    by_phase: Counter[str] = Counter()
    for one in path.segments:
        by_phase[one.within or one.name] += one.length_ns
    return ", ".join(
        f"{name} {say_share(ns, path.wall_ns)}"
        for name, ns in by_phase.most_common()
        if ns * 200 >= path.wall_ns
    )


def _pieces(segments: Sequence[Segment]) -> list[_Piece]:
    """Join neighbours of one phase and session: a call and the request inside of it are one."""
    pieces: list[_Piece] = []
    for one in segments:
        title = say_phase(one.within or one.name, one.detail)
        last = pieces[-1] if pieces else None
        if last is not None and (last.title, last.session_id) == (title, one.session_id):
            last.end_ns = one.end_ns
            last.is_inferred |= one.inferred
        else:
            pieces.append(_Piece(one.start_ns, one.end_ns, title, one.session_id, one.inferred))
    return pieces


def show_who_waits(sheet: Sheet, trainer: TrainerSplit, idle: IdleSplit) -> None:
    """Show how the trainer and the slots spent their time."""
    sheet.heading("Who waits")
    width = min(sheet.width, 80) - 12
    parts = [
        ("train", trainer.train_ns),
        ("sync", trainer.sync_ns),
        ("filling", trainer.filling_ns),
        ("stragglers", trainer.stragglers_ns),
        ("other", trainer.other_ns),
    ]
    _show_parts(sheet, "trainer", parts, width)
    slots = [("busy", idle.busy_ns)]
    slots += [(cause.replace("_", " "), ns) for cause, ns in idle.idle_ns.items()]
    _show_parts(sheet, "slots", slots, width)
    if trainer.waiting_ns:
        sheet.say("The trainer waits: filling until 95 % of its batch came, then for stragglers.")
    number = sum(pool.capacity for pool in idle.pools)
    if number:
        assumed = sum(pool.capacity for pool in idle.pools if pool.assumed)
        how = f" ({assumed:,} not declared but seen at once)" if assumed else ""
        idle_ns = sum(idle.idle_ns.values())
        sheet.say(
            f"{say_count(number, 'slot')}{how}; idle for {say_share(idle_ns, idle.total_ns)} of "
            "their time, by cause."
        )


def _show_parts(sheet: Sheet, name: str, parts: Sequence[tuple[str, int]], width: int) -> None:
    whole = sum(ns for _, ns in parts)
    worth = [(part, ns) for part, ns in parts if ns * 200 >= whole]
    drawn, legend = stacked_bar(worth, width, is_unicode=sheet.is_unicode)
    if drawn:
        sheet.line(f"{name:>8}  {drawn}")
        sheet.items(legend.split("  "), indent=10)
