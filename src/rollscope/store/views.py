"""The views of a run: what every query reads, in either engine.

Below them lie `raw_spans`, `raw_events`, `raw_facts`, `raw_metrics` and `raw_stacks` (sealed rows
and the fresh tail, on the clocks of their processes) and `processes`. The views move times onto one
clock and apply late facts, so that nobody else has to.
"""

from collections.abc import Callable, Sequence
from typing import Final

from rollscope.store.corrections import Correction, Corrections, Knot
from rollscope.store.dialect import Dialect

__all__ = ["VIEWS", "Among", "sessions_among", "view_sql"]

_SPAN_COLUMNS: Final = """
    r.process AS process, r.trace_id AS trace_id, r.span_id AS span_id, r.parent_id AS parent_id,
    r.session_id AS session_id, r.kind AS kind, r.name AS name, r.category AS category,
    r.detail AS detail, {start} AS start_ns, {end} AS end_ns, r.end_ns - r.start_ns AS duration_ns,
    r.status AS status, r.reason AS reason, r.outcome AS outcome, r.step AS step,
    r.version_start AS version_start, r.version_end AS version_end, r.task_key AS task_key,
    r.family AS family, r.sample AS sample, r.group_key AS group_key, r.lane AS lane,
    r.replica AS replica, r.attempt AS attempt, r.turns AS turns, r.tokens_in AS tokens_in,
    r.tokens_out AS tokens_out, r.waited_ns AS waited_ns, r.queue_ns AS queue_ns,
    r.deadline_ns AS deadline_ns, r.link AS link, r.reward AS reward, r.path AS path,
    r.parent_path AS parent_path, r.overlap_ns AS overlap_ns, r.attrs AS attrs,
    r.start_ns AS recorded_start_ns, r.end_ns AS recorded_end_ns"""


Among = Callable[[str], str]
"""Gives the condition on a column that an id in it is one of the chosen."""


def _moved(column: str, corrections: Corrections, dialect: Dialect) -> str:
    """Move a time. A join would cost every query, also those that do not ask for times."""
    if not corrections:
        return column
    return f"{column} + {_offset(column, sorted(corrections.items()), dialect)}"


def _offset(column: str, chosen: Sequence[tuple[int, Correction]], dialect: Dialect) -> str:
    """Find the offset of a process by halving: DuckDB makes a join of each list that IN is given.

    Neighbouring rows are of one process, so that few branches are ever entered.
    """
    middle = len(chosen) // 2
    process, correction = chosen[middle]
    if not middle:
        offset = _along(column, correction.knots, dialect)
        return f"CASE WHEN r.process = {process} THEN {offset} ELSE 0 END"
    below = _offset(column, chosen[:middle], dialect)
    above = _offset(column, chosen[middle:], dialect)
    return f"CASE WHEN r.process < {process} THEN {below} ELSE {above} END"


def _along(column: str, knots: Sequence[Knot], dialect: Dialect) -> str:
    """Find the stretch that a time falls into, in the same way."""
    middle = len(knots) // 2
    if middle:
        below = _along(column, knots[:middle], dialect)
        above = _along(column, knots[middle:], dialect)
        return f"CASE WHEN {column} < {knots[middle].at_ns} THEN {below} ELSE {above} END"
    at_ns, offset_ns, rate = knots[0]
    if not rate:
        return str(offset_ns)
    # All digits and an exponent, or DuckDB would read a decimal number of its own kind.
    return f"{offset_ns} + {dialect.floor(f'({column} - {at_ns}) * {rate:.17e}')}"


def _spans(dialect: Dialect, corrections: Corrections) -> str:
    columns = _SPAN_COLUMNS.format(
        start=_moved("r.start_ns", corrections, dialect),
        end=_moved("r.end_ns", corrections, dialect),
    )
    return f"SELECT {columns} FROM raw_spans AS r"


def _instants(table: str, columns: str) -> Callable[[Dialect, Corrections], str]:
    def sql(dialect: Dialect, corrections: Corrections) -> str:
        moved = _moved("r.time_ns", corrections, dialect)
        return f"SELECT {columns}, {moved} AS time_ns FROM {table} AS r"

    return sql


def _fact_sums(dialect: Dialect, _: Corrections, among: Among | None = None) -> str:
    def last(column: str) -> str:
        return dialect.arg_max(column, "time_ns", "process", "number")

    consumed = "CASE WHEN consumed_step IS NULL THEN NULL ELSE time_ns END"
    where = "" if among is None else f"WHERE {among('span_id')}"
    return f"""
        SELECT span_id, {last("outcome")} AS outcome, {last("reason")} AS reason,
            {last("version_end")} AS version_end, {last("consumed_step")} AS consumed_step,
            {last("reward")} AS reward, max({consumed}) AS consumed_ns
        FROM facts {where} GROUP BY span_id"""


def _sessions(dialect: Dialect, corrections: Corrections, among: Among | None = None) -> str:
    facts = "fact_sums"
    where = ""
    if among is not None:
        facts = f"({_fact_sums(dialect, corrections, among)})"
        where = f"AND {among('s.span_id')}"
    return f"""
        SELECT s.span_id AS session_id, s.process AS process, p.host AS host,
            coalesce(s.replica, p.title) AS pool, s.trace_id AS trace_id, s.task_key AS task_key,
            s.family AS family, s.group_key AS group_key, s.sample AS sample,
            coalesce(s.attempt, 0) AS attempt, s.step AS step, f.consumed_step AS consumed_step,
            f.consumed_ns AS consumed_ns, coalesce(f.consumed_step, s.step) AS charged_step,
            s.start_ns AS start_ns, s.end_ns AS end_ns, s.duration_ns AS duration_ns,
            s.status AS status, coalesce(f.outcome, s.outcome) AS outcome,
            coalesce(f.reason, s.reason) AS reason, s.version_start AS version_start,
            coalesce(f.version_end, s.version_end) AS version_end, s.waited_ns AS waited_ns,
            s.start_ns + s.deadline_ns AS deadline_ns, coalesce(f.reward, s.reward) AS reward,
            s.tokens_in AS tokens_in, s.tokens_out AS tokens_out, s.turns AS turns,
            s.parent_id AS parent_id, s.attrs AS attrs,
            s.recorded_start_ns AS recorded_start_ns, s.recorded_end_ns AS recorded_end_ns
        FROM spans AS s LEFT JOIN processes AS p ON s.process = p.process
            LEFT JOIN {facts} AS f ON s.span_id = f.span_id
        WHERE s.kind = 'session' {where}"""


def sessions_among(dialect: Dialect, chosen: str | Among) -> str:
    """Give the query behind the view `sessions`, for some of them only.

    Neither engine sees by itself that facts of other sessions need not be looked at.

    Args:
        dialect: The engine it is for.
        chosen: A query of ours that gives their ids as `span_id`, or what gives the condition on
            a column that an id in it is one of theirs.
    """
    if dialect.has_sessions:
        is_one = f"session_id IN ({chosen})" if isinstance(chosen, str) else chosen("session_id")
        return f"SELECT * FROM sessions WHERE {is_one}"
    if not isinstance(chosen, str):
        return _sessions(dialect, {}, chosen)
    sessions = _sessions(dialect, {}, lambda column: f"{column} IN (SELECT span_id FROM picked)")
    return f"WITH picked AS ({chosen}) {sessions}"


def _of_kind(kind: str) -> Callable[[Dialect, Corrections], str]:
    def sql(_: Dialect, __: Corrections) -> str:
        return f"SELECT * FROM spans WHERE kind = '{kind}'"

    return sql


def _tasks(_: Dialect, __: Corrections) -> str:
    """A session that no task was opened around is a task of one sample itself."""
    return """
        SELECT * FROM spans WHERE kind = 'task'
        UNION ALL
        SELECT * REPLACE ('task' AS kind, 'task' AS name) FROM (
            SELECT * FROM spans
            WHERE kind = 'session' AND parent_id IS NULL AND coalesce(attempt, 0) = 0
        ) AS alone"""


VIEWS: Final[dict[str, tuple[Callable[[Dialect, Corrections], str], tuple[str, ...]]]] = {
    "spans": (_spans, ()),
    "events": (
        _instants(
            "raw_events",
            "r.process AS process, r.trace_id AS trace_id, r.event_id AS event_id, r.parent_id AS "
            "parent_id, r.session_id AS session_id, r.name AS name, r.step AS step, r.version AS "
            "version, r.attrs AS attrs",
        ),
        (),
    ),
    "facts": (
        _instants(
            "raw_facts",
            "r.process AS process, r.span_id AS span_id, r.number AS number, r.outcome AS outcome, "
            "r.reason AS reason, r.version_end AS version_end, r.consumed_step AS consumed_step, "
            "r.reward AS reward, r.facts AS facts",
        ),
        (),
    ),
    "metrics": (
        _instants(
            "raw_metrics",
            "r.process AS process, r.type AS type, r.name AS name, r.labels AS labels, r.value AS "
            "value, r.count AS count, r.min AS min, r.max AS max, r.buckets AS buckets, r.step AS "
            "step",
        ),
        (),
    ),
    "stacks": (
        _instants(
            "raw_stacks",
            "r.process AS process, r.span_id AS span_id, r.task AS task, r.frames AS frames",
        ),
        (),
    ),
    "fact_sums": (_fact_sums, ("facts",)),
    "sessions": (_sessions, ("spans", "fact_sums")),
    "steps": (_of_kind("step"), ("spans",)),
    "tasks": (_tasks, ("spans",)),
    "phases": (_of_kind("phase"), ("spans",)),
    "states": (_of_kind("state"), ("spans",)),
}
"""Each view and the views it reads, which come before it."""


def view_sql(name: str, dialect: Dialect, corrections: Corrections) -> str:
    """Give the query behind a view.

    Args:
        name: The view.
        dialect: The engine it is for.
        corrections: How the times of processes are moved. `recorded_start_ns` and
            `recorded_end_ns` are as they stand in the files: filters on them skip what is out of
            range.
    """
    make, _ = VIEWS[name]
    return make(dialect, corrections)
