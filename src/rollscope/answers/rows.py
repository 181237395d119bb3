"""Rows for analysis, fetched from the views of a run."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from rollscope.analysis.rows import EventRow, ProcessRow, SessionRow, SpanRow
from rollscope.answers.source import Source, fetch
from rollscope.store.dialect import Value

__all__ = [
    "SESSION_COLUMNS",
    "SPAN_COLUMNS",
    "add_tokens",
    "event_rows",
    "in_batches",
    "process_rows",
    "session_attrs",
    "session_rows",
    "span_rows",
]

SESSION_COLUMNS: Final = """
    session_id AS span_id, process, coalesce(host, '') AS host, coalesce(pool, '') AS pool,
    task_key, family, group_key AS "group", sample, attempt, step, consumed_step, consumed_ns,
    start_ns, end_ns, status, outcome, reason, version_start, version_end, waited_ns, deadline_ns,
    reward, tokens_in, tokens_out, turns"""

SPAN_COLUMNS: Final = """
    span_id, parent_id, session_id, process, kind, name, detail, start_ns, end_ns, status, reason,
    step, lane, tokens_out AS tokens, queue_ns, link, version_start AS version"""

_EVENT_COLUMNS: Final = "name, time_ns, process, session_id, version"
_PROCESS_COLUMNS: Final = """
    process, host, pid, role, rank, started_ns, last_seen_ns, status, heartbeat_ns, offset_ns,
    offset_error_ns, dropped"""
_MANY: Final = 20_000
"""Ids bound to one query."""


def session_rows(source: Source, where: str, **values: Value) -> list[SessionRow]:
    """Give the sessions that a condition of ours holds for, in order of their start."""
    sql = f"SELECT {SESSION_COLUMNS} FROM sessions WHERE {where} ORDER BY start_ns, session_id"
    return fetch(source, SessionRow, sql, **values)


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
    sql = f"SELECT {_PROCESS_COLUMNS} FROM processes ORDER BY started_ns, process"
    return fetch(source, ProcessRow, sql)


def in_batches(ids: Sequence[int]) -> Iterable[list[int]]:
    """Cut a long list of ids into what one query takes."""
    return (list(ids[at : at + _MANY]) for at in range(0, len(ids), _MANY))


def add_tokens(source: Source, sessions: Sequence[SessionRow]) -> None:
    """Add up the tokens of their phases for sessions that say none themselves."""
    silent = {row.span_id: row for row in sessions if row.tokens_out is None}
    if not silent:
        return
    low, high = _extent(source, list(silent.values()))
    for ids in in_batches(list(silent)):
        sql = f"""
            SELECT session_id, sum(tokens_in) AS tokens_in, sum(tokens_out) AS tokens_out
            FROM phases
            WHERE {source.dialect.is_in("session_id", "$ids")} AND tokens_out IS NOT NULL
                AND start_ns >= $low AND start_ns < $high
            GROUP BY session_id"""
        table = source.query(sql, ids=ids, low=low, high=high)
        for row in table.to_pylist():
            session = silent[row["session_id"]]
            session.tokens_out = int(row["tokens_out"])
            if session.tokens_in is None and row["tokens_in"] is not None:
                session.tokens_in = int(row["tokens_in"])


def _extent(source: Source, sessions: Sequence[SessionRow]) -> tuple[int, int]:
    """Give between which times the spans of sessions start."""
    low = min(row.start_ns for row in sessions)
    high = max(source.now_ns if row.end_ns is None else row.end_ns for row in sessions)
    return low, high + 1


def session_attrs(source: Source, sessions: Sequence[SessionRow]) -> None:
    """Fill in the attributes of sessions, late facts over what was recorded first."""
    by_id = {row.span_id: row for row in sessions}
    decode = msgspec.json.decode
    for ids in in_batches(list(by_id)):
        chosen = source.dialect.is_in("session_id", "$ids")
        sql = f"SELECT session_id, attrs FROM sessions WHERE {chosen}"
        for row in source.query(sql, ids=ids).to_pylist():
            by_id[row["session_id"]].attrs = _plain(decode(row["attrs"]))
        chosen = source.dialect.is_in("span_id", "$ids")
        sql = f"""
            SELECT span_id, facts FROM facts WHERE {chosen}
            ORDER BY time_ns, process, number"""
        for row in source.query(sql, ids=ids).to_pylist():
            by_id[row["span_id"]].attrs |= _plain(decode(row["facts"]))


def _plain(attrs: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attrs.items() if not isinstance(value, (dict, list))}
