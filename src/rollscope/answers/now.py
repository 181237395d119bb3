"""Is it healthy, what is stuck: the run as of this moment, from its last fifteen minutes.

A run that is over is shown as of its end.
"""

from typing import Final

import msgspec
import numpy as np

from rollscope.analysis.eta import Eta
from rollscope.analysis.flight import Grid
from rollscope.analysis.intervals import Interval, clip, merge
from rollscope.analysis.roles import PAUSE_STATES, SYNC_PARTS, is_sync, role_of
from rollscope.analysis.stuck import StuckRow
from rollscope.answers.capacity import known_capacity
from rollscope.answers.errors import Errors, errors
from rollscope.answers.facts import gather_steps
from rollscope.answers.hosts import OTHER, Hosts, hosts
from rollscope.answers.moment import Moment, moment_of
from rollscope.answers.recent import Recent, fetch_recent
from rollscope.answers.sharing import sharing
from rollscope.answers.source import Source
from rollscope.answers.stuck import stuck
from rollscope.answers.tiles import (
    WINDOW_NS,
    ErrorTile,
    InFlightTile,
    OldestTile,
    ProgressTile,
    RateTile,
    ended_tile,
    error_tile,
    oldest_tile,
    progress_tile,
    spark_grid,
    token_tile,
)
from rollscope.answers.waits import (
    ETA_STEPS,
    StepDigest,
    StepWaits,
    digest_step,
    past_digests,
    step_eta,
)

__all__ = ["InFlightSeries", "Now", "ShadedBand", "now"]

_MOST_STUCK: Final = 20
_FINEST_NS: Final = 1_000_000


class ShadedBand(msgspec.Struct, kw_only=True):
    """A time in which pools stood still."""

    kind: str
    """`pause` or `sync`."""
    start_ns: int
    end_ns: int


class InFlightSeries(msgspec.Struct, kw_only=True):
    """Sessions in flight by the phase they were in, moment by moment."""

    start_ns: int
    """The first moment; each further one is `bin_ns` later, and the last one is now."""
    bin_ns: int
    names: list[str]
    """Phases, the one with most sessions first; `other`, between phases, is the last."""
    roles: list[str | None]
    """The role of each."""
    counts: list[list[int]]
    """For each name, a number for each moment; together they are what is in flight."""
    capacity: int | None
    bands: list[ShadedBand]


class Now(msgspec.Struct, kw_only=True):
    """The run as of this moment.

    Each spark has 60 values, one for every 15 s, the latest last; closer while the run is young.
    """

    now_ns: int
    """Now; the end of a run that is over."""
    is_alive: bool
    in_flight: InFlightTile
    progress: ProgressTile
    ended: RateTile
    """Sessions that ended per minute, over the last five."""
    tokens: RateTile
    """Output tokens per second, over the last minute."""
    oldest: OldestTile
    failures: ErrorTile
    waits: list[StepWaits]
    """The running step first, then the last one that is over."""
    by_phase: InFlightSeries
    open_sessions: int
    alarms: int
    """How many of the open sessions and spans need a look."""
    stuck: list[StuckRow]
    """The most suspicious 20 of the open sessions."""
    hosts: Hosts
    errors: Errors
    """Of the last fifteen minutes."""


def now(source: Source, *, bins: int = 900) -> Now:
    """Tell how the run is doing.

    Args:
        source: The run.
        bins: How many moments of fifteen minutes the series by phase has. A run that is younger
            has closer ones, at least a third of that many in all.
    """
    with sharing():
        return _now(source, bins)


def _now(source: Source, bins: int) -> Now:
    moment = moment_of(source)
    grid = _moments(moment, bins)
    recent = fetch_recent(source, moment, WINDOW_NS, grid.step_ns)
    judged = stuck(source)
    capacity, is_assumed = known_capacity(source)
    digests, forecast = _steps(source)
    in_flight = recent.count_sessions(spark_grid(moment)).tolist()
    return Now(
        now_ns=moment.now_ns,
        is_alive=moment.is_alive,
        in_flight=InFlightTile(
            count=in_flight[-1], capacity=capacity, is_assumed=is_assumed, spark=in_flight
        ),
        progress=progress_tile(digests[0] if digests else None, forecast, moment),
        ended=ended_tile(recent, moment),
        tokens=token_tile(recent, moment),
        oldest=oldest_tile(recent, moment, judged.rows),
        failures=error_tile(source, moment),
        waits=[digest.waits for digest in digests],
        by_phase=_by_phase(source, recent, moment, capacity, grid),
        open_sessions=judged.open_sessions,
        alarms=judged.alarms,
        stuck=judged.rows[:_MOST_STUCK],
        hosts=hosts(source),
        errors=errors(source, since_ns=moment.now_ns - WINDOW_NS),
    )


def _steps(source: Source) -> tuple[list[StepDigest], tuple[Eta, int] | None]:
    """Give the running step and the last one that is over, and when the running one will end."""
    sql = """
        SELECT step, sum(CASE WHEN end_ns IS NULL THEN 1 ELSE 0 END) AS unended
        FROM steps WHERE step IS NOT NULL GROUP BY step ORDER BY step"""
    known = source.query(sql)
    numbers: list[int] = known["step"].to_pylist()
    if not numbers:
        return [], None
    if not known["unended"][-1].as_py():  # no rank has yet to end it
        return past_digests(source, numbers[-1:]), None
    gathered, _ = gather_steps(source, numbers[-1], numbers[-1], is_light=True)
    facts, earlier = gathered[-1], numbers[:-1]
    history = past_digests(source, earlier[-ETA_STEPS:])
    is_running = facts.span.end_ns is None
    forecast = step_eta(facts, history) if is_running else None
    return [digest_step(facts), *history[-1:]], forecast


def _moments(moment: Moment, bins: int) -> Grid:
    """Give the moments of the series: so close that a run of seconds shows its course too."""
    rounds = (_FINEST_NS * 10**power * times for power in range(6) for times in (1, 2, 5))
    step_ns = moment.apart_ns(rounds, bins // 3, WINDOW_NS // bins)
    return Grid(moment.now_ns, step_ns, min(bins, moment.age_ns // step_ns + 2))


def _by_phase(
    source: Source, recent: Recent, moment: Moment, capacity: int | None, grid: Grid
) -> InFlightSeries:
    counted = recent.count_phases(grid)
    order = sorted(
        (number for number, counts in enumerate(counted) if counts.any()),
        key=lambda number: (-int(counted[number].sum()), recent.names[number]),
    )
    rest = recent.count_sessions(grid) - sum(counted, np.zeros(grid.ticks, np.int64))
    names = [recent.names[number] for number in order]
    return InFlightSeries(
        start_ns=grid.start_ns,
        bin_ns=grid.step_ns,
        names=[*names, OTHER],
        roles=[*(role_of(name) for name in names), None],
        counts=[*(counted[number].tolist() for number in order), rest.tolist()],
        capacity=capacity,
        bands=_bands(source, moment),
    )


def _bands(source: Source, moment: Moment) -> list[ShadedBand]:
    """Find when pools were paused or weights synced."""
    low_ns = moment.now_ns - WINDOW_NS
    names = sorted(PAUSE_STATES.union(*SYNC_PARTS.values()))
    sql = f"""
        SELECT name, start_ns, coalesce(end_ns, $now) AS end_ns FROM spans
        WHERE {source.dialect.is_in("name", "$names")} AND session_id IS NULL
            AND (kind = 'state' OR kind = 'span')
            AND recorded_start_ns <= $files_high
            AND (recorded_end_ns IS NULL OR recorded_end_ns >= $files_low)"""
    times = {"files_low": low_ns - moment.moved_ns, "files_high": moment.now_ns + moment.moved_ns}
    found: dict[str, list[Interval]] = {"pause": [], "sync": []}
    for row in source.query(sql, names=names, now=moment.now_ns, **times).to_pylist():
        kind = "sync" if is_sync(row["name"]) else "pause"
        found[kind].append((row["start_ns"], row["end_ns"]))
    return [
        ShadedBand(kind=kind, start_ns=start, end_ns=end)
        for kind, intervals in found.items()
        for start, end in merge(clip(intervals, (low_ns, moment.now_ns)))
    ]
