"""Sessions by when they ended and how long they ran."""

import msgspec

from rollscope.answers.chosen import choose
from rollscope.answers.points import LengthLine, Points, fetch_points, length_lines, to_points
from rollscope.answers.scope import StepScope
from rollscope.answers.sessions import Ended
from rollscope.answers.source import Source

__all__ = ["Scatter", "scatter"]


class Scatter(msgspec.Struct, kw_only=True):
    """Points, and lines at p50 and p95 of how long they ran."""

    scope: str
    points: Points
    lines: list[LengthLine]
    """p50 and, with 20 sessions or more, p95; each names the session that it is."""


def scatter(
    source: Source, scope: StepScope, filter_text: str = "", ended: Ended = (None, None)
) -> Scatter:
    """Give the sessions of a scope that a filter lets through as points.

    Raises:
        FilterError: The filter cannot be read.
    """
    table = fetch_points(source, choose(source, scope, filter_text, ended))
    return Scatter(scope=scope.text, points=to_points(table), lines=length_lines(table, (50, 95)))
