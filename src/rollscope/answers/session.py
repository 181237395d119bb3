"""One rollout: what it did, when, and what became of it."""

from typing import Any

import msgspec

from rollscope.analysis.roles import PUBLISHED_EVENT
from rollscope.analysis.rows import SessionRow, SpanRow
from rollscope.analysis.sessions import PhaseTimes, session_times
from rollscope.analysis.staleness import Versions
from rollscope.answers.rows import (
    SPAN_COLUMNS,
    add_tokens,
    event_rows,
    extent,
    session_attrs,
    sessions_with,
)
from rollscope.answers.sessionfinding import find_session, sessions_of_task
from rollscope.answers.source import Source

__all__ = [
    "EventDetail",
    "SessionAnswer",
    "SpanDetail",
    "StackDetail",
    "one_session",
    "published_versions",
]


class SpanDetail(msgspec.Struct, kw_only=True):
    """A span of the session, with its attributes."""

    span: SpanRow
    depth: int
    attrs: dict[str, Any]


class EventDetail(msgspec.Struct, kw_only=True):
    """Something that happened at one moment."""

    name: str
    time_ns: int
    attrs: dict[str, Any]


class StackDetail(msgspec.Struct, kw_only=True):
    """Where a span hung."""

    span_id: int
    time_ns: int
    task: str
    frames: list[str]


class SessionAnswer(msgspec.Struct, kw_only=True):
    """Everything about one session."""

    session: SessionRow
    now_ns: int
    total_ns: int
    """So far, if it is open."""
    phases: dict[str, PhaseTimes]
    other_ns: int
    """Time in which no phase was open; with the shares of the phases it makes the whole."""
    lag_start: int | None
    lag_end: int | None
    lag_consume: int | None
    spans: list[SpanDetail]
    """In order of their start, each below its parent."""
    events: list[EventDetail]
    stacks: list[StackDetail]
    siblings: list[SessionRow]
    """The other sessions of its task and step, and other attempts at it."""


def one_session(source: Source, given: str) -> SessionAnswer:
    """Tell everything about a session.

    Raises:
        CommandError: There is no such session, or the name fits several.
    """
    session_id = find_session(source, given)
    session = sessions_with(source, [session_id])[0]
    add_tokens(source, [session])
    session_attrs(source, [session])
    spans, attrs = _spans(source, session)
    now_ns = source.now_ns
    times = session_times(session, spans, now_ns)
    versions = published_versions(source)
    first = session.version_start
    return SessionAnswer(
        session=session,
        now_ns=now_ns,
        total_ns=times.total_ns,
        phases=times.phases,
        other_ns=times.other_ns,
        lag_start=_lag(versions, first, session.start_ns),
        lag_end=_lag(versions, first, session.end_ns),
        lag_consume=_lag(versions, first, session.consumed_ns),
        spans=_details(spans, attrs),
        events=_events(source, session_id),
        stacks=_stacks(source, session_id, spans),
        siblings=_siblings(source, session),
    )


def published_versions(source: Source) -> Versions:
    """Give the versions of the policy that were published, and when."""
    return Versions(event_rows(source, "name = $name", name=PUBLISHED_EVENT))


def _lag(versions: Versions, first: int | None, time_ns: int | None) -> int | None:
    if first is None or time_ns is None or not versions:
        return None
    return versions.lag(first, time_ns)


def _spans(source: Source, session: SessionRow) -> tuple[list[SpanRow], dict[int, dict[str, Any]]]:
    """Give the spans below a session in order of their start, and the attributes of each."""
    low, high = extent(source, [session])
    sql = f"""
        SELECT {SPAN_COLUMNS}, attrs FROM spans
        WHERE session_id = $id AND span_id <> $id AND recorded_start_ns BETWEEN $low AND $high
        ORDER BY start_ns, span_id"""
    rows = source.query(sql, id=session.span_id, low=low, high=high).to_pylist()
    spans = msgspec.convert(rows, list[SpanRow], strict=False)
    return spans, {row["span_id"]: msgspec.json.decode(row["attrs"]) for row in rows}


def _details(spans: list[SpanRow], attrs: dict[int, dict[str, Any]]) -> list[SpanDetail]:
    """Put spans below their parents, siblings in order of their start."""
    known = {span.span_id for span in spans}
    below: dict[int | None, list[SpanRow]] = {}
    for span in spans:
        parent = span.parent_id if span.parent_id in known else None
        below.setdefault(parent, []).append(span)
    details: list[SpanDetail] = []
    todo = [(span, 0) for span in reversed(below.pop(None, []))]
    while todo:
        span, depth = todo.pop()
        details.append(SpanDetail(span=span, depth=depth, attrs=attrs.get(span.span_id, {})))
        todo += [(child, depth + 1) for child in reversed(below.pop(span.span_id, []))]
    return details


def _events(source: Source, session_id: int) -> list[EventDetail]:
    sql = """
        SELECT name, time_ns, attrs FROM events WHERE session_id = $id
        ORDER BY time_ns, event_id"""
    return [
        EventDetail(
            name=row["name"], time_ns=row["time_ns"], attrs=msgspec.json.decode(row["attrs"])
        )
        for row in source.query(sql, id=session_id).to_pylist()
    ]


def _stacks(source: Source, session_id: int, spans: list[SpanRow]) -> list[StackDetail]:
    chosen = source.dialect.is_in("span_id", "$ids")
    sql = f"""
        SELECT span_id, time_ns, task, frames FROM stacks WHERE {chosen}
        ORDER BY time_ns, span_id, task"""
    ids = [session_id, *(span.span_id for span in spans)]
    return [
        StackDetail(
            span_id=row["span_id"],
            time_ns=row["time_ns"],
            task=row["task"],
            frames=msgspec.json.decode(row["frames"], type=list[str]),
        )
        for row in source.query(sql, ids=ids).to_pylist()
    ]


def _siblings(source: Source, session: SessionRow) -> list[SessionRow]:
    if session.task_key is None:
        return []
    rows = sessions_of_task(source, session.task_key)
    return [
        one
        for one in rows
        if one.span_id != session.span_id
        and one.group == session.group
        and one.charged_step == session.charged_step
    ]
