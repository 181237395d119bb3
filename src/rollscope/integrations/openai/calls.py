"""One call of a client: a phase `generate` from asking to the last piece of the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument import default
from rollscope.instrument.guard import guarded
from rollscope.integrations.openai.answers import (
    facts_of_answer,
    facts_of_error,
    facts_of_piece,
    is_first_token,
)
from rollscope.integrations.openai.saying import said_answer, said_in_piece, said_question

if TYPE_CHECKING:
    from rollscope.instrument.recorder import Recorder

__all__ = ["Call", "may_be_told"]

_PUBLIC: Final = (".openai.com", ".azure.com")


class Call:
    """A phase that is current while the client works, and not while its caller does."""

    __slots__ = ("_clock", "_current", "_has_begun", "_said", "is_over", "span")

    def __init__(self, recorder: Recorder, arguments: Mapping[str, Any]) -> None:
        """Start the phase, which is current from now on."""
        self._current, self._clock = recorder.current, recorder.clock
        self._has_begun = self.is_over = False
        self._said: list[str] | None = [] if recorder.settings.payloads else None
        model = arguments.get("model")
        attrs = {"model": model} if isinstance(model, str) else {}
        self.span = recorder.new_phase("generate", attrs)
        self.span.__enter__()
        if self._said is not None and (asked := said_question(arguments)) is not None:
            default.payload(*asked)

    def add_headers(self, arguments: dict[str, Any]) -> None:
        """Tell the server which span asks; headers that the caller gives win."""
        given = arguments.get("extra_headers")
        theirs = dict(given) if isinstance(given, Mapping) else {}
        if "traceparent" not in {str(name).lower() for name in theirs}:
            arguments["extra_headers"] = {**default.inject(), **theirs}

    def step_aside(self) -> None:
        """Let the caller go on under the span it was in, while the phase stays open."""
        if self._current.get() is self.span:
            self._current.set(self.span.parent)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Be current for a block; an error that leaves it ends the phase."""
        token = self._current.set(self.span) if not self.is_over else None
        try:
            yield
        except (StopIteration, StopAsyncIteration):
            self.end()
            raise
        except BaseException as error:
            self.fail(error)
            raise
        finally:
            if token is not None:
                self._current.reset(token)

    def take_piece(self, piece: object) -> None:
        """Keep what a piece of the answer tells."""
        if self.is_over:
            return
        with guarded("reading a piece of an answer"):
            if not self._has_begun and is_first_token(piece):
                self._has_begun = True
                waited_ns = self._clock.mono_ns() - self.span.start_ns
                self.span.set(ttft_s=waited_ns / 1e9)
            self.span.set(**facts_of_piece(piece))
            if self._said is not None:
                self._said.append(said_in_piece(piece))

    def take_answer(self, answer: object) -> None:
        """Keep what the whole answer tells, and end."""
        with guarded("reading an answer"):
            self.span.set(**facts_of_answer(answer))
            if self._said is not None:
                default.payload("completion", said_answer(answer))
        self.end()

    def fail(self, error: BaseException) -> None:
        """End by an error."""
        if not self.is_over:
            with guarded("reading an error"):
                self.span.set(**facts_of_error(error))
            self.end(error)

    def end(self, error: BaseException | None = None, /, **attrs: Any) -> None:
        """End, once."""
        if self.is_over:
            return
        self.is_over = True
        if self._said:
            token = self._current.set(self.span)
            default.payload("completion", "".join(self._said))
            self._current.reset(token)
        self.span.set(**attrs)
        kind, trace = (type(error), error.__traceback__) if error is not None else (None, None)
        self.span.__exit__(kind, error, trace)


def may_be_told(resource: object) -> bool:
    """Say whether the server of a client is one's own engine rather than a public service."""
    url = getattr(getattr(resource, "_client", None), "base_url", None)
    host = getattr(url, "host", None)
    return not (isinstance(host, str) and f".{host.lower()}".endswith(_PUBLIC))
