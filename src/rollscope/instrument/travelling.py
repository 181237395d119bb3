"""Spans that go along in what a program pickles: elsewhere they stand for the ones they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from rollscope.instrument.spans import NOOP, RemoteSpan, Session
from rollscope.instrument.verdicts import read_verdict
from rollscope.model.scope import Scope

if TYPE_CHECKING:
    from rollscope.instrument.spans import Span
    from rollscope.model.refs import SpanRef

__all__ = ["arrive"]


class _TravelledSpan(RemoteSpan, Session):
    """Names a span and takes late facts about it; entering it does nothing."""

    __slots__ = ()

    def finish(
        self,
        /,
        outcome: str,
        *,
        reason: str | None = None,
        version: int | None = None,
        **attrs: Any,
    ) -> Self:
        """Give the verdict as a late fact."""
        return self.set(**{**attrs, **read_verdict(outcome, reason, version)})


def arrive(ref: SpanRef | None) -> Span:
    """Make what stands for a span that was pickled; one that was not entered is none."""
    if ref is None:
        return NOOP
    return _TravelledSpan(ref.span_id, Scope(ref.trace_id), _annotate)


def _annotate(ref: SpanRef, facts: dict[str, Any]) -> None:
    from rollscope.instrument import default  # which is made of spans

    default.annotate(ref, **facts)
