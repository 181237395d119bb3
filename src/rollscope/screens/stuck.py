"""What `rollscope stuck` prints."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from rollscope.analysis.awaits import waiting_line
from rollscope.analysis.stuck import StuckRow
from rollscope.analysis.wording import say_count, say_ns, say_sample
from rollscope.answers.source import Source
from rollscope.answers.stuck import Stuck
from rollscope.model.refs import span_hex
from rollscope.screens.sheet import RankedColumn, Sheet
from rollscope.screens.tables import Column, Screen, say_time
from rollscope.screens.words import say_frame, say_phase

__all__ = ["STUCK_COLUMNS", "Lost", "look_at_lost", "stuck_cells", "stuck_screen"]

_MOST_ROWS: Final = 12
_LEAST_ROWS: Final = 3
_MOST_NAMED: Final = 4
_BANDS: Final = ("stuck", "overdue", "silent")
"""In the order in which they are told."""
_CALMER: Final = ("slow", "unknown", "fine")
STUCK_COLUMNS: Final[tuple[RankedColumn, ...]] = (
    (0, Column("band")),
    (1, Column("score", "right")),
    (0, Column("age", "right")),
    (3, Column("quiet", "right")),
    (0, Column("session", can_shrink=True)),
    (0, Column("in", can_shrink=True)),
    (2, Column("where", can_shrink=True)),
    (4, Column("try", "right")),
    (6, Column("at", can_shrink=True)),
    (5, Column("id")),
)


class Lost(msgspec.Struct):
    """Sessions that can no longer end."""

    count: int
    names: list[str]
    """Some of them, the latest first."""
    last_seen_ns: int | None
    """When the run was last heard of."""
    is_imported: bool = False
    """Whether files of another tool tell of the run, so that nothing in it goes on."""


def look_at_lost(source: Source) -> Lost:
    """Count the sessions that were lost with their processes."""
    # From the spans: what became of sessions otherwise is not asked, and costs most of the time.
    lost = "FROM spans WHERE kind = 'session' AND status = 'lost'"
    count = source.query(f"SELECT count(*) AS n {lost}")["n"][0].as_py()
    sql = f"SELECT task_key, sample, span_id {lost} ORDER BY start_ns DESC LIMIT {_MOST_NAMED}"
    rows = source.query(sql).to_pylist() if count else []
    names = [say_sample(row["task_key"], row["sample"], row["span_id"]) for row in rows]
    sql = """
        SELECT max(last_seen_ns) AS seen,
            min(CASE WHEN status = 'imported' THEN 1 ELSE 0 END) AS is_imported
        FROM processes"""
    (known,) = source.query(sql).to_pylist()
    return Lost(count, names, known["seen"], bool(known["is_imported"]))


def stuck_screen(
    answer: Stuck,
    screen: Screen,
    *,
    lost: Lost,
    min_band: str | None = None,
    is_all: bool = False,
    most: int = _MOST_ROWS,
    has_stacks: bool = False,
) -> str:
    """Put what is open into words and a table.

    Args:
        answer: What was found.
        screen: Where it is shown.
        lost: The sessions that died.
        min_band: `slow` or `stuck`, to leave out what is better.
        is_all: Whether every row is listed, those that are fine too.
        most: How many rows are listed otherwise.
        has_stacks: Whether whole chains of awaits are shown.
    """
    sheet = Sheet(screen)
    sheet.say(_headline(answer), style="bold red" if answer.alarms else "bold")
    if answer.outside and any(row.is_alarm for row in answer.outside):
        sheet.say(_outside_line([row for row in answer.outside if row.is_alarm]))
    if lost.count:
        sheet.say(_lost_line(lost))
    if lost.is_imported and lost.last_seen_ns is not None:
        sheet.say(f"The run was imported; its files end at {say_time(lost.last_seen_ns)}.")
    elif not answer.open_sessions and lost.last_seen_ns is not None:
        quiet_ns = max(answer.now_ns - lost.last_seen_ns, 0)
        sheet.say(f"The run was last heard of {say_ns(quiet_ns)} ago.")
    rows = [row for row in [*answer.rows, *answer.outside] if _is_wanted(row, min_band)]
    # Alarms without a score, as where nothing like them has finished yet, must not end up last.
    rows.sort(key=lambda row: 0 if row.is_alarm else _CALMER.index(row.band) + 1)
    shown = rows if is_all else _worth_listing(rows, most)
    if shown:
        sheet.blank()
        sheet.table(STUCK_COLUMNS, [stuck_cells(row) for row in shown])
    if len(rows) > len(shown):
        left = rows[len(shown) :]
        fine = sum(row.band == "fine" for row in left)
        sheet.say(f"Not listed: {len(left):,} open, {fine:,} of them fine; --all lists them.")
    lines = _by_line(rows if is_all else shown)
    if lines:
        _show_lines(sheet, lines, is_whole=has_stacks)
    elif rows and not lost.is_imported and (has_stacks or answer.alarms):
        sheet.say(
            "No line of code is recorded: a span gets one once it is open for stack_after_s (10 s)."
        )
    return sheet.text


def _worth_listing(rows: Sequence[StuckRow], most: int) -> Sequence[StuckRow]:
    """Leave out what is fine, but for a few where there is nothing else; the worst come first."""
    bad = [row for row in rows if row.band != "fine"]
    return rows[: min(max(len(bad), _LEAST_ROWS), most)]


def _headline(answer: Stuck) -> str:
    alarms = [row for row in answer.rows if row.is_alarm]
    if not answer.rows:
        return "Nothing is open, so nothing is stuck."
    if not alarms:
        oldest = max(answer.rows, key=lambda row: row.age_ns)
        slow = sum(row.band == "slow" for row in answer.rows)
        said = f"Nothing is stuck; {answer.open_sessions:,} open, {_doing(oldest)}"
        return f"{said}; {slow} slow (beyond p99)." if slow else f"{said}."
    counts = [(band, sum(row.band == band for row in alarms)) for band in _BANDS]
    (first, number), *others = [(band, count) for band, count in counts if count]
    is_one = number == 1
    said = f"{say_count(number, 'session')} {'is' if is_one else 'are'} {first}"
    said += "".join(f", {count} {band}" for band, count in others)
    oldest = max(alarms, key=lambda row: row.age_ns)
    return f"{said}, {_doing(oldest, is_only=len(alarms) == 1)}; {answer.open_sessions:,} open."


def _doing(row: StuckRow, *, is_only: bool = False) -> str:
    said = f"in {say_phase(row.name, row.detail)} for {say_ns(row.age_ns)}"
    at = f" at {_user_line(row.stack)}" if row.stack else ""
    return f"{'' if is_only else 'the oldest '}{said}{at}"


def _outside_line(rows: Sequence[StuckRow]) -> str:
    oldest = max(rows, key=lambda row: row.age_ns)
    who = f" on {oldest.process}" if oldest.process else ""
    said = f"{say_phase(oldest.name, oldest.detail)}{who} for {say_ns(oldest.age_ns)}"
    hang = "hangs" if len(rows) == 1 else "hang"
    return f"Outside of sessions {say_count(len(rows), 'span')} {hang} too: {said}."


def _lost_line(lost: Lost) -> str:
    more = ", …" if lost.count > len(lost.names) else ""
    were = "was lost when its" if lost.count == 1 else "were lost when their"
    return f"{say_count(lost.count, 'session')} {were} process died: {', '.join(lost.names)}{more}"


def _is_wanted(row: StuckRow, min_band: str | None) -> bool:
    if row.session_id is None and not row.is_alarm:
        return False
    return min_band is None or row.is_alarm or (min_band == "slow" and row.band == "slow")


def stuck_cells(row: StuckRow) -> list[str]:
    """Write an open session, or span, for a line of a table."""
    score = "-" if row.score is None else f"{'~' if row.is_approximate else ''}{row.score:.1f}"
    same = f" (+{row.same_line})" if row.same_line else ""
    name = "(no session)"
    if row.session_id is not None:
        name = say_sample(row.task_key, row.sample, row.session_id)
    return [
        row.band,
        score,
        say_ns(row.age_ns),
        say_ns(row.quiet_ns),
        name,
        say_phase(row.name, row.detail),
        f"{row.host}/{row.process}" if row.process else row.host,
        str(row.attempt + 1) if row.attempt else "",
        f"{_user_line(row.stack)}{same}" if row.stack else "",
        "" if row.session_id is None else span_hex(row.session_id),
    ]


def _user_line(stack: Sequence[str]) -> str:
    """Write the line of the program that waits, and the innermost one: often it is a library's."""
    return " > ".join(say_frame(frame) for frame in _ends(stack))


def _ends(stack: Sequence[str]) -> list[str]:
    own, innermost = waiting_line(stack) or "", stack[-1]
    return list(stack[-2:]) if own == innermost else [own, innermost]


def _by_line(rows: Iterable[StuckRow]) -> list[list[StuckRow]]:
    """Group rows by the line they await, most rows first."""
    found: dict[str, list[StuckRow]] = {}
    for row in rows:
        if row.stack:
            found.setdefault(" > ".join(_ends(row.stack)), []).append(row)
    return sorted(found.values(), key=lambda group: (-len(group), -group[0].age_ns))


def _show_lines(sheet: Sheet, groups: Sequence[Sequence[StuckRow]], *, is_whole: bool) -> None:
    sheet.heading("Where they wait")
    shown = groups if is_whole else groups[:_MOST_NAMED]
    for group in shown:
        named = [
            say_sample(row.task_key, row.sample, row.session_id or row.span_id)
            for row in group[:_MOST_NAMED]
        ]
        more = f" and {len(group) - len(named)} more" if len(group) > len(named) else ""
        sheet.point(f"{_user_line(group[0].stack)}: {', '.join(named)}{more}")
        if is_whole:
            age = group[0].stack_age_ns
            taken = "" if age is None else f", seen {say_ns(age)} ago"
            sheet.say(f"the chain of awaits, the innermost last{taken}:", indent=4)
            for frame in group[0].stack:
                sheet.line(f"      {frame}")
    if len(groups) > len(shown):
        sheet.say(f"{len(groups) - len(shown)} more lines; --stacks gives all, and whole chains.")
    elif not is_whole:
        sheet.say("--stacks prints the whole chains of awaits.")
