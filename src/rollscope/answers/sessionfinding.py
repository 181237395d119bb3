"""Finding a session by what people and other programs call it."""

import re
from collections.abc import Sequence
from typing import Final

from rollscope.analysis.rows import SessionRow
from rollscope.answers.rows import sessions_with
from rollscope.answers.source import Source
from rollscope.errors import CommandError
from rollscope.model.refs import span_hex

__all__ = ["find_session", "sessions_of_task"]

_ID: Final = re.compile(r"(?:0x)?([0-9a-f]{16})")
_TRACE: Final = re.compile(r"[0-9a-f]{32}")
_SAMPLE: Final = re.compile(r"(.+?)(?:#|\s+sample\s+|\s+)(\d+)")
_CUT: Final = "…"
"""Stands for the middle of a name that was too long for an exemplar."""
_MOST_LISTED: Final = 8


def find_session(source: Source, given: str) -> int:
    """Find a session by its id, by its task and sample as in `gsm8k/8421#3`, or by its trace.

    Of the sessions of one trace it is the longest: whoever has only a trace id comes from
    something slow.

    Raises:
        CommandError: There is none, or several; the message names some.
    """
    text = given.strip()
    if (match := _ID.fullmatch(text.lower())) is not None:
        return _with_span(source, int(match[1], 16), text)
    if _TRACE.fullmatch(text.lower()):
        return _of_trace(source, text)
    key, sample = text, None
    if (match := _SAMPLE.fullmatch(text)) is not None:
        key, sample = match[1], int(match[2])
    candidates = sessions_of_task(source, key)
    if not candidates and _CUT in key:
        candidates = [
            row for whole in _uncut(source, key) for row in sessions_of_task(source, whole)
        ]
    if sample is not None:
        candidates = [one for one in candidates if one.sample == sample]
    if not candidates:
        raise CommandError(f"the run has no session {given!r}; {_similar(source, key)}")
    if len(candidates) > 1 and (sample is None or len({one.step for one in candidates}) > 1):
        raise CommandError(f"{given!r} has {len(candidates)} sessions: {_listed(candidates)}")
    return candidates[-1].span_id


def sessions_of_task(source: Source, key: str) -> list[SessionRow]:
    """Give the sessions of a task."""
    sql = "SELECT span_id FROM spans WHERE kind = 'session' AND task_key = $key"
    return sessions_with(source, source.query(sql, key=key)["span_id"].to_pylist())


def _with_span(source: Source, number: int, text: str) -> int:
    sql = """
        SELECT coalesce(session_id, span_id) AS session_id FROM spans
        WHERE span_id = $id AND (kind = 'session' OR session_id IS NOT NULL)
        LIMIT 1"""
    found = source.query(sql, id=number)["session_id"].to_pylist()
    if not found:
        raise CommandError(f"the run has no session {text}")
    return int(found[0])


def _of_trace(source: Source, text: str) -> int:
    sql = """
        SELECT span_id FROM spans WHERE kind = 'session' AND hex(trace_id) = $trace
        ORDER BY coalesce(end_ns, $now) - start_ns DESC, span_id LIMIT 1"""
    rows = source.query(sql, trace=text.upper(), now=source.now_ns)
    found = rows["span_id"].to_pylist()
    if not found:
        raise CommandError(f"the run has no session in a trace {text}")
    return int(found[0])


def _uncut(source: Source, key: str) -> list[str]:
    """Give the tasks whose names begin and end as one of which the middle is missing."""
    head, _, tail = key.partition(_CUT)
    sql = """
        SELECT DISTINCT task_key FROM tasks
        WHERE task_key IS NOT NULL AND position($head IN task_key) = 1"""
    names = source.query(sql, head=head)["task_key"].to_pylist()
    return [name for name in names if len(name) > len(key) and name.endswith(tail)]


def _listed(candidates: Sequence[SessionRow]) -> str:
    listed = ", ".join(
        f"{span_hex(one.span_id)} (sample {one.sample}, step {one.charged_step})"
        for one in candidates[:_MOST_LISTED]
    )
    return f"{listed}{', …' if len(candidates) > _MOST_LISTED else ''}"


def _similar(source: Source, key: str) -> str:
    sql = """
        SELECT DISTINCT task_key FROM tasks
        WHERE task_key IS NOT NULL AND position(lower($key) IN lower(task_key)) > 0
        ORDER BY task_key LIMIT 5"""
    names = source.query(sql, key=key)["task_key"].to_pylist()
    if names:
        return f"tasks like it: {', '.join(names)}"
    names = source.query(
        "SELECT task_key FROM tasks WHERE task_key IS NOT NULL ORDER BY start_ns DESC LIMIT 3"
    )["task_key"].to_pylist()
    return f"its tasks are named like {', '.join(names)}" if names else "it has no sessions"
