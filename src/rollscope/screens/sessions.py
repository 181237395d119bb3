"""What `rollscope sessions` prints."""

from collections import Counter
from typing import Final

from rollscope.analysis.rows import SessionRow
from rollscope.analysis.wording import say_count, say_ns
from rollscope.answers.sessions import SessionLine, SessionList
from rollscope.model.kinds import Status
from rollscope.model.refs import span_hex
from rollscope.screens.sheet import RankedColumn, Sheet
from rollscope.screens.tables import Column, Screen
from rollscope.screens.words import (
    assign_letters,
    letter_bar,
    say_clock,
    say_maybe_ns,
    say_reward,
    say_session,
)

__all__ = ["say_end", "say_reason", "say_versions", "sessions_screen"]

_BAR: Final = 12
_ORDERS: Final = {
    "start": ("oldest first", "newest first"),
    "end": ("first to end first", "last to end first"),
    "ran": ("shortest first", "longest first"),
    "waited": ("shortest wait first", "longest wait first"),
    "reward": ("lowest reward first", "highest reward first"),
    "tokens": ("fewest tokens first", "most tokens first"),
}
_COLUMNS: Final[tuple[RankedColumn, ...]] = (
    (0, Column("session", can_shrink=True)),
    (6, Column("step", "right")),
    (7, Column("start", "right")),
    (5, Column("waited", "right")),
    (0, Column("ran", "right")),
    (1, Column("phases")),
    (0, Column("outcome")),
    (11, Column("reason", can_shrink=True)),
    (2, Column("reward", "right")),
    (8, Column("tokens", "right")),
    (9, Column("version", "right")),
    (4, Column("try", "right")),
    (10, Column("host", can_shrink=True)),
    (3, Column("id")),
)


def sessions_screen(
    answer: SessionList, screen: Screen, *, scope: str = "all", sort: str = "-start"
) -> str:
    """Put a list of sessions into words and a table."""
    sheet = Sheet(screen)
    where = "the run" if scope == "all" else f"step {scope}"
    if not answer.matched:
        said = f"None of the {say_count(answer.of, 'session')} in {where} match."
        if not answer.of:
            said = f"There are no sessions in {where}."
        sheet.say(said, style="bold")
        return sheet.text
    sheet.say(_headline(answer, where, sort), style="bold")
    if answer.matched > len(answer.sessions):
        sheet.say(f"{_of_listed(answer)} --limit lists more.")
    sheet.blank()
    times: Counter[str] = Counter()
    for line in answer.sessions:
        times.update(line.phases)
    letters = assign_letters([name for name, _ in times.most_common()])
    rows = [_cells(line, letters) for line in answer.sessions]
    sheet.table(_COLUMNS, rows)
    if letters:
        legend = ", ".join(f"{letter} {name}" for name, letter in letters.items())
        sheet.say(f"phases: {legend}, . other; in the order in which they began")
    return sheet.text


def _headline(answer: SessionList, where: str, sort: str) -> str:
    number = say_count(answer.matched, "session")
    order = _ORDERS[sort.removeprefix("-")][sort.startswith("-")]
    if answer.matched == answer.of:
        return f"{number} in {where}, {order}."
    return f"{number} of {answer.of:,} in {where} match, {order}."


def _of_listed(answer: SessionList) -> str:
    listed = answer.sessions
    outcomes = Counter(say_end(line.row) for line in listed).most_common()
    told = ", ".join(f"{count} {outcome}" for outcome, count in outcomes)
    return f"The {len(listed)} listed: {told}."


def _cells(line: SessionLine, letters: dict[str, str]) -> list[str]:
    row = line.row
    return [
        say_session(row),
        "-" if row.charged_step is None else str(row.charged_step),
        say_clock(row.start_ns),
        say_maybe_ns(row.waited_ns),
        say_ns(line.ran_ns),
        letter_bar(_shares(line), line.ran_ns, letters, _BAR),
        say_end(row),
        say_reason(row),
        say_reward(row.reward),
        "" if row.tokens_out is None else f"{row.tokens_out:,}",
        say_versions(row),
        str(row.attempt + 1) if row.attempt else "",
        row.host,
        span_hex(row.span_id),
    ]


def _shares(line: SessionLine) -> dict[str, int]:
    """Make parts of the whole of times that may overlap, in the order in which phases began."""
    all_ns, covered_ns = sum(line.phases.values()), line.ran_ns - line.other_ns
    return {name: ns * covered_ns // all_ns for name, ns in line.phases.items() if ns}


def say_end(row: SessionRow) -> str:
    """Say what became of a session."""
    if row.outcome is not None:
        return str(row.outcome)
    if row.end_ns is None:
        return "open"
    return "lost" if row.status is Status.LOST else "no outcome"


def say_reason(row: SessionRow) -> str:
    """Say why it ended so, where that is more than how."""
    return "" if row.reason is None or row.reason == row.outcome else row.reason


def say_versions(row: SessionRow) -> str:
    """Write the versions a session began and ended with."""
    first, last = row.version_start, row.version_end
    if first is None or last is None or first == last:
        known = first if last is None else last
        return "" if known is None else str(known)
    return f"{first}-{last}"
