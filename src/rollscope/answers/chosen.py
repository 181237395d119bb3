"""Which sessions a page is about: those of a scope that a filter lets through."""

import msgspec

from rollscope.analysis.filters import Filter, parse_filter
from rollscope.answers.filtering import to_condition
from rollscope.answers.scope import StepScope
from rollscope.answers.sessions import Ended, ended_condition, matching_sessions
from rollscope.answers.source import Source
from rollscope.store.dialect import Value

__all__ = ["Chosen", "choose", "scope_condition"]


class Chosen(msgspec.Struct, kw_only=True):
    """A condition on the view `sessions`, and the values that it names."""

    where: str
    values: dict[str, Value]


def scope_condition(scope: StepScope) -> Chosen:
    """Give the condition that a session counts for the steps of a scope."""
    if scope.first is None or scope.last is None:
        return Chosen(where="TRUE", values={})
    between = "charged_step BETWEEN $first AND $last"
    return Chosen(where=between, values={"first": scope.first, "last": scope.last})


def choose(
    source: Source, scope: StepScope, wanted: str | Filter, ended: Ended = (None, None)
) -> Chosen:
    """Give the condition for the sessions of a scope that a filter lets through.

    What a query cannot say is checked here, and the condition then lists the sessions.

    Raises:
        FilterError: The filter cannot be read.
    """
    expression = parse_filter(wanted) if isinstance(wanted, str) else wanted
    within = scope_condition(scope)
    part, values = ended_condition(ended, source.now_ns)
    within = Chosen(where=f"{within.where} AND {part}", values=within.values | values)
    condition = to_condition(expression, source.dialect, source.now_ns)
    if condition.rest.terms:
        found = matching_sessions(source, within.where, within.values, condition)
        ids = [one.span_id for one in found]
        if not ids:
            return Chosen(where="FALSE", values={})
        return Chosen(
            where=source.dialect.is_in("session_id", "$chosen_ids"), values={"chosen_ids": ids}
        )
    return Chosen(
        where=f"{within.where} AND {condition.sql}", values=within.values | condition.values
    )
