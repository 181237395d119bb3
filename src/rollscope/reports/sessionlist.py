"""Every session of a report as one line, in one pass over the run.

The same lines as `answers.sessions` gives, which asks for the spans of few sessions at a time.
"""

from collections.abc import Iterator

from rollscope.analysis.filters import Filter
from rollscope.analysis.intervals import Interval, union_ns
from rollscope.analysis.rows import SessionRow
from rollscope.analysis.staleness import last_lag
from rollscope.answers.chosen import scope_condition
from rollscope.answers.filtering import to_condition
from rollscope.answers.phases import in_scope
from rollscope.answers.scope import StepScope
from rollscope.answers.session import published_versions
from rollscope.answers.sessions import SessionLine, matching_sessions
from rollscope.store.embedded import RunStore

__all__ = ["Window", "session_lines"]

Window = tuple[int | None, int | None]
"""From when and until when; None for as far as it goes."""

_Phases = dict[str, list[Interval]]


def session_lines(store: RunStore, scope: StepScope, window: Window) -> list[SessionLine]:
    """Give the sessions of a scope that ran in a window, in order of their start."""
    within = scope_condition(scope)
    everything = to_condition(Filter(()), store.dialect, store.now_ns)
    rows = matching_sessions(store, within.where, within.values, everything)
    phases = _phases(store, scope)
    versions = published_versions(store)
    low_ns, high_ns = window
    return [
        _line(row, phases.get(row.span_id, {}), last_lag(row, versions), store.now_ns)
        for row in rows
        if (low_ns is None or row.end_ns is None or row.end_ns >= low_ns)
        and (high_ns is None or row.start_ns < high_ns)
    ]


def _phases(store: RunStore, scope: StepScope) -> dict[int, _Phases]:
    """Give when the phases of each session were open, by name, in order of their start."""
    where, values = in_scope(store, scope, "session_id")
    sql = f"""
        SELECT session_id, name, start_ns, greatest(coalesce(end_ns, $now_ns), start_ns) AS end_ns
        FROM phases
        WHERE session_id IS NOT NULL AND {where} ORDER BY start_ns, span_id"""  # noqa: S608
    columns = store.query(sql, **{**values, "now_ns": store.now_ns}).to_pydict()
    found: dict[int, _Phases] = {}
    for session_id, name, start, end in zip(*columns.values(), strict=True):
        found.setdefault(session_id, {}).setdefault(name, []).append((start, end))
    return found


def _line(row: SessionRow, phases: _Phases, lag: int | None, now_ns: int) -> SessionLine:
    end_ns = max(now_ns if row.end_ns is None else row.end_ns, row.start_ns)
    total_ns = end_ns - row.start_ns
    covered_ns = union_ns(_cut(phases, row.start_ns, end_ns))
    return SessionLine(
        row=row,
        ran_ns=total_ns,
        phases={name: _together(times) for name, times in phases.items()},
        other_ns=total_ns - covered_ns,
        lag=lag,
    )


def _together(times: list[Interval]) -> int:
    if len(times) == 1:  # as most are
        return times[0][1] - times[0][0]
    return union_ns(times)


def _cut(phases: _Phases, low_ns: int, high_ns: int) -> Iterator[Interval]:
    for times in phases.values():
        for start, end in times:
            if start < high_ns and end > low_ns:
                yield max(start, low_ns), min(end, high_ns)
