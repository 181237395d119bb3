from __future__ import annotations

from contextvars import ContextVar, copy_context

from rollscope.instrument.elsewhere import Elsewhere
from rollscope.instrument.spans import NOOP, Span


def test_only_the_latest_of_many_contexts_are_kept() -> None:
    current: ContextVar[Span] = ContextVar("current", default=NOOP)
    elsewhere = Elsewhere(current)
    contexts = []
    for number in range(1, 1001):
        span, context = Span(), copy_context()
        span.id = number
        elsewhere.note(span, context.run(current.set, span))
        contexts.append((span, context))
    assert 0 < len(elsewhere.tokens) < 500
    for (span, context), is_kept in ((contexts[0], False), (contexts[-1], True)):
        assert (context.run(elsewhere.come_back, span) is NOOP) == is_kept
