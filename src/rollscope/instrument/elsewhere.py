"""Spans that were left in another context than they were entered in.

A callback ends them, another thread does, or the loop closes their generator. Where they were
entered they are current still, and nobody else can change that. So the token by which that can be
undone is kept until something is recorded there. Contexts that inherited such a span keep it: what
a task does late belongs to the span that it was started in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from contextvars import ContextVar, Token

    from rollscope.instrument.spans import Span

__all__ = ["Elsewhere"]

_MOST_TOKENS: Final = 256
"""Each keeps a context alive, and most of these are never used again."""


class Elsewhere:
    """Brings contexts back to what was current before a span that has ended."""

    def __init__(self, current: ContextVar[Span]) -> None:
        self._current = current
        self.tokens: dict[int, Token[Span]] = {}
        """By the ids of spans; looked at before `come_back` is called, as it is nearly always
        empty."""

    def note(self, span: Span, token: Token[Span] | None) -> None:
        """Remember that a span has been left, but not where it was entered."""
        if token is None:
            return
        if len(self.tokens) >= _MOST_TOKENS:
            self.tokens.pop(min(self.tokens, default=0), None)
        self.tokens[span.id] = token

    def come_back(self, span: Span) -> Span:
        """Leave the current span here too, if this is where it was entered; give what is so now."""
        while (token := self.tokens.get(span.id)) is not None:
            try:
                self._current.reset(token)
            except (RuntimeError, ValueError):  # it was used; or this context inherited the span
                break
            self.tokens.pop(span.id, None)
            span = self._current.get()
        return span
