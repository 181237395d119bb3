"""What changed: two runs, two stretches of steps, or a selection of sessions against the rest."""

from collections.abc import Mapping
from typing import Final

import msgspec

from rollscope.analysis.compare import PhaseComparison, compare
from rollscope.analysis.details import DetailLabels, detail_labels
from rollscope.analysis.differs import Differences, differences
from rollscope.analysis.filters import ATTRIBUTE_PREFIX, Filter, Not
from rollscope.analysis.filters import Comparison as Condition
from rollscope.analysis.rows import SessionRow
from rollscope.answers.filtering import to_condition
from rollscope.answers.phases import in_scope, phase_unions
from rollscope.answers.rows import MAYBE_CHARGED, add_tokens, session_attrs, session_rows
from rollscope.answers.scope import StepScope
from rollscope.answers.sessions import matching_sessions
from rollscope.answers.sharing import shared
from rollscope.answers.source import Source
from rollscope.store.attributes import PROMOTED
from rollscope.store.dialect import Value

__all__ = ["Comparison", "Selection", "compare_runs", "compare_selection", "select_sessions"]

_MOST_VALUES: Final = 20_000
"""Lengths of one phase on one side; of more, every so-manieth is taken."""
_FIELD_OF: Final = {
    "attempt": "attempt",
    "family": "family",
    "replica": "pool",
    "reward": "reward",
    "tokens_in": "tokens_in",
    "tokens_out": "tokens",
    "turns": "turns",
    "waited_ns": "waited",
}
"""The field that tells of a column that is read from attributes."""
_SAME: Final = (
    frozenset({"step", "consumed", "dispatched", "attr.consumed_step"}),
    frozenset({"ran", "attr.execution_s", "attr.total_s"}),
    frozenset({"pool", "replica"}),
    *(
        frozenset({field, *(f"{ATTRIBUTE_PREFIX}{key}" for key in PROMOTED[column][0])})
        for column, field in _FIELD_OF.items()
    ),
)
"""Fields and attributes that tell the same: whoever chooses by one knows of the others."""


class Comparison(msgspec.Struct, kw_only=True):
    """Two sides, phase by phase."""

    first: str
    second: str
    first_sessions: int
    second_sessions: int
    phases: list[PhaseComparison]
    sampled: list[str]
    """Phases of which not all values were taken."""


class Selection(msgspec.Struct, kw_only=True):
    """A selection of sessions against the rest."""

    chosen: int
    rest: int
    phases: list[PhaseComparison]
    """The rest first, the chosen ones second."""
    differences: Differences


def compare_runs(
    first: Source,
    first_scope: StepScope,
    second: Source,
    second_scope: StepScope,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """Compare the sessions and phases of two runs, or of two stretches of steps."""
    left, left_sampled = _lengths(first, first_scope)
    right, right_sampled = _lengths(second, second_scope)
    return Comparison(
        first=names[0],
        second=names[1],
        first_sessions=len(left.get("session", [])),
        second_sessions=len(right.get("session", [])),
        phases=compare(left, right),
        sampled=sorted({*left_sampled, *right_sampled}),
    )


_Lengths = dict[str, list[tuple[str | None, int]]]


def _lengths(source: Source, scope: StepScope) -> tuple[_Lengths, list[str]]:
    where, values = in_scope(source, scope, "session_id")
    sql = f"""
        SELECT CASE WHEN kind = 'session' THEN 'session' ELSE name END AS name, task_key,
            duration_ns FROM spans
        WHERE (kind = 'session' OR kind = 'phase') AND end_ns IS NOT NULL AND status <> 'lost'
            AND session_id IS NOT NULL AND {where}
        ORDER BY name, start_ns, span_id"""
    columns = source.query(sql, **values).to_pydict()
    lengths: _Lengths = {}
    for name, key, length in zip(*columns.values(), strict=True):
        lengths.setdefault(name, []).append((key, length))
    sampled = [name for name, items in lengths.items() if len(items) > _MOST_VALUES]
    for name in sampled:
        items = lengths[name]
        lengths[name] = items[:: -(-len(items) // _MOST_VALUES)]
    return lengths, sampled


def select_sessions(
    source: Source, scope: StepScope, expression: Filter
) -> tuple[list[SessionRow], list[SessionRow]]:
    """Divide the sessions of a scope into those that a filter holds for, and the rest."""
    sessions = shared(source, ("sessions", scope), lambda: _everyone(source, scope))
    chosen = _held_for(source, scope, expression)
    return (
        [one for one in sessions if one.span_id in chosen],
        [one for one in sessions if one.span_id not in chosen],
    )


def _everyone(source: Source, scope: StepScope) -> list[SessionRow]:
    where, values = _charged(scope)
    among = None if scope.is_all else MAYBE_CHARGED
    sessions = session_rows(source, where, among=among, **values)
    add_tokens(source, sessions)
    session_attrs(source, sessions)
    return sessions


def _held_for(source: Source, scope: StepScope, expression: Filter) -> set[int]:
    """Give the ids of the sessions that a filter holds for."""
    where, values = _charged(scope)
    condition = to_condition(expression, source.dialect, source.now_ns)
    if condition.rest.terms:  # they have to be looked at one by one
        return {one.span_id for one in matching_sessions(source, where, values, condition)}
    sql = f"SELECT session_id FROM sessions WHERE {where} AND {condition.sql}"
    return set(source.query(sql, **values, **condition.values)["session_id"].to_pylist())


def _charged(scope: StepScope) -> tuple[str, dict[str, Value]]:
    if scope.first is None or scope.last is None:
        return "TRUE", {}
    between = "charged_step BETWEEN $first AND $last"
    return between, {"first": scope.first, "last": scope.last}


def compare_selection(
    source: Source,
    scope: StepScope,
    expression: Filter,
    started: tuple[int | None, int | None] = (None, None),
    *,
    against: Filter | None = None,
) -> Selection:
    """Tell what is different about the sessions that a filter holds for.

    Args:
        source: The run.
        scope: Which steps' sessions are looked at.
        expression: Which of them are chosen.
        started: Only those that started from then, and before then, are chosen.
        against: Which of the others they are held against; all, if it says nothing.
    """
    held, rest = select_sessions(source, scope, expression)
    chosen = [one for one in held if _is_within(one, *started)]
    rest += [one for one in held if not _is_within(one, *started)]
    fields = _fields_of(expression)
    if against is not None and against.terms:
        others = {one.span_id for one in select_sessions(source, scope, against)[0]}
        rest = [one for one in rest if one.span_id in others]
        fields |= _fields_of(against)
    everyone = [*chosen, *rest]
    unions = phase_unions(source, everyone)
    details = shared(source, ("details", scope), lambda: _details(source, scope))
    return Selection(
        chosen=len(chosen),
        rest=len(rest),
        phases=compare(_of(rest, unions), _of(chosen, unions)),
        differences=differences(chosen, rest, excluded=fields, details=details, phase_ns=unions),
    )


def _is_within(session: SessionRow, low_ns: int | None, high_ns: int | None) -> bool:
    """Say whether a session started in a stretch of time, which may be open at either side."""
    return (low_ns is None or session.start_ns >= low_ns) and (
        high_ns is None or session.start_ns < high_ns
    )


def _fields_of(expression: Filter) -> set[str]:
    """Give what sessions were chosen by, which is no news about them."""
    terms = (term.term if isinstance(term, Not) else term for term in expression.terms)
    fields = {term.field for term in terms if isinstance(term, Condition)}
    return fields.union(*(same for same in _SAME if fields & same))


def _of(sessions: list[SessionRow], unions: Mapping[int, Mapping[str, int]]) -> _Lengths:
    lengths: _Lengths = {}
    for session in sessions:
        if session.is_measured and session.end_ns is not None:
            key = session.task_key
            lengths.setdefault("session", []).append((key, session.end_ns - session.start_ns))
            for name, length in unions.get(session.span_id, {}).items():
                lengths.setdefault(name, []).append((key, length))
    return lengths


def _details(source: Source, scope: StepScope) -> DetailLabels:
    where, values = in_scope(source, scope, "session_id")
    sql = f"""
        SELECT DISTINCT session_id, name, detail FROM phases
        WHERE detail IS NOT NULL AND session_id IS NOT NULL AND {where}"""
    return detail_labels(zip(*source.query(sql, **values).to_pydict().values(), strict=True))
