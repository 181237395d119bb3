"""What `rollscope hotspots` prints."""

from typing import Final

from rollscope.analysis.hotspots import SEPARATOR, Footer, Hotspot
from rollscope.analysis.wording import say_count, say_ns, say_share, say_sum
from rollscope.answers.hotspots import HotspotAnswer
from rollscope.screens.plots import share_bar
from rollscope.screens.sheet import RankedColumn, Sheet
from rollscope.screens.tables import Column, Screen
from rollscope.screens.words import say_maybe_ns, say_unended

__all__ = ["hotspots_screen"]

_BAR: Final = 8
_COLUMNS: Final[tuple[RankedColumn, ...]] = (
    (0, Column("path", can_shrink=True)),
    (1, Column("", can_shrink=True)),
    (0, Column("self", "right")),
    (0, Column("share", "right")),
    (6, Column("")),
    (2, Column("count", "right")),
    (9, Column("total", "right")),
    (3, Column("p50", "right")),
    (4, Column("p95", "right")),
    (7, Column("p99", "right")),
    (5, Column("max", "right")),
    (8, Column("errors", "right")),
    (1, Column("open", "right")),
)


def hotspots_screen(answer: HotspotAnswer, screen: Screen, *, most: int | None = None) -> str:
    """Put hotspots into words and a table.

    Args:
        answer: What was found.
        screen: Where it is shown.
        most: How many rows are listed; all if None.
    """
    sheet = Sheet(screen)
    rows, footer = answer.hotspots.rows, answer.hotspots.footer
    whole = "time outside of sessions" if answer.outside else "session time"
    if not rows:
        kind = "spans outside of sessions" if answer.outside else "sessions"
        sheet.say(f"There are no {kind} in {_scope(answer)}.", style="bold")
        return sheet.text
    sheet.say(_headline(answer, whole), style="bold")
    sheet.blank()
    shown = rows if most is None else rows[:most]
    columns = list(_COLUMNS)
    columns[1] = (1, Column(answer.grouped_by, can_shrink=True))
    sheet.table(columns, [_cells(row, _path(row, answer), sheet) for row in shown])
    if len(rows) > len(shown):
        left_ns = sum(row.self_ns for row in rows[len(shown) :])
        number = say_count(len(rows) - len(shown), "more row")
        sheet.say(f"{number} with {say_ns(left_ns)} of self time; --limit 0 lists them.")
    sheet.blank()
    sheet.say(_sum(footer, whole))
    unended = say_unended(
        "self, share, count and total",
        sum(row.count for row in rows),
        sum(row.measured for row in rows),
        sum(row.open_now for row in rows),
    )
    if unended is not None:
        sheet.say(unended)
    if any(row.p99_ns is None for row in shown):
        why = ", or where several paths are taken together" if answer.grouped_by == "name" else ""
        sheet.say(f"- where fewer than 20 spans (p95) or 100 (p99) ended{why}.")
    return sheet.text


def _scope(answer: HotspotAnswer) -> str:
    return "the run" if answer.scope == "all" else f"step {answer.scope}"


def _headline(answer: HotspotAnswer, whole: str) -> str:
    rows = answer.hotspots.rows
    said = (
        f"{_title(rows[0], answer)} holds {say_share(rows[0].share)} of all {whole} in "
        f"{_scope(answer)}: {say_ns(rows[0].self_ns)} of "
        f"{say_ns(answer.hotspots.footer.session_ns)}"
    )
    if len(rows) > 1:
        said += f"; then {_title(rows[1], answer)} with {say_share(rows[1].share)}"
    return f"{said}."


def _title(row: Hotspot, answer: HotspotAnswer) -> str:
    path = _path(row, answer)
    return path if row.group is None else f"{path} ({row.group})"


def _sum(footer: Footer, whole: str) -> str:
    total, (children, other, overlap) = say_sum(
        footer.session_ns, [footer.children_ns, footer.other_ns, -footer.overlap_ns]
    )
    said = (
        f"The sum: {total} of {whole} = {children} below the top + {other} outside of any child "
        "(other)"
    )
    if footer.overlap_ns:
        said += f" - {overlap.removeprefix('-')} counted more than once (spans that overlap)"
    return f"{said}."


def _path(row: Hotspot, answer: HotspotAnswer) -> str:
    """Write a path without the session that all paths begin with."""
    if answer.outside:
        return row.path
    return (
        "(in no child)" if row.path == "session" else row.path.removeprefix(f"session{SEPARATOR}")
    )


def _cells(row: Hotspot, path: str, sheet: Sheet) -> list[str]:
    return [
        path,
        row.group or "",
        say_ns(row.self_ns),
        say_share(row.share),
        share_bar(row.share, 1, _BAR, is_unicode=sheet.is_unicode),
        f"{row.count:,}",
        say_ns(row.total_ns),
        say_maybe_ns(row.p50_ns),
        say_maybe_ns(row.p95_ns),
        say_maybe_ns(row.p99_ns),
        say_maybe_ns(row.max_ns),
        f"{row.errors:,}" if row.errors else "",
        f"{row.open_now:,}" if row.open_now else "",
    ]
