"""A client for any OpenAI-compatible server, that keeps what was said and traces how long it took.

It speaks the chat, completions and responses APIs. How requests travel is `transport`'s.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any, TypeVar

from rollscope.rollout.client.closing import Closing
from rollscope.rollout.client.errors import MalformedAnswer
from rollscope.rollout.client.keeping import InteractionKeeper
from rollscope.rollout.client.limits import given, token_limit
from rollscope.rollout.client.remote_apis import RemoteChat, RemoteCompletions, RemoteResponses
from rollscope.rollout.client.reply import TimeLimits
from rollscope.rollout.client.retrying import RetryRule
from rollscope.rollout.client.saying import said_answer, said_question
from rollscope.rollout.client.settings import Advice
from rollscope.rollout.client.shapes import Shape
from rollscope.rollout.client.stream import AnswerStream, Joiner
from rollscope.rollout.client.tracing import GeneratePhase
from rollscope.rollout.client.transport import CallFacts, Transport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rollscope.rollout.chat import Message

__all__ = ["OpenAIClient"]

S = TypeVar("S", bound=Shape)
J = TypeVar("J", bound=Shape)


class OpenAIClient(InteractionKeeper, Closing):
    """Asks an OpenAI-compatible server; the calls are those of the SDK's async client.

    async with OpenAIClient("http://127.0.0.1:8000/v1", model="policy") as client:
        answer = await client.chat.completions.create(messages=[...], max_tokens=1024)
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        model: str | None = None,
        max_total_tokens: int | None = None,
        *,
        timeout_s: float | None = 3600.0,
        connect_s: float | None = 10.0,
        first_byte_s: float | None = None,
        max_retries: int = 5,
        retry: RetryRule | None = None,
        max_connections: int = 1024,
        max_body_bytes: int = 64 * 1024 * 1024,
        headers: Mapping[str, str] | None = None,
        count_tokens: Callable[[list[Message]], int] | None = None,
        keep_interactions: bool = True,
    ) -> None:
        """Take the address; nothing is opened yet.

        Args:
            base_url: Of the server; `/v1` is added if there is no path.
            api_key: Sent as a bearer token, to this server only: redirects are not followed.
            model: Which model, where a call does not say.
            max_total_tokens: How many tokens prompt and answer may have together.
            timeout_s: For one try, from sending it to the end of its answer. Not tried again.
            connect_s: To make a connection.
            first_byte_s: To the first byte of an answer. Not tried again.
            max_retries: How often to try again after 429, 5xx and lost connections.
            retry: How long to wait in between, and `max_retries` too.
            max_connections: How many requests may be under way at once; more wait for their turn,
                which counts against no time limit.
            max_body_bytes: How large an answer may be.
            headers: Sent with every request.
            count_tokens: Says how long a prompt is, for `max_total_tokens`; if not given, prompts
                count as nothing and the server has to object to those that are too long.
            keep_interactions: Keep every chat and response; `for_session` gives a client that does.

        Raises:
            ValueError: The address cannot be used, or a limit is out of range.
        """
        super().__init__()
        token_limit(0, max_total_tokens=max_total_tokens)
        self._transport = Transport(
            base_url,
            api_key=api_key,
            headers=headers,
            limits=TimeLimits(connect_s=connect_s, first_byte_s=first_byte_s, total_s=timeout_s),
            retry=retry or RetryRule(max_retries=max_retries),
            max_connections=max_connections,
            max_body_bytes=max_body_bytes,
        )
        self._max_body_bytes = max_body_bytes
        self._model = model
        self._max_total_tokens = max_total_tokens
        self._count_tokens = count_tokens
        self._keeps = keep_interactions
        self._advice = Advice()
        self._add_apis()

    def _add_apis(self) -> None:
        self.chat = RemoteChat(self)
        self.completions = RemoteCompletions(self)
        self.responses = RemoteResponses(self)

    def for_session(self) -> OpenAIClient:
        """Give a client with the same connections and interactions of its own.

        Connections belong to the first client: it is the one to close.
        """
        other = object.__new__(OpenAIClient)
        other.__dict__.update(self.__dict__)
        InteractionKeeper.__init__(other)
        other._keeps = True
        other._add_apis()
        return other

    def _limit(self, settings: dict[str, Any], prompt_tokens: int, default_name: str) -> str:
        """Put the limit on the answer's length into a call's settings, under the caller's name.

        Returns:
            That name; `default_name` where the caller has set none.
        """
        limits = {
            name: given(settings.pop(name, None))
            for name in {"max_completion_tokens", "max_tokens", default_name}
        }
        limit = token_limit(
            prompt_tokens,
            **limits,
            max_total_tokens=settings.pop("max_total_tokens", None),
            engine_max_tokens=self._max_total_tokens,
        )
        self._advice.about_limit(limit, default_name)
        name = next((name for name, value in limits.items() if value is not None), default_name)
        settings[name] = limit.tokens
        return name

    def _prompt_tokens(self, messages: list[Message]) -> int:
        return 0 if self._count_tokens is None else self._count_tokens(messages)

    async def _ask(self, path: str, body: dict[str, Any], shape: type[S]) -> S:
        """Ask for a whole answer."""
        call = _Call(self, body)
        try:
            answer = await self._transport.fetch(
                path, call.body, call.facts, call.headers(), call.timeout_s
            )
            try:
                read = shape.read(answer)
            except ValueError as error:
                raise MalformedAnswer(
                    f"{path} answered in another form: {error}",
                    status=call.facts.status,
                    tries=call.facts.tries,
                ) from error
        except BaseException as error:
            call.phase.end(error)
            raise
        call.keep_answer(read)
        call.phase.end(**_usage(read))
        return read

    async def _ask_stream(
        self,
        path: str,
        body: dict[str, Any],
        shape: type[S],
        joiner: Joiner[S, J],
        on_answer: Callable[[J | None], None],
    ) -> AnswerStream[S, J]:
        """Ask for an answer piece by piece; `on_answer` gets the whole, None if it broke off."""
        call = _Call(self, {"stream_options": {"include_usage": True}, **body, "stream": True})

        def on_begin() -> None:
            call.phase.span.set(ttft_s=time.monotonic() - call.started_s)

        def on_end(answer: J | None, error: BaseException | None) -> None:
            if answer is not None:
                call.keep_answer(answer)
            call.phase.end(error, **({} if answer is None else _usage(answer)))
            on_answer(answer)

        try:
            reply = await self._transport.open_stream(
                path, call.body, call.facts, call.headers(), call.timeout_s
            )
        except BaseException as error:
            on_end(None, error)
            raise
        return AnswerStream(reply, shape.read, joiner, on_begin, on_end, self._max_body_bytes)


class _Call:
    """One request: what is sent, and its phase."""

    def __init__(self, client: OpenAIClient, body: dict[str, Any]) -> None:
        plain = {name: given(value) for name, value in body.items()}
        self._headers: dict[str, str] = plain.pop("extra_headers", None) or {}
        self.timeout_s: float | None = plain.pop("timeout", None)
        extra = plain.pop("extra_body", None) or {}
        plain.setdefault("model", None)
        plain["model"] = plain["model"] or client._model
        self.body = {name: value for name, value in plain.items() if value is not None} | extra
        self.facts = CallFacts()
        self.started_s = time.monotonic()
        self.phase = GeneratePhase(self.facts, self.body.get("model"))
        name = "prompt" if "prompt" in self.body else "messages"
        self.phase.keep(name, lambda: said_question(self.body))

    def keep_answer(self, answer: Shape) -> None:
        self.phase.keep("completion", lambda: said_answer(answer))

    def headers(self) -> dict[str, str]:
        # Tries of one call share an id, so that a server's log shows them as one.
        return {"X-Request-Id": uuid.uuid4().hex, **self.phase.headers(), **self._headers}


def _usage(answer: Shape) -> dict[str, int | None]:
    """Give the numbers of tokens in the words of our traces."""
    usage: Any = getattr(answer, "usage", None)
    if usage is None:
        return {}
    if hasattr(usage, "input_tokens"):
        return {"tokens_in": usage.input_tokens, "tokens_out": usage.output_tokens}
    return {"tokens_in": usage.prompt_tokens, "tokens_out": usage.completion_tokens}
