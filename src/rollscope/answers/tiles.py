"""The few large numbers that say whether a run is healthy, each with its last fifteen minutes.

Each spark has 60 values, one for every 15 s, the latest last; they are closer while a run is so
young that it would fill a corner only.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from rollscope.analysis.eta import Eta
from rollscope.analysis.flight import Grid
from rollscope.analysis.stuck import StuckRow
from rollscope.answers.moment import Moment
from rollscope.answers.recent import Recent, in_bins
from rollscope.answers.source import Source
from rollscope.answers.waits import StepDigest

__all__ = [
    "WINDOW_NS",
    "ErrorTile",
    "InFlightTile",
    "OldestTile",
    "ProgressTile",
    "RateTile",
    "ended_tile",
    "error_tile",
    "oldest_tile",
    "progress_tile",
    "spark_grid",
    "token_tile",
]

_SECOND: Final = 1_000_000_000
WINDOW_NS: Final = 900 * _SECOND
_SPARK_TICKS: Final = 60
_SPARK_S: Final = (0.1, 0.2, 0.5, 1, 2, 5, 15)
"""How far apart the values of a spark may be."""
_ENDED_S: Final = 300
_TOKENS_S: Final = 60
_ERRORS_S: Final = 300


class InFlightTile(msgspec.Struct, kw_only=True):
    """How many sessions run."""

    count: int
    capacity: int | None
    """How many fit; None if no session ever ran."""
    is_assumed: bool
    """Whether some of the capacity is not declared but the most that was ever seen."""
    spark: list[int]


class ProgressTile(msgspec.Struct, kw_only=True):
    """How far the running step is, or the last one."""

    step: int | None
    is_running: bool
    done: int
    """Sessions of the step that are over."""
    of: int | None
    """How many it has; while it runs, at least as many as steps usually have."""
    eta: Eta | None
    """Of a step that is running."""
    spark: list[int]
    """How many of its sessions were over."""


class RateTile(msgspec.Struct, kw_only=True):
    """How much came in a while."""

    rate: float
    window_ns: int
    """Over how long the rate is taken."""
    spark: list[float]


class OldestTile(msgspec.Struct, kw_only=True):
    """The session that has been open longest."""

    session_id: int | None
    age_ns: int
    task_key: str | None
    sample: int | None
    name: str | None
    """The phase it is in."""
    detail: str | None
    spark: list[int]
    """How old the oldest was, in nanoseconds."""


class ErrorTile(msgspec.Struct, kw_only=True):
    """Spans that ended in an error."""

    recent: int
    """In the last five minutes."""
    window_ns: int
    run_per_minute: float
    """Over the whole run."""
    spark: list[int]


def spark_grid(moment: Moment) -> Grid:
    """Give the moments that sparks show: fifteen minutes, or all of a run that is younger."""
    distances_ns = (round(apart_s * _SECOND) for apart_s in _SPARK_S)
    step_ns = moment.apart_ns(distances_ns, _SPARK_TICKS, WINDOW_NS // _SPARK_TICKS)
    return Grid(moment.now_ns, step_ns, _SPARK_TICKS)


def ended_tile(recent: Recent, moment: Moment) -> RateTile:
    """Tell how many sessions end per minute."""
    grid = spark_grid(moment)
    (ended,) = recent.ended(Grid(moment.now_ns, _ENDED_S * _SECOND, 1)).tolist()
    seconds = _covered_s(moment, _ENDED_S)
    return RateTile(
        rate=ended / seconds * 60,
        window_ns=_ENDED_S * _SECOND,
        spark=(recent.ended(grid) * (60 * _SECOND / grid.step_ns)).tolist(),
    )


def token_tile(recent: Recent, moment: Moment) -> RateTile:
    """Tell how many output tokens come per second; a phase tells of its tokens when it ends."""
    grid = spark_grid(moment)
    (tokens,) = recent.tokens(Grid(moment.now_ns, _TOKENS_S * _SECOND, 1)).tolist()
    seconds = _covered_s(moment, _TOKENS_S)
    return RateTile(
        rate=tokens / seconds,
        window_ns=_TOKENS_S * _SECOND,
        spark=np.round(recent.tokens(grid) * (_SECOND / grid.step_ns), 1).tolist(),
    )


def _covered_s(moment: Moment, seconds: int) -> float:
    """Give over how long a rate is taken: a run that has just begun has not had all of it."""
    return min(seconds, max(moment.age_ns / _SECOND, 1.0))


def oldest_tile(recent: Recent, moment: Moment, rows: Sequence[StuckRow]) -> OldestTile:
    """Tell of the session that has been open longest, and in which phase it is."""
    tile = OldestTile(
        session_id=None,
        age_ns=0,
        task_key=None,
        sample=None,
        name=None,
        detail=None,
        spark=recent.oldest(spark_grid(moment)).tolist(),
    )
    found = recent.oldest_open()
    if found is not None:
        tile.session_id, start_ns = found
        row = next((one for one in rows if one.session_id == tile.session_id), None)
        tile.age_ns = max(moment.now_ns - start_ns, 0)
        if row is not None:
            tile.task_key, tile.sample = row.task_key, row.sample
            tile.name, tile.detail = row.name, row.detail
    return tile


def error_tile(source: Source, moment: Moment) -> ErrorTile:
    """Count the spans that ended in an error."""
    low_ns = moment.now_ns - WINDOW_NS
    sql = """
        SELECT end_ns FROM spans WHERE status = 'error' AND end_ns >= $low
            AND recorded_end_ns >= $files_low"""
    ends = source.query(sql, low=low_ns, files_low=low_ns - moment.moved_ns)["end_ns"].to_numpy()
    whole = source.query("SELECT count(*) AS n FROM spans WHERE status = 'error'")["n"][0].as_py()
    (recent,) = in_bins(ends, Grid(moment.now_ns, _ERRORS_S * _SECOND, 1)).tolist()
    return ErrorTile(
        recent=recent,
        window_ns=_ERRORS_S * _SECOND,
        run_per_minute=whole / max(moment.age_ns / _SECOND, 1.0) * 60,
        spark=in_bins(ends, spark_grid(moment)).tolist(),
    )


def progress_tile(
    digest: StepDigest | None, forecast: tuple[Eta, int] | None, moment: Moment
) -> ProgressTile:
    """Tell how far a step is.

    Args:
        digest: The running step, or the last one; None if there is none.
        forecast: When it will end and how many sessions it will have, if it is running.
        moment: When now is.
    """
    if digest is None:
        empty = [0] * _SPARK_TICKS
        return ProgressTile(step=None, is_running=False, done=0, of=None, eta=None, spark=empty)
    ends = np.array(digest.ends_ns, np.int64)
    grid = spark_grid(moment)
    before = int((ends <= grid.start_ns - grid.step_ns).sum())
    eta, of = (None, digest.sessions_count) if forecast is None else forecast
    return ProgressTile(
        step=digest.waits.step,
        is_running=digest.waits.is_running,
        done=len(ends),
        of=of,
        eta=eta,
        spark=(before + np.cumsum(in_bins(ends, grid))).tolist(),
    )
