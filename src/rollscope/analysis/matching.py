"""What a filter means: whether it lets a session through.

The reference for every query that a filter is turned into. What is missing equals nothing and is
neither more nor less than anything, so that its negation holds.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rollscope.analysis.filters import (
    ATTRIBUTE_PREFIX,
    NUMBER,
    Comparison,
    Filter,
    Not,
    Operator,
    Text,
    Value,
)
from rollscope.analysis.roles import role_of
from rollscope.analysis.rows import ProcessRow, SessionRow, SpanRow
from rollscope.model.kinds import Kind
from rollscope.model.refs import span_hex

__all__ = ["matches"]


def matches(
    expression: Filter,
    session: SessionRow,
    spans: Iterable[SpanRow] = (),
    *,
    process: ProcessRow | None = None,
    now_ns: int | None = None,
) -> bool:
    """Say whether a filter lets a session through.

    Args:
        expression: The filter.
        session: The session.
        spans: Its spans. A condition on phases holds if it holds for any one of them.
        process: Who recorded it; without, it has neither role nor rank.
        now_ns: What an open session ran up to; without, it has no length.
    """
    own = list(spans)

    def holds(term: Comparison | Text | Not) -> bool:
        if isinstance(term, Not):
            return not holds(term.term)
        if isinstance(term, Text):
            found = [text.lower() for text in _texts(session, own)]
            return any(value.lower() in text for value in term.values for text in found)
        facts = _facts(term.field, session, own, process, now_ns)
        known = [fact for fact in facts if fact is not None]
        if not known:
            return None in term.values
        return any(_compare(fact, term.operator, v) for fact in known for v in term.values)

    return all(holds(term) for term in expression.terms)


def _facts(
    field: str,
    session: SessionRow,
    spans: Iterable[SpanRow],
    process: ProcessRow | None,
    now_ns: int | None,
) -> Sequence[object]:
    """Give what is known of a field; several things where it is about phases."""
    if field.startswith(ATTRIBUTE_PREFIX):
        return [session.attrs.get(field.removeprefix(ATTRIBUTE_PREFIX))]
    if field == "name":
        return [span.name for span in spans]
    if field in ("phase", "detail", "tool", "env"):
        phases = [span for span in spans if span.kind is Kind.PHASE]
        if field == "phase":
            return [phase.name for phase in phases]
        return [p.detail for p in phases if field == "detail" or role_of(p.name) == field]
    if field in ("role", "rank"):
        return [] if process is None else [process.role if field == "role" else process.rank]
    if field == "ran":
        end_ns = now_ns if session.end_ns is None else session.end_ns
        return [] if end_ns is None else [max(end_ns - session.start_ns, 0)]
    if field == "id":
        return [span_hex(session.span_id)]
    fact = getattr(session, _SESSION_FIELDS[field])
    return [None if fact == "" else fact]


_SESSION_FIELDS: Final = {
    "attempt": "attempt",
    "consumed": "consumed_step",
    "dispatched": "step",
    "family": "family",
    "group": "group",
    "host": "host",
    "outcome": "outcome",
    "pool": "pool",
    "reason": "reason",
    "replica": "pool",
    "reward": "reward",
    "sample": "sample",
    "status": "status",
    "step": "charged_step",
    "task": "task_key",
    "tokens": "tokens_out",
    "tokens_in": "tokens_in",
    "turns": "turns",
    "version": "version_start",
    "waited": "waited_ns",
}


def _texts(session: SessionRow, spans: Iterable[SpanRow]) -> Iterator[str]:
    facts = (session.task_key, session.family, session.group, session.host, session.pool)
    yield from (fact for fact in (*facts, session.outcome, session.reason) if fact)
    yield from (value for value in session.attrs.values() if isinstance(value, str))
    for span in spans:
        yield from (text for text in (span.name, span.detail, span.reason) if text)


def _compare(fact: object, operator: Operator, value: Value) -> bool:
    if value is None:
        return False
    if operator == ":":
        return _equals(fact, value)
    if isinstance(fact, bool) or not isinstance(fact, int | float) or isinstance(value, str):
        return False
    if operator == "<":
        return fact < value
    if operator == "<=":
        return fact <= value
    return fact > value if operator == ">" else fact >= value


def _equals(fact: object, value: Value) -> bool:
    """Compare as written; an attribute that is a number, by value, so that 5 equals 5.0."""
    if not isinstance(value, str):
        return fact == value
    if isinstance(fact, bool):
        return str(fact).lower() == value
    if isinstance(fact, int | float):
        return NUMBER.fullmatch(value) is not None and float(value) == fact
    return fact == value
