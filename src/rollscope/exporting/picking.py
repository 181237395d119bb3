"""What of a run is exported, copied out of its views with late facts applied.

Times stand on one clock there. An end before its start is shown as no length at all, and kept.
"""

from typing import Final

from rollscope.exporting.rows import EVENT, Place, Process, Sample, TraceRow
from rollscope.exporting.scratch import Scratch

__all__ = ["Steps", "count_picked", "first_ns", "pick", "pick_processes", "within"]

Steps = tuple[int, int]
"""The first and the last of the steps that are meant."""

_PLACED: Final = ("pid", "tid", "children", "is_linked", "process")
"""What is not known yet, and what every row has anyway."""
_OF_EVENTS: Final = {
    "span_id": "event_id",
    "start_ns": "time_ns",
    "end_ns": "time_ns",
    "recorded_end_ns": "time_ns",
    "kind": f"'{EVENT}'",
    "version_start": "version",
}
_SAME_IN_EVENTS: Final = frozenset({"parent_id", "session_id", "trace_id", "name", "step", "attrs"})
_LATE: Final = frozenset({"reason", "outcome", "version_end", "reward"})
_OPEN: Final = "(s.status = 'open' OR s.end_ns IS NULL)"
_PLACE: Final = f"""
    CASE WHEN kind = 'state' AND lane IS NOT NULL THEN '{Place.LANE}'
        WHEN session_id IS NOT NULL THEN '{Place.SESSION}'
        WHEN kind = 'step' THEN '{Place.STEPS}'
        WHEN kind = 'task' THEN '{Place.TASKS}'
        ELSE '{Place.SPANS}' END"""
_COLUMNS: Final = tuple(name for name in TraceRow._fields if name not in _PLACED)


def pick(scratch: Scratch, steps: Steps | None, *, metrics: bool) -> None:
    """Copy spans and events of some steps, or all, and metrics of the same stretch of time."""
    spans = ", ".join(map(_of_span, _COLUMNS))
    events = ", ".join(map(_of_event, _COLUMNS))
    scratch.run(f"""
        CREATE TABLE export.picked AS
        SELECT *, {_PLACE} AS place FROM (
            SELECT s.process AS process, {spans} FROM spans AS s
            LEFT JOIN (
                SELECT session_id, consumed_step, consumed_ns, {", ".join(sorted(_LATE))}
                FROM sessions
            ) AS late ON s.kind = 'session' AND s.span_id = late.session_id
            WHERE {within(steps, "s.step")}
            UNION ALL
            SELECT process, {events} FROM events WHERE {within(steps, "step")}
        ) AS told""")
    during = "TRUE"
    if steps is not None:
        during = """time_ns BETWEEN (SELECT min(start_ns) FROM export.picked)
            AND (SELECT max(coalesce(end_ns, start_ns)) FROM export.picked)"""
    scratch.run(f"""
        CREATE TABLE export.samples AS
        SELECT {", ".join(Sample._fields[:-1])}, count AS entries FROM metrics
        WHERE {during if metrics else "FALSE"} AND isfinite(coalesce(value, 0))""")


def _of_span(name: str) -> str:
    if name in ("consumed_step", "consumed_ns"):
        return f"late.{name} AS {name}"
    if name in _LATE:
        return f"coalesce(late.{name}, s.{name}) AS {name}"
    if name == "end_ns":
        return f"CASE WHEN {_OPEN} THEN NULL ELSE greatest(s.start_ns, s.end_ns) END AS end_ns"
    if name == "recorded_end_ns":
        return f"CASE WHEN {_OPEN} THEN NULL ELSE s.end_ns END AS recorded_end_ns"
    return f"s.{name} AS {name}"


def _of_event(name: str) -> str:
    if name in _SAME_IN_EVENTS:
        return name
    return f"{_OF_EVENTS.get(name, 'NULL')} AS {name}"


def within(steps: Steps | None, column: str) -> str:
    """Give the condition that something belongs to the steps that are meant."""
    return "TRUE" if steps is None else f"{column} BETWEEN {int(steps[0])} AND {int(steps[1])}"


def pick_processes(scratch: Scratch) -> list[Process]:
    """Give the processes that something was picked of, numbered, and the lanes after them."""
    found = scratch.ask("""
        SELECT told.process, p.role, p.rank, p.host, p.pid FROM (
            SELECT DISTINCT process FROM export.picked
            UNION SELECT DISTINCT process FROM export.samples
        ) AS told LEFT JOIN processes AS p USING (process)
        ORDER BY p.role NULLS LAST, p.rank NULLS LAST, p.host, p.started_ns, told.process""")
    columns = [column.to_pylist() for column in found.columns]
    processes = [
        Process(number, process, role or "", rank, host or "", pid or 0)
        for number, (process, role, rank, host, pid) in enumerate(zip(*columns, strict=True), 1)
    ]
    return [*processes, Process(len(processes) + 1, None)]


def count_picked(scratch: Scratch) -> tuple[int, int, int, int]:
    """Say how many spans, open ones among them, events and samples there are."""
    row = scratch.ask(f"""
        SELECT count(*) FILTER (kind <> '{EVENT}') AS spans,
            count(*) FILTER (end_ns IS NULL) AS open,
            count(*) FILTER (kind = '{EVENT}') AS events,
            (SELECT count(*) FROM export.samples) AS samples
        FROM export.picked""").to_pylist()[0]
    return row["spans"], row["open"], row["events"], row["samples"]


def first_ns(scratch: Scratch) -> int:
    """Say when the first of it was."""
    found = scratch.ask("""
        SELECT coalesce(least((SELECT min(start_ns) FROM export.picked),
            (SELECT min(time_ns) FROM export.samples)), 0) AS first""")
    first: int = found["first"][0].as_py()
    return first
