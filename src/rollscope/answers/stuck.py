"""Which rollouts are stuck right now, in which phase, since when, where, at which line."""

from collections.abc import Mapping
from typing import Final

import msgspec

from rollscope.analysis.rows import SessionRow, SpanRow
from rollscope.analysis.stuck import Reference, Stack, StuckRow, judge_sessions, judge_spans
from rollscope.answers.rows import most_moved, process_rows, span_rows
from rollscope.answers.source import Source, fetch

__all__ = ["Stuck", "stuck"]

_RECENT_NS: Final = 30 * 60 * 1_000_000_000
_RECENT_STEPS: Final = 5
_ENOUGH: Final = 100
"""Finished spans of a detail that make looking at all others of the name unnecessary."""


class Stuck(msgspec.Struct, kw_only=True):
    """Open sessions, the most suspicious first, and open spans outside of sessions."""

    now_ns: int
    open_sessions: int
    alarms: int
    """How many of both need a look."""
    rows: list[StuckRow]
    outside: list[StuckRow]


class _Finished(msgspec.Struct):
    name: str
    detail: str | None
    count: int
    p99_ns: int
    max_ns: int


def stuck(source: Source) -> Stuck:
    """Judge everything that is open."""
    spans = span_rows(source, "status = 'open'")
    sessions = _open_sessions(source)
    references = _references(source, spans) if spans else {}
    processes = process_rows(source)
    stacks = _stacks(source, spans)
    rows = judge_sessions(
        [span for span in spans if span.session_id is not None],
        sessions,
        references,
        now_ns=source.now_ns,
        processes=processes,
        progress_ns=_progress(source, sessions),
        stacks=stacks,
    )
    outside = judge_spans(
        [span for span in spans if span.session_id is None and span.kind not in ("task", "step")],
        references,
        now_ns=source.now_ns,
        processes=processes,
        stacks=stacks,
    )
    alarms = sum(row.is_alarm for row in [*rows, *outside])
    return Stuck(
        now_ns=source.now_ns,
        open_sessions=len(sessions),
        alarms=alarms,
        rows=rows,
        outside=outside,
    )


def _open_sessions(source: Source) -> list[SessionRow]:
    # Straight from the spans: a session that is open has no verdict to look up yet.
    sql = """
        SELECT s.span_id AS span_id, s.process AS process, coalesce(w.host, '') AS host,
            coalesce(s.replica, w.title, '') AS pool, s.task_key AS task_key, s.family AS family,
            s.group_key AS "group", s.sample AS sample, coalesce(s.attempt, 0) AS attempt,
            s.step AS step, s.start_ns AS start_ns, s.status AS status,
            s.version_start AS version_start, s.waited_ns AS waited_ns,
            s.start_ns + s.deadline_ns AS deadline_ns
        FROM spans AS s LEFT JOIN processes AS w ON s.process = w.process
        WHERE s.kind = 'session' AND s.status = 'open'
        ORDER BY start_ns, span_id"""
    return fetch(source, SessionRow, sql)


def _references(source: Source, spans: list[SpanRow]) -> dict[tuple[str, str | None], Reference]:
    """Measure finished spans of the names that are open, by detail and without."""
    names = sorted({span.name for span in spans})
    since_ns = _since(source)
    ranked = source.dialect.rank("duration_ns", 99)
    found: dict[tuple[str, str | None], Reference] = {}
    for columns in ("name, detail", "name"):
        detail = "detail" if "detail" in columns else "NULL"
        if columns == "name":
            names = _too_few(spans, found)
        if not names:
            break
        sql = f"""
            SELECT name, {detail} AS detail, count(*) AS count, {ranked} AS p99_ns,
                max(duration_ns) AS max_ns
            FROM spans
            WHERE {source.dialect.is_in("name", "$names")} AND end_ns IS NOT NULL
                AND status <> 'lost' AND start_ns >= $since
                AND recorded_start_ns >= $files_since
            GROUP BY {columns}"""
        files_since_ns = since_ns - most_moved(source)
        for row in fetch(
            source, _Finished, sql, names=names, since=since_ns, files_since=files_since_ns
        ):
            found[row.name, row.detail] = Reference(row.count, row.p99_ns, row.max_ns)
    return found


def _too_few(spans: list[SpanRow], found: Mapping[tuple[str, str | None], Reference]) -> list[str]:
    """Give the names that have to be measured whatever the detail, which takes another look."""
    split = {name for name, detail in found if detail is not None}
    wanted = set()
    for span in spans:
        known = found.get((span.name, span.detail))
        if span.name in split and (span.detail is None or known is None or known.count < _ENOUGH):
            wanted.add(span.name)
    return sorted(wanted)


def _since(source: Source) -> int:
    """Give since when spans count: the last five steps, or half an hour if that is longer."""
    sql = f"SELECT start_ns FROM steps ORDER BY start_ns DESC LIMIT {_RECENT_STEPS}"
    starts = source.query(sql)["start_ns"].to_pylist()
    return int(min([source.now_ns - _RECENT_NS, *starts]))


def _progress(source: Source, sessions: list[SessionRow]) -> dict[int, int]:
    """Give when each session last showed a sign of life: a child's start or end, or an event."""
    if not sessions:
        return {}
    values = {
        "ids": [session.span_id for session in sessions],
        "since": min(session.start_ns for session in sessions),
        "files_since": min(session.start_ns for session in sessions) - most_moved(source),
    }
    chosen = source.dialect.is_in("session_id", "$ids")
    sql = f"""
        SELECT session_id, max(at_ns) AS at_ns FROM (
            SELECT session_id, coalesce(end_ns, start_ns) AS at_ns FROM spans
            WHERE {chosen} AND start_ns >= $since AND recorded_start_ns >= $files_since
            UNION ALL
            SELECT session_id, time_ns AS at_ns FROM events WHERE {chosen} AND time_ns >= $since
        ) AS signs GROUP BY session_id"""
    rows = source.query(sql, **values).to_pylist()  # type: ignore[arg-type]
    return {row["session_id"]: row["at_ns"] for row in rows}


def _stacks(source: Source, spans: list[SpanRow]) -> dict[int, Stack]:
    if not spans:
        return {}
    latest = source.dialect.arg_max("frames", "time_ns", "process")
    chosen = source.dialect.is_in("span_id", "$ids")
    sql = f"""
        SELECT span_id, max(time_ns) AS time_ns, {latest} AS frames FROM stacks
        WHERE {chosen} GROUP BY span_id"""
    rows = source.query(sql, ids=[span.span_id for span in spans]).to_pylist()
    return {
        row["span_id"]: (row["time_ns"], msgspec.json.decode(row["frames"], type=list[str]))
        for row in rows
    }
