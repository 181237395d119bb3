"""Which rollouts are stuck right now, in which phase, since when, where, at which line."""

from collections.abc import Mapping
from typing import Final

import msgspec

from rollscope.analysis.rows import ProcessRow, SessionRow, SpanRow
from rollscope.analysis.stuck import Reference, Stack, StuckRow, judge_sessions, judge_spans
from rollscope.answers.rows import PROCESS_COLUMNS, SPAN_COLUMNS, bound_ids, one_of
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
    processes, titles = _processes(source)
    spans, sessions = _open(source, processes, titles)
    moved_ns = max((abs(process.offset_ns) for process in processes), default=0)
    references = _references(source, spans, moved_ns) if spans else {}
    stacks = _stacks(source, spans)
    progress_ns, errors = _signs(source, sessions, moved_ns)
    rows = judge_sessions(
        [span for span in spans if span.session_id is not None],
        sessions,
        references,
        now_ns=source.now_ns,
        processes=processes,
        progress_ns=progress_ns,
        stacks=stacks,
    )
    errors = _earlier_errors(source, spans, sessions, moved_ns) | errors
    for row in rows:
        row.last_error = None if row.session_id is None else errors.get(row.session_id)
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


def _processes(source: Source) -> tuple[list[ProcessRow], dict[int, str]]:
    """Give every process, and how the run calls it."""
    sql = f"SELECT {PROCESS_COLUMNS}, title FROM processes ORDER BY started_ns, process"
    rows = source.query(sql).to_pylist()
    processes = msgspec.convert(rows, list[ProcessRow], strict=False)
    return processes, {row["process"]: row["title"] for row in rows}


def _open(
    source: Source, processes: list[ProcessRow], titles: Mapping[int, str]
) -> tuple[list[SpanRow], list[SessionRow]]:
    """Give the spans that are open, and once more those of them that are sessions."""
    # Straight from the spans: a session that is open has no verdict to look up yet.
    sql = f"""
        SELECT {SPAN_COLUMNS}, replica, task_key, family, group_key AS "group", sample,
            coalesce(attempt, 0) AS attempt, version_start, waited_ns,
            start_ns + deadline_ns AS deadline_ns
        FROM spans WHERE status = 'open'
        ORDER BY start_ns, span_id"""
    rows = source.query(sql).to_pylist()
    sessions = [row for row in rows if row["kind"] == "session"]
    # Joined here: a join in the query takes as long as all of the rest.
    hosts = {process.process: process.host for process in processes}
    for row in sessions:
        row["host"] = hosts.get(row["process"], "")
        replica = row.pop("replica")
        row["pool"] = titles.get(row["process"], "") if replica is None else replica
    return (
        msgspec.convert(rows, list[SpanRow], strict=False),
        msgspec.convert(sessions, list[SessionRow], strict=False),
    )


def _references(
    source: Source, spans: list[SpanRow], moved_ns: int
) -> dict[tuple[str, str | None], Reference]:
    """Measure finished spans of the names that are open, by detail and without."""
    names = sorted({span.name for span in spans})
    since_ns = _since(source, moved_ns)
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
            WHERE {source.dialect.is_in("name", "$names")} AND recorded_end_ns IS NOT NULL
                AND status <> 'lost' AND start_ns >= $since
                AND recorded_start_ns >= $files_since
            GROUP BY {columns}"""
        times = {"since": since_ns, "files_since": since_ns - moved_ns}
        for row in fetch(source, _Finished, sql, names=names, **times):
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


def _since(source: Source, moved_ns: int) -> int:
    """Give since when spans count: the last five steps, or half an hour if that is longer."""
    recent_ns = source.now_ns - _RECENT_NS
    sql = """
        SELECT count(*) AS n FROM steps WHERE start_ns >= $recent AND recorded_start_ns >= $files"""
    recent = source.query(sql, recent=recent_ns, files=recent_ns - moved_ns)
    if recent["n"][0].as_py() >= _RECENT_STEPS:  # short ones: no need to look at all of the run
        return recent_ns
    sql = f"SELECT start_ns FROM steps ORDER BY start_ns DESC LIMIT {_RECENT_STEPS}"
    starts = source.query(sql)["start_ns"].to_pylist()
    return int(min([recent_ns, *starts]))


def _signs(
    source: Source, sessions: list[SessionRow], moved_ns: int
) -> tuple[dict[int, int], dict[int, str]]:
    """Give when each session last showed a sign of life, and the latest error inside it.

    A sign is a child's start or end, or an event.
    """
    if not sessions:
        return {}, {}
    since_ns = min(session.start_ns for session in sessions)
    values = bound_ids([session.span_id for session in sessions])
    values |= {"since": since_ns, "files_since": since_ns - moved_ns}
    chosen = one_of(source, "session_id")
    sql = f"""
        SELECT session_id, max(at_ns) AS at_ns, {source.dialect.arg_max("error", "at_ns")} AS error
        FROM (
            SELECT session_id, coalesce(end_ns, start_ns) AS at_ns,
                CASE WHEN status = 'error' THEN reason END AS error FROM spans
            WHERE {chosen} AND start_ns >= $since AND recorded_start_ns >= $files_since
            UNION ALL
            SELECT session_id, time_ns AS at_ns, NULL AS error FROM events
            WHERE {chosen} AND time_ns >= $since
        ) AS signs GROUP BY session_id"""
    rows = source.query(sql, **values).to_pylist()
    progress_ns = {row["session_id"]: row["at_ns"] for row in rows}
    return progress_ns, {row["session_id"]: row["error"] for row in rows if row["error"]}


def _earlier_errors(
    source: Source, spans: list[SpanRow], sessions: list[SessionRow], moved_ns: int
) -> dict[int, str]:
    """Say what ended the previous attempt of each session that is tried again."""
    by_id = {span.span_id: span for span in spans}
    tried = {
        (by_id[session.span_id].parent_id, session.sample): session.span_id
        for session in sessions
        if session.attempt > 0
    }
    # A task is open for as long as its sessions are, so it tells since when to look.
    tasks = [by_id[parent] for parent, _ in tried if parent in by_id]
    if not tasks:
        return {}
    since_ns = min(task.start_ns for task in tasks)
    chosen = source.dialect.is_in("parent_id", "$ids")
    sql = f"""
        SELECT parent_id, sample, {source.dialect.arg_max("reason", "end_ns", "process")} AS error
        FROM spans
        WHERE kind = 'session' AND status = 'error' AND {chosen}
            AND start_ns >= $since AND recorded_start_ns >= $files_since
        GROUP BY parent_id, sample"""
    values = {"since": since_ns, "files_since": since_ns - moved_ns}
    rows = source.query(sql, ids=[task.span_id for task in tasks], **values).to_pylist()
    return {
        tried[row["parent_id"], row["sample"]]: row["error"]
        for row in rows
        if row["error"] and (row["parent_id"], row["sample"]) in tried
    }


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
