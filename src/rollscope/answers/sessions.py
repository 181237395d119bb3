"""Finding sessions: by steps, time and a filter, in any order."""

from typing import Final

import msgspec

from rollscope.analysis.filters import parse_filter
from rollscope.analysis.matching import matches
from rollscope.analysis.rows import SessionRow, SpanRow
from rollscope.analysis.sessions import session_times
from rollscope.analysis.staleness import last_lag
from rollscope.answers.filtering import Condition, to_condition
from rollscope.answers.rows import (
    SESSION_COLUMNS,
    add_tokens,
    in_batches,
    process_rows,
    session_attrs,
    span_rows,
)
from rollscope.answers.scope import StepScope
from rollscope.answers.session import published_versions
from rollscope.answers.source import Source, fetch
from rollscope.errors import CommandError
from rollscope.store.dialect import Value

__all__ = [
    "SORT_KEYS",
    "Ended",
    "SessionLine",
    "SessionList",
    "ended_condition",
    "list_sessions",
    "matching_sessions",
]

Ended = tuple[int | None, int | None]
"""From when, and before when, sessions ended; open ones end now."""


SORT_KEYS: Final[dict[str, str]] = {
    "start": "start_ns",
    "end": "coalesce(end_ns, $now_ns)",
    "ran": "coalesce(end_ns, $now_ns) - start_ns",
    "waited": "waited_ns",
    "reward": "reward",
    "tokens": "tokens_out",
}
"""What a list can be sorted by; a minus in front turns it round."""


class SessionLine(msgspec.Struct, kw_only=True):
    """One session of the list."""

    row: SessionRow
    ran_ns: int
    """So far, if it is open."""
    phases: dict[str, int]
    """Time by phase, overlaps counted once within a name."""
    other_ns: int
    """Time in which no phase was open."""
    lag: int | None
    """Versions behind the newest one when consumed, else at its end, else at its start."""


class SessionList(msgspec.Struct, kw_only=True):
    """Some sessions, and how many there are."""

    sessions: list[SessionLine]
    matched: int
    """How many the filter lets through."""
    of: int
    """How many there are in the scope."""


def list_sessions(
    source: Source,
    scope: StepScope,
    filter_text: str = "",
    sort: str = "-start",
    limit: int = 20,
    since_ns: int | None = None,
    until_ns: int | None = None,
    offset: int = 0,
    ended: Ended = (None, None),
) -> SessionList:
    """List the sessions of a scope that a filter lets through.

    Args:
        source: The run.
        scope: Which steps' sessions.
        filter_text: In the filter language.
        sort: One of `SORT_KEYS`, with a minus in front for the greatest first.
        limit: How many to give.
        since_ns: Only those that had not ended by then.
        until_ns: Only those that had started by then.
        offset: How many to leave out before them.
        ended: Only those that ended from then, and before then.

    Raises:
        FilterError: The filter cannot be read.
        CommandError: There is no such sort key.
    """
    key = sort.removeprefix("-")
    if key not in SORT_KEYS:
        known = ", ".join(SORT_KEYS)
        raise CommandError(f"cannot sort by {key!r}; one of {known}, with - for the greatest", 2)
    where, values = _scope_condition(scope, since_ns, until_ns)
    part, more = ended_condition(ended, source.now_ns)
    where, values = f"{where} AND {part}", values | more
    condition = to_condition(parse_filter(filter_text), source.dialect, source.now_ns)
    of = source.query(f"SELECT count(*) AS n FROM sessions WHERE {where}", **values)
    direction = "DESC" if sort.startswith("-") else "ASC"
    order = f"{SORT_KEYS[key]} {direction} NULLS LAST, session_id {direction}"
    if condition.rest.terms or key == "tokens":
        found = matching_sessions(source, where, values, condition)
        _sort(found, key, is_descending=sort.startswith("-"), now_ns=source.now_ns)
        matched, chosen = len(found), found[offset : offset + limit]
    else:
        both = f"{where} AND {condition.sql}"
        values |= condition.values
        counted = source.query(f"SELECT count(*) AS n FROM sessions WHERE {both}", **values)
        if "$now_ns" in order:
            values["now_ns"] = source.now_ns
        sql = f"""
            SELECT {SESSION_COLUMNS} FROM sessions WHERE {both}
            ORDER BY {order} LIMIT {limit:d} OFFSET {offset:d}"""
        matched, chosen = counted["n"][0].as_py(), fetch(source, SessionRow, sql, **values)
        add_tokens(source, chosen)
    return SessionList(sessions=_lines(source, chosen), matched=matched, of=of["n"][0].as_py())


def _scope_condition(
    scope: StepScope, since_ns: int | None, until_ns: int | None
) -> tuple[str, dict[str, Value]]:
    parts = ["TRUE"]
    values: dict[str, Value] = {}
    if scope.first is not None and scope.last is not None:
        parts.append("charged_step BETWEEN $first AND $last")
        values |= {"first": scope.first, "last": scope.last}
    if since_ns is not None:
        parts.append("(end_ns IS NULL OR end_ns >= $since_ns)")
        values["since_ns"] = since_ns
    if until_ns is not None:
        parts.append("start_ns < $until_ns")
        values["until_ns"] = until_ns
    return " AND ".join(parts), values


def ended_condition(ended: Ended, now_ns: int) -> tuple[str, dict[str, Value]]:
    """Give the condition that sessions ended in a stretch of time, and the values it names."""
    from_ns, to_ns = ended
    if from_ns is None and to_ns is None:
        return "TRUE", {}
    low = 0 if from_ns is None else from_ns
    high = now_ns + 1 if to_ns is None else to_ns
    end = "coalesce(end_ns, $open_until)"
    return (
        f"{end} >= $ended_from AND {end} < $ended_to",
        {"open_until": now_ns, "ended_from": low, "ended_to": high},
    )


def matching_sessions(
    source: Source, where: str, values: dict[str, Value], condition: Condition
) -> list[SessionRow]:
    """Give every session that a condition of ours and a filter hold for, whole."""
    sql = f"""
        SELECT {SESSION_COLUMNS} FROM sessions WHERE {where} AND {condition.sql}
        ORDER BY start_ns, session_id"""
    found = fetch(source, SessionRow, sql, **values, **condition.values)
    add_tokens(source, found)
    if not condition.rest.terms:
        return found
    session_attrs(source, found)
    processes = {row.process: row for row in process_rows(source)}
    spans = _spans_of(source, found)
    return [
        one
        for one in found
        if matches(
            condition.rest,
            one,
            spans.get(one.span_id, []),
            process=processes.get(one.process),
            now_ns=source.now_ns,
        )
    ]


def _spans_of(source: Source, sessions: list[SessionRow]) -> dict[int, list[SpanRow]]:
    """Give the spans of sessions, the sessions' own not among them."""
    found: dict[int, list[SpanRow]] = {}
    chosen = source.dialect.is_in("session_id", "$ids")
    for ids in in_batches([one.span_id for one in sessions]):
        for span in span_rows(source, f"{chosen} AND kind <> 'session'", ids=ids):
            if span.session_id is not None:
                found.setdefault(span.session_id, []).append(span)
    return found


def _sort(rows: list[SessionRow], key: str, *, is_descending: bool, now_ns: int) -> None:
    def value(row: SessionRow) -> float | None:
        end_ns = now_ns if row.end_ns is None else row.end_ns
        by_key: dict[str, float | None] = {
            "start": row.start_ns,
            "end": end_ns,
            "ran": end_ns - row.start_ns,
            "waited": row.waited_ns,
            "reward": row.reward,
            "tokens": row.tokens_out,
        }
        return by_key[key]

    rows.sort(key=lambda row: (value(row) or 0, row.span_id), reverse=is_descending)
    rows.sort(key=lambda row: value(row) is None)


def _lines(source: Source, sessions: list[SessionRow]) -> list[SessionLine]:
    spans = _spans_of(source, sessions)
    for own in spans.values():
        own.sort(key=lambda span: span.start_ns)  # a session tells its phases as they began
    versions = published_versions(source)
    lines = []
    for session in sessions:
        times = session_times(session, spans.get(session.span_id, []), source.now_ns)
        lines.append(
            SessionLine(
                row=msgspec.structs.replace(session, attrs={}),  # some filters look at them
                ran_ns=times.total_ns,
                phases={name: phase.union_ns for name, phase in times.phases.items()},
                other_ns=times.other_ns,
                lag=last_lag(session, versions),
            )
        )
    return lines
