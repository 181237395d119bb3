"""Event loops that were blocked, from the lag that processes measure on themselves."""

from typing import Final

from rollscope.analysis.rules import LoopStall
from rollscope.answers.source import Source

__all__ = ["LAG_METRIC", "loop_stalls"]

LAG_METRIC: Final = "event_loop_lag_seconds"
"""The histogram of how late an event loop ran what was due."""


def loop_stalls(source: Source, low_ns: int, high_ns: int) -> list[LoopStall]:
    """Give, for each process, how long its event loop was blocked between two times."""
    sql = """
        SELECT m.process AS process, coalesce(p.pid, 0) AS pid, sum(m.value) AS total_s,
            max(m.max) AS longest_s
        FROM metrics AS m LEFT JOIN processes AS p ON m.process = p.process
        WHERE m.name = $name AND m.time_ns >= $low AND m.time_ns <= $high
        GROUP BY m.process, p.pid ORDER BY total_s DESC, process"""
    rows = source.query(sql, name=LAG_METRIC, low=low_ns, high=high_ns).to_pylist()
    return [
        LoopStall(
            process=row["process"],
            pid=int(row["pid"]),
            total_ns=round((row["total_s"] or 0) * 1e9),
            longest_ns=round((row["longest_s"] or 0) * 1e9),
        )
        for row in rows
    ]
