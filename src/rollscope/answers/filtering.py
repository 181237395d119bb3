"""Filters as conditions of a query.

Most of a filter becomes a condition on the view `sessions`, every value bound. What a query cannot
say the way `analysis.filters` means it (attributes of any type, text anywhere, tokens added up from
phases) is left over and has to be checked on the rows.
"""

from typing import Final

import msgspec

from rollscope.analysis.filters import (
    ATTRIBUTE_PREFIX,
    Comparison,
    Filter,
    Not,
    Text,
)
from rollscope.analysis.filters import Value as FilterValue
from rollscope.analysis.roles import ROLES
from rollscope.store.dialect import Dialect, Value

__all__ = ["Condition", "to_condition"]

_COLUMNS: Final = {
    "attempt": "attempt",
    "consumed": "consumed_step",
    "dispatched": "step",
    "family": "family",
    "group": "group_key",
    "host": "nullif(host, '')",
    "id": "session_id",
    "outcome": "outcome",
    "pool": "nullif(pool, '')",
    "ran": "coalesce(end_ns, $now_ns) - start_ns",
    "reason": "reason",
    "replica": "nullif(pool, '')",
    "reward": "reward",
    "sample": "sample",
    "status": "status",
    "step": "charged_step",
    "task": "task_key",
    "turns": "turns",
    "version": "version_start",
    "waited": "waited_ns",
}
_OF_PROCESS: Final = {"role": "role", "rank": "rank"}
_OF_SPANS: Final = {
    "phase": ("phases", "name"),
    "detail": ("phases", "detail"),
    "tool": ("phases", "detail"),
    "env": ("phases", "detail"),
    "name": ("spans", "name"),
}


class Condition(msgspec.Struct):
    """What a query has to hold, and what is left to check on its rows."""

    sql: str
    values: dict[str, Value]
    rest: Filter


def to_condition(expression: Filter, dialect: Dialect, now_ns: int) -> Condition:
    """Turn a filter into a condition on the view `sessions`."""
    writer = _Writer(dialect)
    rest: list[Comparison | Text | Not] = []
    parts = ["TRUE"]
    for term in expression.terms:
        inner = term.term if isinstance(term, Not) else term
        sql = writer.comparison(inner) if isinstance(inner, Comparison) else None
        if sql is None:
            rest.append(term)
        else:
            # What is missing equals nothing, so its negation holds.
            holds = f"coalesce({sql}, FALSE)"
            parts.append(f"NOT {holds}" if isinstance(term, Not) else holds)
    sql = " AND ".join(parts)
    if "$now_ns" in sql:
        writer.values["now_ns"] = now_ns
    return Condition(sql=sql, values=writer.values, rest=Filter(tuple(rest)))


class _Writer:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.values: dict[str, Value] = {}

    def comparison(self, term: Comparison) -> str | None:
        """Write a condition; None if a query cannot say it."""
        field = term.field
        if field in _COLUMNS:
            return self._on_column(_COLUMNS[field], term)
        if field in _OF_PROCESS:
            column = _OF_PROCESS[field]
            inner = self._on_column(column, term)
            return f"process IN (SELECT process FROM processes WHERE {inner})"
        if field in _OF_SPANS:
            return self._on_spans(term)
        assert field.startswith(ATTRIBUTE_PREFIX) or field.startswith("tokens")  # noqa: S101
        return None

    def _on_column(self, column: str, term: Comparison) -> str:
        parts = [
            f"{column} IS NULL" if value is None else self._compare(column, term, value)
            for value in term.values
        ]
        return "(" + " OR ".join(parts) + ")"

    def _compare(self, column: str, term: Comparison, value: FilterValue) -> str:
        operator = "=" if term.operator == ":" else term.operator
        bound = int(value, 16) if term.field == "id" and isinstance(value, str) else value
        return f"({column} IS NOT NULL AND {column} {operator} {self._bind(bound)})"

    def _bind(self, value: FilterValue) -> str:
        assert value is not None  # noqa: S101
        name = "filter_" + "abcdefghijklmnopqrstuvwxyz"[len(self.values) % 26] * (
            1 + len(self.values) // 26
        )
        self.values[name] = value
        return f"${name}"

    def _on_spans(self, term: Comparison) -> str:
        view, column = _OF_SPANS[term.field]
        of_role = ""
        if term.field in ROLES:
            names = " OR ".join(f"name = {self._bind(name)}" for name in sorted(ROLES[term.field]))
            of_role = f" AND ({names})"
        own = f"SELECT session_id FROM {view} WHERE session_id IS NOT NULL AND kind <> 'session'"
        parts = []
        given = [value for value in term.values if value is not None]
        if given:
            wanted = " OR ".join(self._compare(column, term, value) for value in given)
            parts.append(f"session_id IN ({own}{of_role} AND ({wanted}))")
        if len(given) < len(term.values):
            parts.append(f"session_id NOT IN ({own}{of_role} AND {column} IS NOT NULL)")
        return "(" + " OR ".join(parts) + ")"
