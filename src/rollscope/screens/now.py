"""How a run is doing, as text: the lines and tables of this moment, and all of it in one picture.

`rollscope top` shows the parts live; `rollscope top --once` prints the picture.
"""

from collections.abc import Sequence
from typing import Final

from rollscope.analysis.rows import SpanRow
from rollscope.analysis.stuck import StuckRow
from rollscope.analysis.wording import say_count, say_ns, say_share, say_whole
from rollscope.answers.errors import ErrorLine
from rollscope.answers.hosts import HostLine
from rollscope.answers.now import InFlightSeries, Now
from rollscope.answers.overview import Overview
from rollscope.answers.waits import StepWaits
from rollscope.screens.hints import Hints
from rollscope.screens.plots import sparkline
from rollscope.screens.sheet import RankedColumn, Sheet
from rollscope.screens.stuck import STUCK_COLUMNS, stuck_cells
from rollscope.screens.tables import Column, Screen, clean, say_age, shorten
from rollscope.screens.tiles import show_tiles, tiles_of
from rollscope.screens.words import say_clock, say_maybe_ns, say_number

__all__ = [
    "ERROR_COLUMNS",
    "HOST_COLUMNS",
    "OPEN_COLUMNS",
    "error_cells",
    "host_cells",
    "is_imported",
    "now_screen",
    "open_cells",
    "say_state",
    "show_phases",
    "show_waits",
]

_NAME: Final = 12
_STYLES: Final = {
    "generate": "cyan",
    "tool": "yellow",
    "env": "green",
    "reward": "magenta",
    "train": "bright_yellow",
    "waiting": "bright_black",
}
"""Of phases by their role, in colours that every terminal has."""
_QUIET_NS: Final = 10_000_000_000
_MOST_LINES: Final = 10
OPEN_COLUMNS: Final[tuple[RankedColumn, ...]] = (
    *STUCK_COLUMNS,
    (7, Column("last error", can_shrink=True)),
    (8, Column("due", "right")),
)
HOST_COLUMNS: Final[tuple[RankedColumn, ...]] = (
    (0, Column("host", can_shrink=True)),
    (0, Column("in flight", "right")),
    (1, Column("doing", can_shrink=True)),
    (2, Column("alive", "right")),
    (1, Column("heard", "right")),
    (3, Column("loop p99", "right")),
    (4, Column("KV", "right")),
    (5, Column("run/wait", "right")),
)
ERROR_COLUMNS: Final[tuple[RankedColumn, ...]] = (
    (0, Column("count", "right")),
    (0, Column("kind", can_shrink=True)),
    (0, Column("in", can_shrink=True)),
    (1, Column("last", "right")),
    (3, Column("first", "right")),
    (4, Column("step", "right")),
    (2, Column("example", can_shrink=True)),
)
_WAIT_COLUMNS: Final[tuple[RankedColumn, ...]] = (
    (0, Column("step", "right")),
    (0, Column("trainer waits", "right")),
    (2, Column("for (%)")),
    (0, Column("slots idle", "right")),
    (1, Column("because (%)", can_shrink=True, cut="end")),
    (4, Column("buffered", "right")),
    (3, Column("lag", "right")),
)


def now_screen(
    run: Overview,
    now: Now,
    screen: Screen,
    *,
    slowest: SpanRow | None = None,
    hints: Hints | None = None,
) -> str:
    """Put a run as it is now into one picture.

    Args:
        run: The run.
        now: How it is doing.
        screen: Where it is shown.
        slowest: The step to look at, if one is over.
        hints: How the reader calls the run.
    """
    sheet = Sheet(screen)
    alarms = say_count(now.alarms, "alarm")
    said = f"{run.name}: {say_state(run)}. {alarms}, {say_count(now.open_sessions, 'open session')}"
    sheet.say(f"{said}, at {say_clock(now.now_ns)}.", style="bold red" if now.alarms else "bold")
    for badge in run.completeness.badges:
        sheet.point(badge.sentence)
    sheet.blank()
    show_tiles(sheet, tiles_of(now))
    sheet.blank()
    show_phases(sheet, now.by_phase)
    if now.waits:
        sheet.heading("Who waits")
        show_waits(sheet, now.waits)
    if slowest is not None and slowest.end_ns is not None:
        took = say_ns(slowest.end_ns - slowest.start_ns)
        ask = (hints or Hints()).line("steps", "--step", str(slowest.step))
        sheet.command(f"Why step {slowest.step} took longest of the last ten, {took}:", ask)
    listed = f"the first {len(now.stuck)} of {now.open_sessions:,} open"
    sheet.heading(f"Stuck and slow: {listed if now.stuck else 'nothing is open'}")
    sheet.table(OPEN_COLUMNS, [open_cells(row, now.now_ns) for row in now.stuck])
    sheet.heading("Hosts")
    lives = not is_imported(run)
    sheet.table(HOST_COLUMNS, [host_cells(line, lives=lives) for line in now.hosts.lines])
    sheet.heading(f"Errors of the last 15 min: {now.errors.total:,}")
    sheet.table(
        ERROR_COLUMNS, [error_cells(line, now.now_ns) for line in now.errors.lines[:_MOST_LINES]]
    )
    if now.errors.kinds > _MOST_LINES:
        sheet.say(f"{now.errors.kinds - _MOST_LINES:,} more kinds.")
    return sheet.text


def say_state(run: Overview) -> str:
    """Say whether a run lives, and how far it is."""
    steps = run.steps
    step = "no step yet" if steps.last is None else f"step {steps.last}"
    if steps.running is not None:
        step = f"step {steps.running}"
    if run.is_alive:
        quiet_ns = run.now_ns - run.last_ns
        return (
            f"{step}, quiet for {say_whole(quiet_ns)}" if quiet_ns > _QUIET_NS else f"{step}, live"
        )
    if is_imported(run):
        return f"imported, {say_count(steps.count, 'step')}"
    if run.is_crashed:
        return f"crashed at {step}, {say_count(run.unfinished, 'session')} unfinished"
    return f"over, {say_count(steps.count, 'step')}"


def is_imported(run: Overview) -> bool:
    """Say whether files of another tool tell of all of a run, so that nothing in it lives."""
    return bool(run.processes) and all(one.status == "imported" for one in run.processes)


def show_phases(sheet: Sheet, series: InFlightSeries, *, most: int = 8) -> None:
    """Draw the sessions in flight by phase, one line each on one scale.

    Args:
        sheet: Where it goes.
        series: What was counted.
        most: How many lines; the smallest phases share the last one.
    """
    named = [
        (name, role, counts)
        for name, role, counts in zip(series.names, series.roles, series.counts, strict=True)
        if any(counts)
    ]
    if len(named) > most:
        small = [counts for _, _, counts in named[most - 1 :]]
        rest = [sum(at) for at in zip(*small, strict=True)]
        named = [*named[: most - 1], (f"{len(small)} others", None, rest)]
    length = say_ns(series.bin_ns * len(series.counts[0]))
    slots = "" if series.capacity is None else f"; {say_count(series.capacity, 'slot')}"
    doing = "" if named else ": nothing"
    sheet.line(f"In flight by phase, last {length}{slots}{doing}", style="bold")
    top = max((max(counts) for _, _, counts in named), default=0)
    width = max(sheet.width - _NAME - 10, 10)
    for name, role, counts in named:
        drawn = sparkline(counts, width=width, top=top, is_unicode=sheet.is_unicode)
        sheet.line(
            f"{shorten(clean(name), _NAME):<{_NAME}} {counts[-1]:>6,}  {drawn}",
            style=_STYLES.get(role or "", ""),
        )


def show_waits(sheet: Sheet, waits: Sequence[StepWaits]) -> None:
    """Say who waited in each step, trainer or slots, and for what."""
    sheet.table(_WAIT_COLUMNS, [_wait_cells(one) for one in waits])


def _wait_cells(one: StepWaits) -> list[str]:
    reasons = {"filling": one.trainer.filling_ns, "stragglers": one.trainer.stragglers_ns}
    lag = "" if one.lag_p50 is None else f"{one.lag_p50}/{one.lag_max}"
    return [
        f"{one.step}{'*' if one.is_running else ''}",
        say_share(one.trainer_wait_share),
        _say_parts(reasons, one.wall_ns),
        f"{'~' if one.is_assumed else ''}{say_share(one.idle_share)}",
        _say_parts(one.idle_ns, one.slot_ns),
        "" if one.buffered is None else f"{one.buffered:,}",
        lag,
    ]


def _say_parts(parts: dict[str, int], whole_ns: int) -> str:
    """Write parts of a whole in per cent, the largest first; nothing below one."""
    largest = sorted(parts.items(), key=lambda item: -item[1])
    told = [
        f"{name.replace('_', ' ')} {100 * ns / whole_ns:.0f}"
        for name, ns in largest
        if ns * 100 >= whole_ns > 0
    ]
    return ", ".join(told)


def open_cells(row: StuckRow, now_ns: int) -> list[str]:
    """Write an open session with its last error and when it is due."""
    due = "" if row.deadline_ns is None else _say_due(row.deadline_ns - now_ns)
    return [*stuck_cells(row), row.last_error or "", due]


def _say_due(left_ns: int) -> str:
    return f"in {say_whole(left_ns)}" if left_ns > 0 else f"{say_whole(-left_ns)} ago"


def host_cells(line: HostLine, *, lives: bool = True) -> list[str]:
    """Write a host for a line of a table; whether its processes live only where that is known."""
    slots = "" if line.capacity is None else f"/{line.capacity:,}"
    is_engine = line.engine_running is not None or line.engine_waiting is not None
    both = f"{say_number(line.engine_running, 0)}/{say_number(line.engine_waiting, 0)}"
    return [
        line.name,
        f"{line.in_flight:,}{slots}",
        ", ".join(f"{count:,} {name}" for name, count in line.phases.items()),
        f"{line.alive}/{line.processes}" if lives else "",
        say_maybe_ns(line.heartbeat_age_ns) if lives else "",
        say_maybe_ns(line.loop_lag_p99_ns),
        "" if line.kv_use is None else say_share(line.kv_use),
        both if is_engine else "",
    ]


def error_cells(line: ErrorLine, now_ns: int) -> list[str]:
    """Write a kind of error for a line of a table."""
    return [
        f"{line.count:,}",
        line.kind,
        line.name,
        say_age(line.last_ns, now_ns),
        say_age(line.first_ns, now_ns),
        "" if line.first_step is None else str(line.first_step),
        line.example,
    ]
