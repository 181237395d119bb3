"""The three APIs of an OpenAI-compatible server, as attributes of `OpenAIClient`."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any, Literal, overload

from rollscope.rollout.client.errors import MalformedAnswer
from rollscope.rollout.client.events import ChatJoiner, TextJoiner
from rollscope.rollout.client.limits import Setting, given
from rollscope.rollout.client.messages import (
    answer_message,
    read_input,
    read_messages,
    response_messages,
)
from rollscope.rollout.client.shapes import (
    ChatCompletion,
    ChatCompletionChunk,
    Completion,
    Response,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from rollscope.rollout.chat import Message
    from rollscope.rollout.client.interaction import Interaction
    from rollscope.rollout.client.remote import OpenAIClient
    from rollscope.rollout.client.stream import AnswerStream

__all__ = ["RemoteChat", "RemoteChatCompletions", "RemoteCompletions", "RemoteResponses"]


class RemoteChat:
    """`client.chat`."""

    def __init__(self, client: OpenAIClient) -> None:
        self.completions = RemoteChatCompletions(client)


class RemoteChatCompletions:
    """`client.chat.completions`."""

    def __init__(self, client: OpenAIClient) -> None:
        self._client = client

    @overload
    async def create(
        self, *, messages: Iterable[Any], stream: Literal[True], **settings: Any
    ) -> AnswerStream[ChatCompletionChunk, ChatCompletion]: ...
    @overload
    async def create(
        self, *, messages: Iterable[Any], stream: Setting = None, **settings: Any
    ) -> ChatCompletion: ...
    async def create(
        self,
        *,
        messages: Iterable[Any],
        stream: Setting = None,
        **settings: Any,
    ) -> ChatCompletion | AnswerStream[ChatCompletionChunk, ChatCompletion]:
        """Answer a chat; the settings are those of openai's SDK and go to the server as they are.

        Raises:
            EndpointError: The server gave no answer that could be read.
            NotImplementedError: More than one answer is asked for.
            TypeError: A limit is not an int.
            ValueError: There are no messages, or the limits leave no room for an answer.
        """
        client, asked = self._client, read_messages(messages)
        _refuse_many(settings)
        client._limit(settings, client._prompt_tokens(asked), "max_completion_tokens")
        body = {"messages": asked, **settings}
        if given(stream):
            return await self._create_stream(asked, body)
        with _keeping(client, asked) as kept:
            completion = await client._ask("/chat/completions", body, ChatCompletion)
            _keep_chat(client, kept, completion)
        return completion

    async def _create_stream(
        self, asked: list[Message], body: dict[str, Any]
    ) -> AnswerStream[ChatCompletionChunk, ChatCompletion]:
        client = self._client
        holding = ExitStack()
        kept = holding.enter_context(_keeping(client, asked))

        def on_answer(completion: ChatCompletion | None) -> None:
            with holding:
                if completion is not None:
                    _keep_chat(client, kept, completion)

        return await client._ask_stream(
            "/chat/completions", body, ChatCompletionChunk, ChatJoiner(), on_answer
        )


class RemoteCompletions:
    """`client.completions`: texts without roles, which are not kept as interactions."""

    def __init__(self, client: OpenAIClient) -> None:
        self._client = client

    @overload
    async def create(
        self, *, prompt: str | list[int], stream: Literal[True], **settings: Any
    ) -> AnswerStream[Completion, Completion]: ...
    @overload
    async def create(
        self, *, prompt: str | list[int], stream: Setting = None, **settings: Any
    ) -> Completion: ...
    async def create(
        self,
        *,
        prompt: str | list[int],
        stream: Setting = None,
        **settings: Any,
    ) -> Completion | AnswerStream[Completion, Completion]:
        """Continue a text, or tokens.

        Raises:
            EndpointError: The server gave no answer that could be read.
            NotImplementedError: More than one answer is asked for.
            TypeError: A limit is not an int.
            ValueError: The limits leave no room for an answer.
        """
        client = self._client
        _refuse_many(settings)
        client._limit(settings, 0 if isinstance(prompt, str) else len(prompt), "max_tokens")
        body = {"prompt": prompt, **settings}
        if given(stream):
            return await client._ask_stream(
                "/completions", body, Completion, TextJoiner(), lambda _: None
            )
        return await client._ask("/completions", body, Completion)


class RemoteResponses:
    """`client.responses`."""

    def __init__(self, client: OpenAIClient) -> None:
        self._client = client

    async def create(
        self,
        *,
        input: Setting,
        instructions: Setting = None,
        max_output_tokens: Setting = None,
        stream: Setting = None,
        **settings: Any,
    ) -> Response:
        """Answer by the responses API; the settings go to the server as they are.

        Raises:
            EndpointError: The server gave no answer that could be read.
            NotImplementedError: A stream is asked for.
            TypeError: A limit is not an int.
            ValueError: There is no input, or the limits leave no room for an answer.
        """
        if given(stream):
            raise NotImplementedError("responses come whole; use chat.completions for a stream")
        client = self._client
        asked = read_input(input, given(instructions))
        asked = client._after(given(settings.get("previous_response_id")), asked)
        settings["max_output_tokens"] = max_output_tokens
        name = client._limit(settings, client._prompt_tokens(asked), "max_output_tokens")
        settings["max_output_tokens"] = settings.pop(name)
        body = {"input": input, "instructions": instructions, **settings}
        with _keeping(client, asked) as kept:
            response = await client._ask("/responses", body, Response)
            if kept is not None:
                client._complete(kept, response.id, response_messages(response))
        return response


def _refuse_many(settings: dict[str, Any]) -> None:
    if given(settings.pop("n", None)) not in (None, 1):
        raise NotImplementedError("one answer per call; run n sessions for n samples")


def _keeping(
    client: OpenAIClient, messages: list[Message]
) -> AbstractContextManager[Interaction | None]:
    return client._keeping(messages) if client._keeps else nullcontext()


def _keep_chat(client: OpenAIClient, kept: Interaction | None, completion: ChatCompletion) -> None:
    if not completion.choices:
        raise MalformedAnswer("the server answered without an answer: `choices` is empty")
    if kept is not None:
        client._complete(kept, completion.id, [answer_message(completion.choices[0].message)])
