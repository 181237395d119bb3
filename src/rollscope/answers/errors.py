"""Which errors end spans: their kinds, where, since when."""

from typing import Final

import msgspec

from rollscope.answers.phases import BLAMED, in_scope
from rollscope.answers.rows import most_moved
from rollscope.answers.scope import StepScope
from rollscope.answers.source import Source, fetch

__all__ = ["ERROR_KIND", "ErrorLine", "Errors", "errors"]

_COLON: Final = "position(':' IN reason)"
ERROR_KIND: Final = f"""coalesce(
    CASE WHEN {_COLON} > 0 THEN substring(reason, 1, {_COLON} - 1) ELSE reason END, 'unknown')"""
"""What precedes the colon of a span's reason."""
_MOST_LINES: Final = 100
_MOST_CHARACTERS: Final = 500
"""Of an example; the span itself has all of it."""


class ErrorLine(msgspec.Struct, kw_only=True):
    """One kind of error at one place."""

    kind: str
    """What precedes the colon of the reason."""
    name: str
    """The phase, span or session that it ended."""
    count: int
    first_ns: int
    last_ns: int
    first_step: int | None
    example: str
    """The latest reason, up to 500 characters of it."""
    example_id: int
    """The span that ended so last."""
    example_session: int | None


class Errors(msgspec.Struct, kw_only=True):
    """Kinds of errors, the most frequent first."""

    since_ns: int | None
    """Only those that came later were looked at."""
    total: int
    """Spans that ended in an error, of every kind."""
    kinds: int
    """How many kinds there are; not all may be listed."""
    lines: list[ErrorLine]


def errors(
    source: Source, scope: StepScope | None = None, *, since_ns: int | None = None
) -> Errors:
    """Tell which errors ended spans.

    Args:
        source: The run.
        scope: Of which steps' sessions; if it is not all, only errors of sessions count.
        since_ns: Only those that ended at or after this.
    """
    where, values = in_scope(source, scope or StepScope(), "session_id")
    if since_ns is not None:
        where += " AND end_ns >= $since AND recorded_end_ns >= $files_since"
        values |= {"since": since_ns, "files_since": since_ns - most_moved(source)}
    alike = "OVER (PARTITION BY error_kind, name)"
    latest = "OVER (PARTITION BY error_kind, name ORDER BY end_ns DESC, span_id DESC)"
    sql = f"""
        WITH failed AS (
            SELECT {ERROR_KIND} AS error_kind, name, end_ns, step, span_id, session_id,
                coalesce(reason, 'unknown') AS example
            FROM spans WHERE status = 'error' AND {BLAMED} AND {where}
        ), ranked AS (
            SELECT error_kind, name, example, span_id AS example_id, session_id AS example_session,
                count(*) {alike} AS count, min(end_ns) {alike} AS first_ns,
                max(end_ns) {alike} AS last_ns, min(step) {alike} AS first_step,
                row_number() {latest} AS place
            FROM failed
        )
        SELECT error_kind AS kind, name, count, first_ns, last_ns, first_step, example, example_id,
            example_session
        FROM ranked WHERE place = 1 ORDER BY count DESC, error_kind, name"""
    lines = fetch(source, ErrorLine, sql, **values)
    for line in lines:
        line.example = line.example[:_MOST_CHARACTERS]
    total = sum(line.count for line in lines)
    return Errors(since_ns=since_ns, total=total, kinds=len(lines), lines=lines[:_MOST_LINES])
