"""What the page of one session shows beside its spans: turns, attempts, versions, engine times."""

from collections.abc import Iterator

import msgspec

from rollscope.analysis.awaits import waiting_line
from rollscope.analysis.rows import SessionRow
from rollscope.analysis.turns import (
    EngineTime,
    Turn,
    VersionSegment,
    engine_times,
    find_turns,
    version_segments,
)
from rollscope.answers.rows import bound_ids, one_of, span_rows
from rollscope.answers.session import SessionAnswer, one_session
from rollscope.answers.source import Source

__all__ = ["Attempt", "AttemptError", "AwaitLine", "SessionTurns", "session_turns", "turns_of"]


class AttemptError(msgspec.Struct, kw_only=True):
    """A span that failed during an attempt."""

    span_id: int
    name: str
    detail: str | None
    reason: str | None
    time_ns: int
    """When it ended."""


class Attempt(msgspec.Struct, kw_only=True):
    """One try at the same sample."""

    session_id: int
    attempt: int
    start_ns: int
    end_ns: int | None
    status: str
    outcome: str | None
    reason: str | None
    host: str
    is_this: bool
    """Whether it is the session that was asked about."""
    errors: list[AttemptError]
    """The first to fail first; at most twenty."""


class AwaitLine(msgspec.Struct, kw_only=True):
    """Where an open session was last seen waiting."""

    span_id: int
    time_ns: int
    """When the picture was taken."""
    frame: str
    """Its innermost line outside of the standard library."""
    others_on_line: int
    """Other open sessions whose last picture ends in the same line."""
    example_session: int | None
    """One of them."""


class SessionTurns(msgspec.Struct, kw_only=True):
    """The turns of a session, and what belongs to its page."""

    session_id: int
    turns: list[Turn]
    attempts: list[Attempt]
    """All tries at this sample, this one among them, in their order."""
    versions: list[VersionSegment]
    engine: list[EngineTime]
    awaits: AwaitLine | None
    """Of a session that is open and of which a picture was taken."""


_MOST_ERRORS = 20


def session_turns(source: Source, given: str) -> SessionTurns:
    """Divide a session into turns.

    Raises:
        CommandError: There is no such session, or the name fits several.
    """
    return turns_of(source, one_session(source, given))


def turns_of(source: Source, answer: SessionAnswer) -> SessionTurns:
    """Divide a session into turns of which everything else is told already."""
    session = answer.session
    spans = [detail.span for detail in answer.spans]
    attrs = {detail.span.span_id: detail.attrs for detail in answer.spans}
    return SessionTurns(
        session_id=session.span_id,
        turns=find_turns(session.span_id, spans, attrs, answer.now_ns),
        attempts=_attempts(source, answer),
        versions=version_segments(spans, attrs),
        engine=engine_times(spans, attrs),
        awaits=_await_line(source, session) if session.end_ns is None else None,
    )


def _attempts(source: Source, answer: SessionAnswer) -> list[Attempt]:
    this = answer.session
    tries = [
        one
        for one in (this, *answer.siblings)
        if one.span_id == this.span_id or (one.sample is not None and one.sample == this.sample)
    ]
    tries.sort(key=lambda one: (one.attempt, one.start_ns, one.span_id))
    errors = _errors(source, [one.span_id for one in tries])
    return [
        Attempt(
            session_id=one.span_id,
            attempt=one.attempt,
            start_ns=one.start_ns,
            end_ns=one.end_ns,
            status=str(one.status),
            outcome=None if one.outcome is None else str(one.outcome),
            reason=one.reason,
            host=one.host,
            is_this=one.span_id == this.span_id,
            errors=errors.get(one.span_id, [])[:_MOST_ERRORS],
        )
        for one in tries
    ]


def _errors(source: Source, session_ids: list[int]) -> dict[int, list[AttemptError]]:
    where = f"{one_of(source, 'session_id')} AND status = 'error' AND kind <> 'session'"
    found: dict[int, list[AttemptError]] = {}
    rows = span_rows(source, where, **bound_ids(session_ids))
    for span in sorted(rows, key=lambda one: (one.end_ns or 0, one.span_id)):
        assert span.session_id is not None  # noqa: S101  (it is one of those asked for)
        found.setdefault(span.session_id, []).append(
            AttemptError(
                span_id=span.span_id,
                name=span.name,
                detail=span.detail,
                reason=span.reason,
                time_ns=span.end_ns or span.start_ns,
            )
        )
    return found


def _await_line(source: Source, session: SessionRow) -> AwaitLine | None:
    """Find where the session waits, and who waits at the same line."""
    last: dict[int, _Picture] = {}
    for picture in _last_pictures(source):
        last[picture.session_id] = picture
    mine = last.pop(session.span_id, None)
    if mine is None:
        return None
    others = sorted(one for one, picture in last.items() if picture.line == mine.line)
    return AwaitLine(
        span_id=mine.span_id,
        time_ns=mine.time_ns,
        frame=mine.line,
        others_on_line=len(others),
        example_session=others[0] if others else None,
    )


class _Picture(msgspec.Struct):
    session_id: int
    span_id: int
    time_ns: int
    line: str


def _last_pictures(source: Source) -> Iterator[_Picture]:
    """Give the last picture of each open span of a session, the innermost span's last."""
    frames = source.dialect.arg_max("k.frames", "k.time_ns", "k.process")
    sql = f"""
        SELECT s.session_id AS session_id, s.span_id AS span_id, max(k.time_ns) AS time_ns,
            {frames} AS frames
        FROM spans AS s JOIN stacks AS k ON s.span_id = k.span_id
        WHERE s.status = 'open' AND s.session_id IS NOT NULL
        GROUP BY s.session_id, s.span_id, s.start_ns
        ORDER BY time_ns, s.start_ns, span_id"""
    for row in source.query(sql).to_pylist():
        line = waiting_line(msgspec.json.decode(row["frames"], type=list[str]))
        if line is not None:
            yield _Picture(row["session_id"], row["span_id"], row["time_ns"], line)
