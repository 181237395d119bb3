"""Event loops that were blocked, from the lag that processes measure on themselves."""

from collections import Counter
from typing import Final

import msgspec

from rollscope.analysis.lags import rank_ns
from rollscope.analysis.rules import LoopStall
from rollscope.answers.moment import Moment
from rollscope.answers.source import Source
from rollscope.model.loops import BLOCKED_EVENT, BLOCKED_FROM_S, LAG_METRIC

__all__ = ["LoopLag", "LoopLine", "judge_loops", "loop_lags", "loop_stalls"]

_BLOCKED_FROM_NS: Final = round(BLOCKED_FROM_S * 1e9)
_MINUTE_NS: Final = 60 * 1_000_000_000


def loop_stalls(source: Source, low_ns: int, high_ns: int) -> list[LoopStall]:
    """Give, for each process, how long its event loop was blocked between two times."""
    sql = """
        SELECT m.process AS process, coalesce(p.pid, 0) AS pid, sum(m.value) AS total_s,
            max(m.max) AS longest_s
        FROM metrics AS m LEFT JOIN processes AS p ON m.process = p.process
        WHERE m.name = $name AND m.time_ns >= $low AND m.time_ns <= $high
        GROUP BY m.process, p.pid ORDER BY total_s DESC, process"""
    rows = source.query(sql, name=LAG_METRIC, low=low_ns, high=high_ns).to_pylist()
    stalls = [
        LoopStall(
            process=row["process"],
            pid=int(row["pid"]),
            total_ns=round((row["total_s"] or 0) * 1e9),
            longest_ns=round((row["longest_s"] or 0) * 1e9),
        )
        for row in rows
    ]
    if any(stall.longest_ns >= _BLOCKED_FROM_NS for stall in stalls):
        culprits = _culprits(source, low_ns, high_ns)
        for stall in stalls:
            stall.where = culprits.get(stall.process)
    return stalls


def _culprits(source: Source, low_ns: int, high_ns: int) -> dict[int, str]:
    """Give, by process, the line that blocked its loop longest, as far as a runner has seen it."""
    sql = """
        SELECT process, attrs FROM events
        WHERE name = $name AND time_ns >= $low AND time_ns <= $high"""
    rows = source.query(sql, name=BLOCKED_EVENT, low=low_ns, high=high_ns).to_pylist()
    longest: dict[int, _Blocked] = {}
    for row in rows:
        try:
            one = msgspec.json.decode(row["attrs"], type=_Blocked)
        except msgspec.ValidationError:  # an event of this name that no runner has recorded
            continue
        if one.culprit and one.blocked_s > longest.get(row["process"], _Blocked()).blocked_s:
            longest[row["process"]] = one
    return {process: _say_line(one.culprit) for process, one in longest.items()}


class _Blocked(msgspec.Struct):
    culprit: str = ""
    blocked_s: float = 0.0


def _say_line(frame: str) -> str:
    """Write `/app/rewards.py:88 tokenize` as "`tokenize` (rewards.py:88)"."""
    line, _, function = frame.rpartition(" ")
    return f"`{function}` ({line.rpartition('/')[2]})"


class LoopLag(msgspec.Struct):
    """How late the event loop of one process was, over some time."""

    buckets: Counter[int]
    """As `metrics.buckets` numbers them, in seconds."""
    total_ns: int = 0
    longest_ns: int = 0


def loop_lags(source: Source, low_ns: int, high_ns: int) -> dict[int, LoopLag]:
    """Give, by process, how late event loops were between two times."""
    sql = """
        SELECT process, value, max, buckets FROM metrics
        WHERE name = $name AND time_ns >= $low AND time_ns <= $high"""
    lags: dict[int, LoopLag] = {}
    for row in source.query(sql, name=LAG_METRIC, low=low_ns, high=high_ns).to_pylist():
        lag = lags.setdefault(row["process"], LoopLag(Counter()))
        lag.buckets.update(msgspec.json.decode(row["buckets"] or "{}", type=dict[int, int]))
        lag.total_ns += round((row["value"] or 0) * 1e9)
        lag.longest_ns = max(lag.longest_ns, round((row["max"] or 0) * 1e9))
    return lags


class LoopLine(msgspec.Struct, kw_only=True):
    """The event loop of one process."""

    process: int
    title: str
    pid: int
    lag_p99_ns: int | None
    """Over the last minute; within 5 %."""
    blocked_ns: int
    """In all."""
    longest_ns: int
    line: str | None
    """The innermost line of the latest stack that was taken in it."""


def judge_loops(source: Source, moment: Moment) -> list[LoopLine]:
    """Tell of every event loop that was ever late, the one that was blocked longest first."""
    recent = loop_lags(source, moment.now_ns - _MINUTE_NS, moment.now_ns)
    titles = source.query("SELECT process, title FROM processes").to_pylist()
    title_of = {row["process"]: row["title"] for row in titles}
    lines = _innermost_lines(source)
    return [
        LoopLine(
            process=stall.process,
            title=title_of.get(stall.process, ""),
            pid=stall.pid,
            lag_p99_ns=rank_ns(recent.get(stall.process, LoopLag(Counter())).buckets, 99),
            blocked_ns=stall.total_ns,
            longest_ns=stall.longest_ns,
            line=lines.get(stall.process),
        )
        for stall in loop_stalls(source, moment.first_ns, moment.now_ns)
    ]


def _innermost_lines(source: Source) -> dict[int, str]:
    """Give where the latest stack of each process ends."""
    latest = source.dialect.arg_max("frames", "time_ns")
    sql = f"SELECT process, {latest} AS frames FROM stacks GROUP BY process"
    lines = {}
    for row in source.query(sql).to_pylist():
        frames = msgspec.json.decode(row["frames"], type=list[str])
        if frames:
            lines[row["process"]] = frames[-1]
    return lines
