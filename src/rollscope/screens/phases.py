"""What `rollscope phases` prints."""

from typing import Final

import msgspec

from rollscope.analysis.wording import say_count, say_ns, say_share
from rollscope.answers.phases import ErrorKind, PhaseLine, Phases, in_scope
from rollscope.answers.scope import StepScope
from rollscope.answers.source import Source
from rollscope.errors import CommandError
from rollscope.model.refs import span_hex
from rollscope.screens.plots import histogram, share_bar
from rollscope.screens.sheet import RankedColumn, Sheet
from rollscope.screens.tables import Column, Screen
from rollscope.screens.words import say_clock, say_maybe_ns, say_unended

__all__ = ["Bin", "PhaseStory", "one_phase", "phases_screen"]

_BAR: Final = 8
_PER_DECADE: Final = 4
_QUEUEING: Final = 0.5
"""From which share of waiting on a phase is said to be queueing."""
_MOST_ERRORS: Final = 8
_COLUMNS: Final[tuple[RankedColumn, ...]] = (
    (0, Column("phase", can_shrink=True)),
    (1, Column("", can_shrink=True)),
    (4, Column("count", "right")),
    (6, Column("total", "right")),
    (7, Column("")),
    (0, Column("p50", "right")),
    (0, Column("p95", "right")),
    (2, Column("p99", "right")),
    (3, Column("max", "right")),
    (1, Column("queue", "right")),
    (8, Column("q50", "right")),
    (8, Column("q95", "right")),
    (5, Column("errors", "right")),
    (1, Column("open", "right")),
)
_ERROR_COLUMNS: Final[tuple[RankedColumn, ...]] = (
    (0, Column("error", can_shrink=True)),
    (0, Column("in", can_shrink=True)),
    (0, Column("count", "right")),
    (2, Column("first", "right")),
    (3, Column("step", "right")),
    (4, Column("last", "right")),
    (1, Column("example")),
    (5, Column("reason", can_shrink=True)),
)


class Bin(msgspec.Struct):
    """How many phases took so long."""

    low_ns: int
    high_ns: int
    """Belongs to the next."""
    count: int


class PhaseStory(Phases, kw_only=True):
    """One phase, with how its durations are spread."""

    phase: str
    histogram: list[Bin]


def one_phase(source: Source, scope: StepScope, answer: Phases, name: str) -> PhaseStory:
    """Narrow an answer down to one phase, and add how its durations are spread.

    Raises:
        CommandError: There is no such phase in the scope.
    """
    lines = [line for line in answer.lines if line.name == name]
    if not lines:
        names = sorted({line.name for line in answer.lines})
        known = f"there are {', '.join(names)}" if names else "there are none"
        raise CommandError(f"there is no phase {name!r} in this scope; {known}")
    where, values = in_scope(source, scope, "session_id")
    sql = f"""
        SELECT CAST(floor(log10(duration_ns) * {_PER_DECADE} + 1e-9) AS BIGINT) AS bin,
            count(*) AS n
        FROM phases WHERE name = $name AND end_ns IS NOT NULL AND status <> 'lost'
            AND duration_ns > 0 AND {where}
        GROUP BY bin ORDER BY bin"""  # noqa: S608  (our own pieces; values are bound)
    rows = source.query(sql, name=name, **values).to_pylist()
    counts = {int(row["bin"]): int(row["n"]) for row in rows}
    places = range(min(counts), max(counts) + 1) if counts else ()
    return PhaseStory(
        scope=answer.scope,
        grouped_by=answer.grouped_by,
        lines=lines,
        errors=[kind for kind in answer.errors if kind.name == name],
        phase=name,
        histogram=[Bin(_bound(at), _bound(at + 1), counts.get(at, 0)) for at in places],
    )


def _bound(place: int) -> int:
    return round(10 ** (place / _PER_DECADE))


def phases_screen(answer: Phases, screen: Screen) -> str:
    """Put phases into words, tables and, for a single one, a histogram."""
    sheet = Sheet(screen)
    where = "the run" if answer.scope == "all" else f"step {answer.scope}"
    if not answer.lines:
        sheet.say(f"There are no phases in {where}.", style="bold")
        return sheet.text
    for sentence in _sentences(answer, where):
        sheet.say(sentence, style="bold")
    sheet.blank()
    whole_ns = sum(line.total_ns for line in answer.lines)
    columns = list(_COLUMNS)
    columns[1] = (1, Column(answer.grouped_by, can_shrink=True))
    sheet.table(columns, [_cells(line, whole_ns, sheet) for line in answer.lines])
    if any(line.queue_share is not None for line in answer.lines):
        sheet.say("queue: share of waiting for the service; q50, q95: of that waiting.")
    unended = say_unended(
        "count and total",
        sum(line.count for line in answer.lines),
        sum(line.measured for line in answer.lines),
        sum(line.open_now for line in answer.lines),
    )
    if unended is not None:
        sheet.say(unended)
    if any(line.p99_ns is None for line in answer.lines):
        sheet.say("- where fewer than 20 (p95) or 100 (p99) ended.")
    if isinstance(answer, PhaseStory):
        _show_histogram(sheet, answer)
    _show_errors(sheet, answer)
    return sheet.text


def _sentences(answer: Phases, where: str) -> list[str]:
    whole_ns = sum(line.total_ns for line in answer.lines)
    first = answer.lines[0]
    said = (
        f"{_title(first)} takes most: {say_share(first.total_ns, whole_ns)} of all phase time in "
        f"{where}, "
    )
    if isinstance(answer, PhaseStory):
        number = say_count(sum(line.count for line in answer.lines), "time")
        said = f"{answer.phase} began {number} in {where}, {say_ns(whole_ns)} in all"
        if len(answer.lines) > 1:
            said += f", {say_share(first.total_ns, whole_ns)} of it for {first.group or 'none'}"
        said += ": "
    sentences = [f"{said}{_lengths(first)}."]
    queueing = [one for one in answer.lines if (one.queue_share or 0) >= _QUEUEING]
    sentences += [
        f"{_title(one)} is mostly queueing: {say_share(one.queue_share or 0)} of its time."
        for one in queueing[:2]
    ]
    errors = sum(kind.count for kind in answer.errors)
    if errors:
        most = answer.errors[0]
        sentences.append(
            f"{say_count(errors, 'span')} ended with an error, mostly {most.kind} in {most.name} "
            f"({most.count:,})."
        )
    return sentences


def _lengths(line: PhaseLine) -> str:
    parts = []
    if line.measured:
        parts.append(f"p50 {say_ns(line.p50_ns)}")
        if line.p95_ns is not None:
            parts.append(f"p95 {say_ns(line.p95_ns)}")
        parts.append(f"longest {say_ns(line.max_ns)}")
    if line.open_now:
        parts.append(f"{line.open_now:,} still open")
    return ", ".join(parts or ["none of it ended"])


def _title(line: PhaseLine) -> str:
    return line.name if line.group is None else f"{line.name} ({line.group})"


def _cells(line: PhaseLine, whole_ns: int, sheet: Sheet) -> list[str]:
    return [
        line.name,
        line.group or "",
        f"{line.count:,}",
        say_ns(line.total_ns),
        share_bar(line.total_ns, whole_ns, _BAR, is_unicode=sheet.is_unicode),
        say_ns(line.p50_ns) if line.measured else "-",
        say_maybe_ns(line.p95_ns),
        say_maybe_ns(line.p99_ns),
        say_ns(line.max_ns) if line.measured else "-",
        "" if line.queue_share is None else say_share(line.queue_share),
        "" if line.queue_p50_ns is None else say_ns(line.queue_p50_ns),
        "" if line.queue_p95_ns is None else say_ns(line.queue_p95_ns),
        f"{line.errors:,}" if line.errors else "",
        f"{line.open_now:,}" if line.open_now else "",
    ]


def _show_histogram(sheet: Sheet, answer: PhaseStory) -> None:
    if not answer.histogram:
        return
    sheet.heading(f"How long {answer.phase} took: counts, each row up to the next")
    bins = [(f"from {say_ns(one.low_ns)}", one.count) for one in answer.histogram]
    drawn = histogram(bins, width=min(sheet.width - 30, 60), is_unicode=sheet.is_unicode)
    for place, (line, (_, count)) in enumerate(zip(drawn, bins, strict=True)):
        if count or bins[place - 1][1]:  # of several empty rows, the first stands for all
            sheet.line(f"  {line}")


def _show_errors(sheet: Sheet, answer: Phases) -> None:
    if not answer.errors:
        return
    sheet.heading("Errors, by kind")
    sheet.table(_ERROR_COLUMNS, [_error_cells(kind) for kind in answer.errors[:_MOST_ERRORS]])
    if len(answer.errors) > _MOST_ERRORS:
        sheet.say(f"{len(answer.errors) - _MOST_ERRORS} more kinds; --json gives all.")
    sheet.say("Open an example with: rollscope show RUN EXAMPLE")


def _error_cells(kind: ErrorKind) -> list[str]:
    return [
        kind.kind,
        kind.name,
        f"{kind.count:,}",
        say_clock(kind.first_ns),
        "" if kind.first_step is None else str(kind.first_step),
        say_clock(kind.last_ns),
        span_hex(kind.example_session or kind.example_id),
        kind.example,
    ]
