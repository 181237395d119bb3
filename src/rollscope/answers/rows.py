"""Rows for analysis, fetched from the views of a run."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from rollscope.analysis.rows import EventRow, ProcessRow, SessionRow, SpanRow
from rollscope.answers.moves import MOST_MOVED
from rollscope.answers.sharing import shared
from rollscope.answers.source import Source, fetch
from rollscope.store.dialect import Value
from rollscope.store.views import Among, sessions_among

__all__ = [
    "MAYBE_CHARGED",
    "PROCESS_COLUMNS",
    "SESSION_COLUMNS",
    "SPAN_COLUMNS",
    "WAITS_COLUMNS",
    "add_tokens",
    "bound_ids",
    "charged_extent",
    "charged_sessions",
    "event_rows",
    "extent",
    "in_batches",
    "most_moved",
    "one_of",
    "process_rows",
    "session_attrs",
    "session_rows",
    "sessions_with",
    "span_rows",
]

SESSION_COLUMNS: Final = """
    session_id AS span_id, process, coalesce(host, '') AS host, coalesce(pool, '') AS pool,
    task_key, family, group_key AS "group", sample, attempt, step, consumed_step, consumed_ns,
    start_ns, end_ns, status, outcome, reason, version_start, version_end, waited_ns, deadline_ns,
    reward, tokens_in, tokens_out, turns"""

WAITS_COLUMNS: Final = """
    session_id AS span_id, process, coalesce(pool, '') AS pool, step, consumed_step, consumed_ns,
    start_ns, end_ns, status, outcome, version_start"""
"""What of a session tells who waited for whom; a third of the work of all columns."""

SPAN_COLUMNS: Final = """
    span_id, parent_id, session_id, process, kind, name, detail, start_ns, end_ns, status, reason,
    step, lane, tokens_out AS tokens, queue_ns, link, version_start AS version"""

MAYBE_CHARGED: Final = """
    SELECT span_id FROM facts WHERE consumed_step BETWEEN $first AND $last
    UNION ALL
    SELECT span_id FROM spans WHERE kind = 'session' AND step BETWEEN $first AND $last"""
"""The sessions that may count for the steps from `$first` to `$last`: few more than do."""

_EVENT_COLUMNS: Final = "name, time_ns, process, session_id, version"
PROCESS_COLUMNS: Final = """
    process, host, pid, role, rank, started_ns, last_seen_ns, status, heartbeat_ns, offset_ns,
    offset_error_ns, dropped"""
_VERDICT_FIELDS: Final = ("outcome", "reason", "version_end")
_MANY: Final = 20_000
"""Ids bound to one query."""
_SLACK_NS: Final = 600 * 1_000_000_000
"""How far outside of its session a span may start and still be found: a phase that is left behind
starts after the end, and one that another host recorded, by a clock that is off, before the
start."""


def session_rows(
    source: Source,
    where: str,
    columns: str = SESSION_COLUMNS,
    /,
    *,
    among: str | Among | None = None,
    **values: Value,
) -> list[SessionRow]:
    """Give the sessions that a condition of ours holds for, in order of their start.

    Args:
        source: The run.
        where: The condition.
        columns: Which of their fields to fill.
        among: A query of ours for the ids of sessions that come into question, or a condition on
            ids, which saves looking at the facts of all others.
        values: What both name.
    """
    view = "sessions" if among is None else f"({sessions_among(source.dialect, among)}) AS chosen"
    sql = f"SELECT {columns} FROM {view} WHERE {where} ORDER BY start_ns, session_id"
    return fetch(source, SessionRow, sql, **values)


def sessions_with(source: Source, ids: Sequence[int]) -> list[SessionRow]:
    """Give the sessions with these ids, in order of their start."""
    found: list[SessionRow] = []
    for some in in_batches(ids):
        values = bound_ids(some)
        found += session_rows(source, "TRUE", among=lambda column: one_of(source, column), **values)
    return sorted(found, key=lambda row: (row.start_ns, row.span_id))


def one_of(source: Source, column: str) -> str:
    """Give the condition that a column is one of the ids that `bound_ids` binds."""
    # The range says nothing new, but the engine skips what is out of it, which it does for no list.
    return f"{column} BETWEEN $lowest AND $highest AND {source.dialect.is_in(column, '$ids')}"


def bound_ids(ids: Sequence[int]) -> dict[str, Value]:
    """Give the values that `one_of` names."""
    return {"ids": list(ids), "lowest": min(ids), "highest": max(ids)}


def span_rows(source: Source, where: str, **values: Value) -> list[SpanRow]:
    """Give the spans that a condition of ours holds for, in order of their start."""
    sql = f"SELECT {SPAN_COLUMNS} FROM spans WHERE {where} ORDER BY start_ns, span_id"
    return fetch(source, SpanRow, sql, **values)


def event_rows(source: Source, where: str, **values: Value) -> list[EventRow]:
    """Give the events that a condition of ours holds for, in order of time."""
    sql = f"SELECT {_EVENT_COLUMNS} FROM events WHERE {where} ORDER BY time_ns, event_id"
    return fetch(source, EventRow, sql, **values)


def process_rows(source: Source) -> list[ProcessRow]:
    """Give every process."""
    sql = f"SELECT {PROCESS_COLUMNS} FROM processes ORDER BY started_ns, process"
    return shared(source, "processes", lambda: fetch(source, ProcessRow, sql))


def in_batches(ids: Sequence[int]) -> Iterable[list[int]]:
    """Cut a long list of ids into what one query takes."""
    return (list(ids[at : at + _MANY]) for at in range(0, len(ids), _MANY))


def add_tokens(source: Source, sessions: Sequence[SessionRow]) -> None:
    """Add up the tokens of their phases for sessions that say none themselves."""
    silent = {row.span_id: row for row in sessions if row.tokens_out is None}
    if not silent:
        return
    low, high = extent(source, list(silent.values()))
    for ids in in_batches(list(silent)):
        sql = f"""
            SELECT session_id, sum(tokens_in) AS tokens_in, sum(tokens_out) AS tokens_out
            FROM phases
            WHERE {one_of(source, "session_id")}
                AND (tokens_in IS NOT NULL OR tokens_out IS NOT NULL)
                AND recorded_start_ns BETWEEN $low AND $high
            GROUP BY session_id"""
        table = source.query(sql, **bound_ids(ids), low=low, high=high)
        for row in table.to_pylist():
            session = silent[row["session_id"]]
            if row["tokens_out"] is not None:
                session.tokens_out = int(row["tokens_out"])
            if session.tokens_in is None and row["tokens_in"] is not None:
                session.tokens_in = int(row["tokens_in"])


def extent(source: Source, sessions: Sequence[SessionRow]) -> tuple[int, int]:
    """Give between which `recorded_start_ns` the spans of sessions lie, to skip the rest."""
    low = min(row.start_ns for row in sessions)
    high = max(source.now_ns if row.end_ns is None else row.end_ns for row in sessions)
    slack_ns = _SLACK_NS + most_moved(source)
    return low - slack_ns, high + slack_ns


def charged_extent(source: Source, first: int, last: int) -> tuple[int, int]:
    """Give between which `recorded_start_ns` the spans of some steps' sessions lie."""
    sql = f"""
        SELECT min(recorded_start_ns) AS low, max(coalesce(recorded_end_ns, $now)) AS high
        FROM spans WHERE kind = 'session' AND span_id IN ({MAYBE_CHARGED})"""
    row = source.query(sql, first=first, last=last, now=source.now_ns).to_pylist()[0]
    slack_ns = _SLACK_NS + most_moved(source)
    return (row["low"] or 0) - slack_ns, (row["high"] or 0) + slack_ns


def charged_sessions(source: Source) -> str:
    """Give the query for sessions that come into question for the steps `$first` to `$last`."""
    if source.dialect.has_sessions:
        return "SELECT * FROM sessions"
    return sessions_among(source.dialect, MAYBE_CHARGED)


def most_moved(source: Source) -> int:
    """Give the most by which times of any process are moved."""
    return shared(source, "most moved", lambda: _ask_most_moved(source))


def _ask_most_moved(source: Source) -> int:
    found = source.query(f"SELECT max({MOST_MOVED}) AS moved_ns FROM processes")
    return found["moved_ns"][0].as_py() or 0


def session_attrs(source: Source, sessions: Sequence[SessionRow]) -> None:
    """Fill in the attributes of sessions, late facts over what was recorded first."""
    by_id = {row.span_id: row for row in sessions}
    decode = msgspec.json.decode
    for ids in in_batches(list(by_id)):
        chosen, values = one_of(source, "span_id"), bound_ids(ids)
        sql = f"SELECT span_id, attrs FROM spans WHERE kind = 'session' AND {chosen}"
        for row in source.query(sql, **values).to_pylist():
            by_id[row["span_id"]].attrs = _plain(decode(row["attrs"]))
        sql = f"""
            SELECT span_id, outcome, reason, version_end, facts FROM facts WHERE {chosen}
            ORDER BY time_ns, process, number"""
        for row in source.query(sql, **values).to_pylist():
            late = _plain(decode(row["facts"]))
            for field in _VERDICT_FIELDS:
                if row[field] is not None:  # a verdict, which the row itself tells
                    late.pop(field, None)
            by_id[row["span_id"]].attrs |= late


def _plain(attrs: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attrs.items() if not isinstance(value, (dict, list))}
