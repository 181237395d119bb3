"""The phase `generate` around a request to a server, and the headers that tell the server of it."""

from __future__ import annotations

from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from rollscope.instrument import default
from rollscope.instrument.default import inject, payload, phase
from rollscope.instrument.guard import guarded

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.rollout.client.transport import CallFacts

__all__ = ["GeneratePhase", "keeps_payloads"]


def keeps_payloads() -> bool:
    """Say whether payloads are kept, for those to whom making one costs something."""
    recorder = default._tracer._recorder
    return recorder is not None and recorder.settings.payloads


class GeneratePhase:
    """A phase that starts when made and ends when told to.

    It lives in a context of its own: a streamed answer may end long after the call that began it,
    and what its reader does meanwhile is not part of generating.
    """

    def __init__(self, facts: CallFacts, model: str | None) -> None:
        self._facts = facts
        self._context = copy_context()
        self.span = phase("generate", **({} if model is None else {"model": model}))
        self._context.run(self.span.__enter__)

    def headers(self) -> dict[str, str]:
        """Give the W3C headers of the phase."""
        return self._context.run(inject)

    def keep(self, name: str, make: Callable[[], Any]) -> None:
        """Keep what was said with the phase, if payloads are on; it is made only then."""
        if keeps_payloads():
            with guarded("keeping what was said"):
                self._context.run(payload, name, make())

    def end(self, error: BaseException | None = None, /, **attrs: Any) -> None:
        """End it, with what became known; facts that are None are left out."""
        known = {name: fact for name, fact in attrs.items() if fact is not None}
        self.span.set(**known, **self._facts.known())
        kind, trace = (type(error), error.__traceback__) if error is not None else (None, None)
        self._context.run(self.span.__exit__, kind, error, trace)
