"""A client with the manners of openai's, answered by an engine of ours instead of a server.

Agents written for the SDK run on it unchanged, and every token that they get is kept for training.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rollscope.instrument.default import payload, phase
from rollscope.rollout.chat import follow_up_ids, one_sample, prompt_ids
from rollscope.rollout.client.keeping import InteractionKeeper
from rollscope.rollout.client.limits import Setting, given, token_limit
from rollscope.rollout.client.messages import (
    answer_message,
    chat_tools,
    read_input,
    read_messages,
    response_messages,
)
from rollscope.rollout.client.settings import Advice, sampling_changes, take_template_settings
from rollscope.rollout.client.shapes import (
    ChatCompletion,
    ChatMessage,
    Choice,
    CompletionUsage,
    Response,
    ResponseItem,
    ResponsePart,
    ResponseUsage,
)
from rollscope.rollout.client.toolcalls import SplitToolCalls, read_answer, split_tool_calls
from rollscope.rollout.client.tracing import keeps_payloads
from rollscope.rollout.engine import GenerationConfig, ModelRequest, ModelResponse, generate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rollscope.rollout.chat import Tokenizer
    from rollscope.rollout.client.interaction import Interaction
    from rollscope.rollout.engine import Engine

__all__ = ["History", "RolloutClient"]

History: TypeAlias = Literal["template", "tokens"]


class RolloutClient(InteractionKeeper):
    """Answers `chat.completions.create` and `responses.create` with an engine.

    Make one per session: it keeps every call as an `Interaction`.

        client = RolloutClient(engine, tokenizer, engine_max_tokens=32_768)
        answer = await client.chat.completions.create(messages=[...], max_completion_tokens=1024)
        client.set_last_reward(1.0)
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        engine_max_tokens: int | None = None,
        *,
        gconfig: GenerationConfig | None = None,
        split_tool_calls: SplitToolCalls = split_tool_calls,
        history: History = "template",
        chat_template_kwargs: Mapping[str, Any] | None = None,
        model: str = "rollout",
    ) -> None:
        """Take what answers.

        Args:
            engine: Generates.
            tokenizer: Writes prompts and reads answers.
            engine_max_tokens: How many tokens the engine takes, prompt and answer together.
            gconfig: How to sample where a call does not say; its `max_new_tokens` is not used.
            split_tool_calls: Finds the tool calls in an answer.
            history: How a conversation that goes on becomes a prompt. `template`: written anew.
                `tokens`: the tokens that were generated, then what is new, so that `concat` exports
                are whole.
            chat_template_kwargs: More for the chat template, such as `enable_thinking`. A call adds
                to it with `extra_body={"chat_template_kwargs": {…}}`, as with a server.
            model: What answers name as their model.

        Raises:
            TypeError: `engine_max_tokens` is not an int.
            ValueError: An argument is out of range.
        """
        super().__init__()
        if history not in ("template", "tokens"):
            raise ValueError(f"history is template or tokens, not {history!r}")
        token_limit(0, engine_max_tokens=engine_max_tokens)
        self.engine = engine
        self.tokenizer = tokenizer
        self.engine_max_tokens = engine_max_tokens
        self.chat = _Chat(self)
        self.responses = _Responses(self)
        self._gconfig = one_sample(gconfig or GenerationConfig(), tokenizer)
        self._split_tool_calls = split_tool_calls
        self._history = history
        self._template = dict(chat_template_kwargs or {})
        self._model = model
        self._advice = Advice()

    async def _answer(
        self,
        answer_id: str,
        interaction: Interaction,
        tools: Sequence[Any] | None,
        settings: dict[str, Any],
        limit_name: str = "max_completion_tokens",
    ) -> tuple[ChatMessage, ModelResponse]:
        """Generate, and read what was generated."""
        tools = chat_tools(given(tools))
        tokens = self._prompt(interaction, tools, take_template_settings(settings))
        limit = token_limit(
            len(tokens),
            max_completion_tokens=settings.pop("max_completion_tokens", None),
            max_tokens=settings.pop("max_tokens", None),
            max_output_tokens=settings.pop("max_output_tokens", None),
            max_total_tokens=settings.pop("max_total_tokens", None),
            engine_max_tokens=self.engine_max_tokens,
        )
        self._advice.about_limit(limit, limit_name)
        changes = sampling_changes(self._gconfig, settings, self._advice)
        config = self._gconfig.new(**changes, max_new_tokens=limit.tokens)
        request = ModelRequest(tokens, config, rid=answer_id, tokenizer=self.tokenizer)
        with phase("generate", model=self._model, tokens_in=len(tokens)) as span:
            payload("messages", interaction.messages)
            response = await generate(self.engine, request)
            span.set(tokens_out=response.output_len, stop_reason=response.stop_reason)
            text = self.tokenizer.decode(response.output_tokens, skip_special_tokens=True)
            message = read_answer(text, self._split_tool_calls if tools else None)
            if keeps_payloads():
                payload("completion", [answer_message(message)])
        return message, response

    def _prompt(
        self,
        interaction: Interaction,
        tools: list[dict[str, Any]] | None,
        template: Mapping[str, Any],
    ) -> list[int]:
        settings = {**self._template, **template, **({"tools": tools} if tools else {})}
        parent, messages = interaction.parent, interaction.messages
        if self._history == "template" or parent is None or parent.response is None:
            return prompt_ids(self.tokenizer, messages, **settings)
        new = messages[len(parent.messages) + len(parent.answer) :]
        answer = parent.response.output_tokens
        return [*parent.tokens, *follow_up_ids(self.tokenizer, answer, new, **settings)]


class _Chat:
    def __init__(self, client: RolloutClient) -> None:
        self.completions = _ChatCompletions(client)


class _ChatCompletions:
    def __init__(self, client: RolloutClient) -> None:
        self._client = client

    async def create(
        self,
        *,
        messages: Iterable[Any],
        tools: Setting = None,
        n: Setting = None,
        stream: Setting = None,
        **settings: Any,
    ) -> ChatCompletion:
        """Answer a chat; the settings are those of openai's SDK.

        Raises:
            NotImplementedError: More than one answer, or a stream, is asked for.
            TypeError: A limit is not an int.
            ValueError: There are no messages, or the limits leave no room for an answer.
        """
        _refuse_variants(n, stream)
        client = self._client
        answer_id = f"chatcmpl-{uuid.uuid4().hex}"
        with client._keeping(read_messages(messages)) as kept:
            message, response = await client._answer(answer_id, kept, tools, settings)
            client._complete(kept, answer_id, [answer_message(message)], response)
        finish_reason = "tool_calls" if message.tool_calls else response.stop_reason
        return ChatCompletion(
            id=answer_id,
            model=client._model,
            choices=[Choice(message=message, finish_reason=finish_reason)],
            usage=CompletionUsage(
                prompt_tokens=response.input_len,
                completion_tokens=response.output_len,
                total_tokens=response.input_len + response.output_len,
            ),
        )


class _Responses:
    def __init__(self, client: RolloutClient) -> None:
        self._client = client

    async def create(
        self,
        *,
        input: Setting,
        instructions: Setting = None,
        previous_response_id: Setting = None,
        tools: Setting = None,
        max_output_tokens: Setting = None,
        stream: Setting = None,
        **settings: Any,
    ) -> Response:
        """Answer by the responses API; the settings are those of openai's SDK.

        Raises:
            NotImplementedError: A stream is asked for.
            KeyError: The previous response is not known here.
            TypeError: A limit is not an int.
            ValueError: There is no input, or the limits leave no room for an answer.
        """
        _refuse_variants(None, stream)
        client = self._client
        messages = read_input(input, given(instructions))
        previous = given(previous_response_id)
        if previous is not None and previous not in client.interactions:
            raise KeyError(f"there is no response {previous!r} to go on from")
        messages = client._after(previous, messages)
        settings["max_output_tokens"] = max_output_tokens
        answer_id = f"resp_{uuid.uuid4().hex}"
        with client._keeping(messages) as kept:
            message, response = await client._answer(
                answer_id, kept, tools, settings, "max_output_tokens"
            )
            answer = _shape(answer_id, client._model, message, response, previous)
            client._complete(kept, answer_id, response_messages(answer), response)
        return answer


def _refuse_variants(n: Setting, stream: Setting) -> None:
    if given(n) not in (None, 1):
        raise NotImplementedError("one answer per call; run n sessions for n samples")
    if given(stream):
        raise NotImplementedError("an engine's answers come whole; leave stream out")


def _shape(
    answer_id: str,
    model: str,
    message: ChatMessage,
    response: ModelResponse,
    previous: str | None,
) -> Response:
    items = [
        ResponseItem(
            type="function_call",
            id=f"fc_{uuid.uuid4().hex}",
            status="completed",
            call_id=call.id,
            name=call.function.name,
            arguments=call.function.arguments,
        )
        for call in message.tool_calls or ()
    ]
    if message.content or not items:
        part = ResponsePart(text=message.content or "")
        said = ResponseItem(id=f"msg_{answer_id}", role="assistant", content=[part])
        items.insert(0, said)
    return Response(
        id=answer_id,
        model=model,
        status="incomplete" if response.stop_reason == "length" else "completed",
        output=items,
        usage=ResponseUsage(
            input_tokens=response.input_len,
            output_tokens=response.output_len,
            total_tokens=response.input_len + response.output_len,
        ),
        previous_response_id=previous,
    )
