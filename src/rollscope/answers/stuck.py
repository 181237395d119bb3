"""Which rollouts are stuck right now, in which phase, since when, where, at which line.

Rows are read on the clocks of their processes and their times moved here: what is asked is little,
and planning a query over the views would take longer than answering it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from rollscope.analysis.roles import EMPTY_QUEUE_STATES, role_of
from rollscope.analysis.rows import ProcessRow, SessionRow, SpanRow
from rollscope.analysis.stuck import References, Stack, StuckRow, judge_sessions, judge_spans
from rollscope.answers.moves import Moves
from rollscope.answers.rows import PROCESS_COLUMNS, SPAN_COLUMNS, bound_ids, one_of
from rollscope.answers.source import Source
from rollscope.errors import StoreError

__all__ = ["Stuck", "stuck"]

_RECENT_NS: Final = 30 * 60 * 1_000_000_000
_RECENT_STEPS: Final = 5
_UNJUDGED: Final = frozenset({"task", "step"})
"""Kinds that are open for as long as what they hold, so that only that is judged."""


class Stuck(msgspec.Struct, kw_only=True):
    """Open sessions, the most suspicious first, and open spans outside of sessions."""

    now_ns: int
    open_sessions: int
    alarms: int
    """How many of both need a look."""
    rows: list[StuckRow]
    outside: list[StuckRow]


def stuck(source: Source) -> Stuck:
    """Judge everything that is open."""
    try:
        return _judge(source)
    except StoreError:
        # A file was damaged or gone. The source goes on without it, but our queries named it.
        return _judge(source)


def _judge(source: Source) -> Stuck:
    processes, titles, moves = _processes(source)
    spans, sessions = _open(source, processes, titles, moves)
    references = _references(source, spans, moves)
    stacks = _stacks(source, spans, moves)
    progress_ns, errors = _signs(source, sessions, moves)
    rows = judge_sessions(
        [span for span in spans if span.session_id is not None],
        sessions,
        references,
        now_ns=source.now_ns,
        processes=processes,
        progress_ns=progress_ns,
        stacks=stacks,
    )
    errors = _earlier_errors(source, spans, sessions, moves) | errors
    for row in rows:
        row.last_error = None if row.session_id is None else errors.get(row.session_id)
    outside = judge_spans(
        [span for span in spans if span.session_id is None and _is_judged(span)],
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


def _processes(source: Source) -> tuple[list[ProcessRow], dict[int, str], Moves]:
    """Give every process, how the run calls it, and how its times are moved."""
    sql = f"""
        SELECT {PROCESS_COLUMNS}, title, moved_ns, correction FROM processes
        ORDER BY started_ns, process"""
    rows = source.query(sql).to_pylist()
    processes = msgspec.convert(rows, list[ProcessRow], strict=False)
    return processes, {row["process"]: row["title"] for row in rows}, Moves(rows)


def _open(
    source: Source, processes: list[ProcessRow], titles: Mapping[int, str], moves: Moves
) -> tuple[list[SpanRow], list[SessionRow]]:
    """Give the spans that are open, and once more those of them that are sessions."""
    # Straight from the spans: a session that is open has no verdict to look up yet.
    sql = f"""
        SELECT {SPAN_COLUMNS}, replica, task_key, family, group_key AS "group", sample,
            coalesce(attempt, 0) AS attempt, version_start, waited_ns, deadline_ns
        FROM {source.dialect.open_spans} WHERE status = 'open'"""
    rows = source.query(sql).to_pylist()
    for row in rows:
        row["start_ns"] += moves.of(row["process"], row["start_ns"])
        if row["deadline_ns"] is not None:
            row["deadline_ns"] += row["start_ns"]
    rows.sort(key=lambda row: (row["start_ns"], row["span_id"]))
    sessions = [row for row in rows if row["kind"] == "session"]
    hosts = {process.process: process.host for process in processes}
    for row in sessions:
        row["host"] = hosts.get(row["process"], "")
        replica = row.pop("replica")
        row["pool"] = titles.get(row["process"], "") if replica is None else replica
    return (
        msgspec.convert(rows, list[SpanRow], strict=False),
        msgspec.convert(sessions, list[SessionRow], strict=False),
    )


def _is_judged(span: SpanRow) -> bool:
    """Say whether a span outside of sessions can hang; whoever says to be idle only has no work."""
    if span.kind == "state":
        return role_of(span.name) != "waiting" and span.name not in EMPTY_QUEUE_STATES
    return span.kind not in _UNJUDGED


def _references(source: Source, spans: list[SpanRow], moves: Moves) -> References:
    """Measure finished spans of the names that are judged."""
    enclosing = {(span.session_id, span.parent_id) for span in spans}
    names = {
        span.name
        for span in spans
        if (span.session_id, span.span_id) not in enclosing
        and (span.session_id is not None or _is_judged(span))
    }
    return source.lengths(names, _since(source, moves)) if names else {}


def _since(source: Source, moves: Moves) -> int:
    """Give since when spans count: the last five steps, or half an hour if that is longer."""
    recent_ns = source.now_ns - _RECENT_NS
    starts = _step_starts(source, moves, recent_ns)
    if sum(start >= recent_ns for start in starts) < _RECENT_STEPS:
        starts = _step_starts(source, moves, 0)
    return min([recent_ns, *sorted(starts)[-_RECENT_STEPS:]])


def _step_starts(source: Source, moves: Moves, since_ns: int) -> list[int]:
    """Give when steps have started; those from before some time may be left out."""
    least_ns = moves.recorded(since_ns)
    rows = source.rows_since("spans", ("kind", "process", "start_ns"), least_ns)
    sql = f"""
        SELECT process, start_ns FROM {rows} AS r WHERE kind = 'step' AND start_ns >= $since"""
    found = source.query(sql, since=least_ns).to_pylist()
    return [row["start_ns"] + moves.of(row["process"], row["start_ns"]) for row in found]


def _signs(
    source: Source, sessions: list[SessionRow], moves: Moves
) -> tuple[dict[int, int], dict[int, str]]:
    """Give when each session last showed a sign of life, and the latest error inside it.

    A sign is a child's start or end, or an event.
    """
    if not sessions:
        return {}, {}
    least_ns = moves.recorded(min(session.start_ns for session in sessions))
    columns = ("session_id", "process", "start_ns", "end_ns", "status", "reason")
    spans = source.rows_since("spans", columns, least_ns)
    events = source.rows_since("events", ("session_id", "process", "time_ns"), least_ns)
    chosen = one_of(source, "session_id")
    error = "CASE WHEN status = 'error' THEN reason END"
    failed = f"CASE WHEN {error} IS NOT NULL THEN coalesce(end_ns, start_ns) END"
    sql = f"""
        SELECT session_id, process, max(coalesce(end_ns, start_ns)) AS at_ns,
            max({failed}) AS failed_ns,
            {source.dialect.arg_max(f"({error})", "coalesce(end_ns, start_ns)")} AS error
        FROM {spans} AS s WHERE {chosen} AND start_ns >= $since GROUP BY session_id, process
        UNION ALL
        SELECT session_id, process, max(time_ns) AS at_ns, NULL AS failed_ns, NULL AS error
        FROM {events} AS e WHERE {chosen} AND time_ns >= $since GROUP BY session_id, process"""
    values = bound_ids([session.span_id for session in sessions])
    rows = source.query(sql, since=least_ns, **values).to_pylist()
    progress_ns: dict[int, int] = {}
    for row in rows:
        at_ns = row["at_ns"] + moves.of(row["process"], row["at_ns"])
        progress_ns[row["session_id"]] = max(progress_ns.get(row["session_id"], at_ns), at_ns)
    failures = [row for row in rows if row["error"]]
    latest = _latest(failures, "session_id", at="failed_ns", moves=moves)
    return progress_ns, {key: row["error"] for key, row in latest.items()}


def _latest(
    rows: Iterable[Mapping[str, Any]], *keys: str, at: str, moves: Moves
) -> dict[Any, Mapping[str, Any]]:
    """Give the last row of each key, of those that processes have for it."""

    def place(row: Mapping[str, Any]) -> tuple[int, int]:
        return row[at] + moves.of(row["process"], row[at]), row["process"]

    ordered = sorted(rows, key=place)
    if len(keys) == 1:
        return {row[keys[0]]: row for row in ordered}
    return {tuple(row[key] for key in keys): row for row in ordered}


def _earlier_errors(
    source: Source, spans: list[SpanRow], sessions: list[SessionRow], moves: Moves
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
    least_ns = moves.recorded(min(task.start_ns for task in tasks))
    columns = ("kind", "status", "parent_id", "sample", "process", "start_ns", "end_ns", "reason")
    sql = f"""
        SELECT parent_id, sample, process, max(end_ns) AS ended_ns,
            {source.dialect.arg_max("reason", "end_ns")} AS error
        FROM {source.rows_since("spans", columns, least_ns)} AS s
        WHERE kind = 'session' AND status = 'error' AND reason IS NOT NULL
            AND {source.dialect.is_in("parent_id", "$ids")} AND start_ns >= $since
        GROUP BY parent_id, sample, process"""
    rows = source.query(sql, ids=[task.span_id for task in tasks], since=least_ns).to_pylist()
    latest = _latest(rows, "parent_id", "sample", at="ended_ns", moves=moves)
    return {
        tried[key]: row["error"] for key, row in latest.items() if key in tried and row["error"]
    }


def _stacks(source: Source, spans: list[SpanRow], moves: Moves) -> dict[int, Stack]:
    if not spans:
        return {}
    least_ns = moves.recorded(min(span.start_ns for span in spans))
    rows = source.rows_since("stacks", ("span_id", "process", "time_ns", "frames"), least_ns)
    sql = f"""
        SELECT span_id, process, max(time_ns) AS at_ns,
            {source.dialect.arg_max("frames", "time_ns")} AS frames
        FROM {rows} AS s WHERE {source.dialect.is_in("span_id", "$ids")}
        GROUP BY span_id, process"""
    found = source.query(sql, ids=[span.span_id for span in spans]).to_pylist()
    return {
        span_id: (
            row["at_ns"] + moves.of(row["process"], row["at_ns"]),
            msgspec.json.decode(row["frames"], type=list[str]),
        )
        for span_id, row in _latest(found, "span_id", at="at_ns", moves=moves).items()
    }
