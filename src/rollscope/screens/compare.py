"""What `rollscope compare` prints."""

from collections.abc import Sequence
from typing import Final

from rollscope.analysis.columntests import Difference
from rollscope.analysis.compare import PhaseComparison
from rollscope.analysis.differs import Differences
from rollscope.analysis.ranks import Ranks
from rollscope.analysis.wording import say_count, say_ns
from rollscope.answers.compare import Comparison, Selection
from rollscope.screens.sheet import RankedColumn, Sheet
from rollscope.screens.tables import Column, Screen
from rollscope.screens.words import say_maybe_ns, say_signed

__all__ = ["comparison_screen", "selection_screen"]

_WIDE: Final = 130
"""From which width the sentences stand in the table."""
_SMALLEST_Q: Final = 1e-99
_OFTEN: Final = 0.1
"""From which relative difference on numbers of calls are told."""
_COLUMNS: Final[tuple[RankedColumn, ...]] = (
    (0, Column("", can_shrink=True)),
    (4, Column("n", "right")),
    (0, Column("p50", "right")),
    (5, Column("p95", "right")),
    (6, Column("p99", "right")),
    (4, Column("n", "right")),
    (0, Column("p50", "right")),
    (5, Column("p95", "right")),
    (6, Column("p99", "right")),
    (0, Column("change", "right")),
    (1, Column("95 % interval", "right")),
    (3, Column("effect", "right")),
    (2, Column("in words", can_shrink=True)),
)
_DIFFERENCE_COLUMNS: Final[tuple[RankedColumn, ...]] = (
    (0, Column("attribute", can_shrink=True)),
    (0, Column("value", can_shrink=True)),
    (0, Column("these", "right")),
    (0, Column("the rest", "right")),
    (2, Column("n", "right")),
    (1, Column("effect", "right")),
    (1, Column("q", "right")),
    (3, Column("splits alike", can_shrink=True)),
)


def comparison_screen(answer: Comparison, screen: Screen) -> str:
    """Put two sides into words and a table."""
    sheet = Sheet(screen)
    sides = (
        f"A is {answer.first} ({say_count(answer.first_sessions, 'measured session')}), "
        f"B is {answer.second} ({say_count(answer.second_sessions, 'measured session')})."
    )
    if not answer.first_sessions or not answer.second_sessions:
        sheet.say("There is nothing to compare: a side has no session that ended.", style="bold")
        sheet.say(sides)
        return sheet.text
    sheet.say(_verdict(answer.phases), style="bold")
    calls = _calls(answer)
    if calls:
        sheet.say(f"Calls per session, A to B: {', '.join(calls)}.")
    sheet.say(sides)
    if answer.sampled:
        sheet.say(f"Sampled, since there are so many: {', '.join(answer.sampled)}.")
    _show_phases(sheet, answer.phases, "A", "B")
    return sheet.text


def selection_screen(answer: Selection, screen: Screen, filter_text: str) -> str:
    """Put what is different about some sessions into words and tables."""
    sheet = Sheet(screen)
    of = f"{answer.chosen:,} of {answer.chosen + answer.rest:,} sessions match {filter_text!r}."
    if not answer.chosen or not answer.rest:
        side = "No session matches" if not answer.chosen else "All sessions match"
        sheet.say(f"{side} {filter_text!r}, so there is nothing to compare.", style="bold")
        return sheet.text
    sheet.say(f"{of} {_most_different(answer.differences)}", style="bold")
    if answer.differences.is_few_tasks:
        sheet.say(
            "They are of fewer than five tasks, and samples of one task are alike: read with care."
        )
    _show_differences(sheet, answer.differences)
    _show_phases(sheet, answer.phases, "rest", "these", has_words=False)
    return sheet.text


def _most_different(found: Differences) -> str:
    if not found.rows:
        return f"{found.text.rstrip('.')}."
    return f"Most different: {found.rows[0].text.rstrip('.')}."


def _calls(answer: Comparison) -> list[str]:
    """Name the phases that sessions of the two sides go through more or less often."""
    told = []
    for row in answer.phases:
        before = row.first.count / answer.first_sessions
        after = row.second.count / answer.second_sessions
        if row.name != "session" and abs(after - before) > _OFTEN * max(before, after):
            told.append(f"{row.name} {before:.1f} to {after:.1f}")
    return told


def _verdict(phases: Sequence[PhaseComparison]) -> str:
    whole = next((row for row in phases if row.name == "session"), None)
    clear = [row for row in phases if row.is_clear and row.name != "session"]
    said = f"Sessions of B against A: {'-' if whole is None else whole.text}"
    if whole is not None and whole.is_clear and whole.difference_ns is not None:
        word = "longer" if whole.difference_ns > 0 else "shorter"
        said = f"Sessions of B take {word} than those of A: {whole.text}"
    if clear:
        return f"{said}. Call by call, {clear[0].name} differs most: {clear[0].text}."
    return f"{said}. No phase differs clearly, call by call."


def _show_phases(
    sheet: Sheet,
    phases: Sequence[PhaseComparison],
    first: str,
    second: str,
    *,
    has_words: bool = True,
) -> None:
    sheet.heading(f"How long sessions and phases take: {first}, then {second}")
    columns = [
        (rank, Column(_head(place, column.head, first, second), column.align, column.can_shrink))
        for place, (rank, column) in enumerate(_COLUMNS)
    ]
    is_wide = sheet.width >= _WIDE or sheet.screen.width is None
    places = len(columns) if has_words and is_wide else len(columns) - 1
    heads = sheet.table(columns[:places], [_cells(row)[:places] for row in phases])
    if has_words and not is_wide:
        for row in phases:
            if row.is_clear:
                sheet.point(f"{row.name}: {row.text}")
    effect = "; effect: -1 (all shorter) to 1 (all longer)" if "effect" in heads else ""
    sheet.say(f"change: of the median{effect}.")
    if is_wide and any(row.first.p99_ns is None or row.second.p99_ns is None for row in phases):
        sheet.say("- where there are fewer than 20 (p95) or 100 (p99).")


def _head(place: int, head: str, first: str, second: str) -> str:
    if 1 <= place <= 4:
        return f"{first} {head}"
    return f"{second} {head}" if 5 <= place <= 8 else head


def _cells(row: PhaseComparison) -> list[str]:
    return [
        row.name,
        *_rank_cells(row.first),
        *_rank_cells(row.second),
        "-" if row.difference_ns is None else say_signed(row.difference_ns),
        _interval(row),
        f"{row.effect:+.2f}" if row.difference_ns is not None else "-",
        row.text,
    ]


def _rank_cells(ranks: Ranks) -> list[str]:
    return [
        f"{ranks.count:,}",
        say_maybe_ns(ranks.p50_ns),
        say_maybe_ns(ranks.p95_ns),
        say_maybe_ns(ranks.p99_ns),
    ]


def _interval(row: PhaseComparison) -> str:
    if row.low_ns is None or row.high_ns is None:
        return "-"
    return f"{say_signed(row.low_ns)} to {say_signed(row.high_ns)}"


def _show_differences(sheet: Sheet, found: Differences) -> None:
    if not found.rows:
        return
    sheet.heading(f"What is different about them ({found.columns} attributes tested)")
    sheet.table(_DIFFERENCE_COLUMNS, [_difference_cells(row) for row in found.rows])


def _difference_cells(row: Difference) -> list[str]:
    if row.value is None:
        both = [_number(row.column, row.chosen), _number(row.column, row.rest)]
    else:
        both = [f"{row.chosen * 100:.0f} %", f"{row.rest * 100:.0f} %"]
    return [
        row.column,
        "(its median)" if row.value is None else row.value,
        *both,
        f"{row.chosen_count:,} / {row.rest_count:,}",
        f"{row.effect:+.2f}",
        _say_q(row.q),
        ", ".join(row.alike),
    ]


def _say_q(q: float) -> str:
    if q < _SMALLEST_Q:
        return f"<{_SMALLEST_Q:.0e}"
    return f"{q:.0e}" if q < 0.001 else f"{q:.3f}"


def _number(column: str, value: float) -> str:
    return say_ns(round(value)) if column == "waited" else f"{value:,.4g}"
