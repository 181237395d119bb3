"""What the sessions under a filter have in common: counts by field, and what each term removed."""

from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from rollscope.analysis.filters import Comparison, Filter, parse_filter
from rollscope.analysis.filters import Value as FilterValue
from rollscope.analysis.filterwriting import write_term
from rollscope.answers.chosen import Chosen, choose, scope_condition
from rollscope.answers.scope import StepScope
from rollscope.answers.sessions import Ended
from rollscope.answers.source import Source

__all__ = ["Facet", "FacetValue", "Facets", "TermEffect", "facets"]

_COLUMNS: Final = {
    "outcome": "outcome",
    "step": "charged_step",
    "host": "nullif(host, '')",
    "family": "family",
    "reason": "reason",
    "attempt": "attempt",
}
"""Facets that are fields of a session, and what the filter language means by them."""
_MOST_VALUES: Final = 30
_MOST_TERMS: Final = 12


class FacetValue(msgspec.Struct, kw_only=True):
    """One value of a field."""

    value: str | None
    """None for sessions that have none."""
    count: int
    term: str
    """The condition that keeps only these sessions, as a filter writes it."""


class Facet(msgspec.Struct, kw_only=True):
    """The values of one field, the most frequent first; steps and attempts in their order."""

    field: str
    values: list[FacetValue]
    others: int
    """How many more values there are."""


class TermEffect(msgspec.Struct, kw_only=True):
    """What one condition of the filter does."""

    term: str
    alone: int
    """How many sessions it lets through by itself."""
    without: int
    """How many there would be without it; this many less those shown are what it removed."""


class Facets(msgspec.Struct, kw_only=True):
    """Counts under a filter."""

    scope: str
    of: int
    """Sessions of the scope."""
    matched: int
    """Those that the filter lets through."""
    facets: list[Facet]
    terms: list[TermEffect]
    """Only where the filter lets nothing through."""


def facets(
    source: Source, scope: StepScope, filter_text: str = "", ended: Ended = (None, None)
) -> Facets:
    """Count the sessions of a scope that a filter lets through, by what they have in common.

    Raises:
        FilterError: The filter cannot be read.
    """
    expression = parse_filter(filter_text)
    of = _count(source, scope_condition(scope))
    chosen = choose(source, scope, expression, ended)
    columns = ", ".join(f"{column} AS {field}" for field, column in _COLUMNS.items())
    sql = f"SELECT {columns} FROM sessions WHERE {chosen.where}"
    table = source.query(sql, **chosen.values)
    found = [_facet(field, _value_counts(table[field])) for field in _COLUMNS]
    if table.num_rows:
        found.insert(4, _facet("phase", _phase_counts(source, chosen, is_all=table.num_rows == of)))
    return Facets(
        scope=scope.text,
        of=of,
        matched=table.num_rows,
        facets=found,
        terms=[] if table.num_rows else _effects(source, scope, expression, ended),
    )


def _count(source: Source, chosen: Chosen) -> int:
    sql = f"SELECT count(*) AS n FROM sessions WHERE {chosen.where}"
    return int(source.query(sql, **chosen.values)["n"][0].as_py())


_Counts = list[tuple[FilterValue, int]]


def _value_counts(column: pa.ChunkedArray) -> _Counts:
    counted = pc.value_counts(column.combine_chunks())
    return [(row["values"], row["counts"]) for row in counted.to_pylist()]


def _phase_counts(source: Source, chosen: Chosen, *, is_all: bool) -> _Counts:
    """Count the sessions that have a phase, by its name."""
    own = f"session_id IN (SELECT session_id FROM sessions WHERE {chosen.where})"
    where = "session_id IS NOT NULL" if is_all and not chosen.values else own
    sql = f"""
        SELECT name, count(DISTINCT session_id) AS n FROM phases
        WHERE {where} GROUP BY name"""
    values = chosen.values if "$" in where else {}
    return [(row["name"], row["n"]) for row in source.query(sql, **values).to_pylist()]


def _facet(field: str, counts: _Counts) -> Facet:
    if field in ("step", "attempt"):
        counts.sort(key=lambda item: (item[0] is None, item[0] if isinstance(item[0], int) else 0))
        shown = counts[-_MOST_VALUES:]
    else:
        counts.sort(key=lambda item: (-item[1], item[0] is None, str(item[0])))
        shown = counts[:_MOST_VALUES]
    return Facet(
        field=field,
        values=[
            FacetValue(
                value=None if value is None else str(value),
                count=count,
                term=write_term(Comparison(field, ":", (value,))),
            )
            for value, count in shown
        ],
        others=len(counts) - len(shown),
    )


def _effects(
    source: Source, scope: StepScope, expression: Filter, ended: Ended
) -> list[TermEffect]:
    effects = []
    for place, term in enumerate(expression.terms[:_MOST_TERMS]):
        rest = expression.terms[:place] + expression.terms[place + 1 :]
        effects.append(
            TermEffect(
                term=write_term(term),
                alone=_count(source, choose(source, scope, Filter((term,)), ended)),
                without=_count(source, choose(source, scope, Filter(rest), ended)),
            )
        )
    return effects
