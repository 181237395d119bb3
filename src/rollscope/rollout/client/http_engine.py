"""An inference server as an engine: token ids in, token ids out, over `/v1/completions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rollscope.rollout.client.closing import Closing
from rollscope.rollout.client.errors import MalformedAnswer
from rollscope.rollout.client.reply import TimeLimits
from rollscope.rollout.client.retrying import RetryRule
from rollscope.rollout.client.shapes import Completion
from rollscope.rollout.client.transport import CallFacts, Transport
from rollscope.rollout.engine import ModelResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rollscope.rollout.client.shapes import CompletionChoice
    from rollscope.rollout.engine import GenerationConfig, ModelRequest, StopReason

__all__ = ["HttpEngine"]

_TOKEN_PREFIX: Final = "token_id:"  # noqa: S105  (nothing secret)
_STOP_REASONS: Final[dict[str | None, StopReason]] = {
    "length": "length",
    "abort": "abort",
    "tool_calls": "tool_calls",
    None: "abort",
}


class HttpEngine(Closing):
    """Generates on any server that takes token ids as a prompt and tells those it made, as vLLM.

    engine = HttpEngine("http://127.0.0.1:8000/v1", model="policy")
    """

    def __init__(
        self,
        base_url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        version: int | Callable[[], int] = 0,
        tokenizer: Any = None,  # noqa: ANN401  (only handed on)
        limits: TimeLimits | None = None,
        retry: RetryRule | None = None,
        max_connections: int = 1024,
        max_body_bytes: int = 256 * 1024 * 1024,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Take the address; nothing is opened yet.

        Args:
            base_url: With or without `/v1`.
            model: Which model of the server.
            api_key: Sent as a bearer token.
            version: The policy version that the server has, or a function that says so.
            tokenizer: For clients that ask an engine for its tokenizer.
            limits: How long the server may take.
            retry: When to try again.
            max_connections: How many requests may be under way at once.
            max_body_bytes: How large an answer may be.
            headers: Sent with every request.
        """
        self.tokenizer = tokenizer
        self._model = model
        self._version = version
        self._transport = Transport(
            base_url,
            api_key=api_key,
            headers=headers,
            limits=limits or TimeLimits(),
            retry=retry or RetryRule(),
            max_connections=max_connections,
            max_body_bytes=max_body_bytes,
        )

    def get_version(self) -> int:
        """Say which policy version the server has."""
        return self._version() if callable(self._version) else self._version

    def set_version(self, version: int) -> None:
        """Say that the server has other weights now."""
        self._version = version

    async def agenerate(self, req: ModelRequest) -> ModelResponse:
        """Answer a request; if the caller is cancelled, the server is told to stop.

        The current span is told `tries` and `status`; opening phase `generate` is the caller's.

        Raises:
            EndpointError: The server gave no answer that could be read.
            NotImplementedError: The request has images.
        """
        from rollscope.instrument.default import current, inject

        if req.image_data:
            raise NotImplementedError("images cannot be sent along with token ids")
        facts, version = CallFacts(), self.get_version()
        headers = {"X-Request-Id": req.rid, **inject()}
        try:
            answer = await self._transport.fetch("/completions", self._body(req), facts, headers)
        finally:
            current().set(**facts.known())
        try:
            (choice,) = Completion.read(answer).choices
            tokens, logprobs = _tokens_of(choice)
        except ValueError as error:
            raise MalformedAnswer(
                f"the server did not tell the tokens that it made ({error}); it must know "
                "`return_token_ids` or `return_tokens_as_token_ids`, as vLLM does",
                status=facts.status,
                tries=facts.tries,
            ) from error
        return ModelResponse(
            input_tokens=list(req.input_ids),
            output_tokens=tokens,
            output_logprobs=logprobs,
            output_versions=[version] * len(tokens),
            stop_reason=_STOP_REASONS.get(choice.finish_reason, "stop"),
        )

    def _body(self, req: ModelRequest) -> dict[str, Any]:
        body = {
            "model": self._model,
            "prompt": list(req.input_ids),
            "logprobs": 0,
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,
            **_sampling(req.gconfig),
        }
        return {name: value for name, value in body.items() if value is not None}


def _sampling(config: GenerationConfig) -> dict[str, Any]:
    return {
        "max_tokens": config.max_new_tokens,
        "min_tokens": config.min_new_tokens or None,
        "temperature": 0.0 if config.greedy else config.temperature,
        "top_p": config.top_p,
        "top_k": config.top_k,
        "stop": list(config.stop) or None,
        "stop_token_ids": list(config.stop_token_ids) or None,
        "frequency_penalty": config.frequency_penalty or None,
        "presence_penalty": config.presence_penalty or None,
        **config.extra,
    }


def _tokens_of(choice: CompletionChoice) -> tuple[list[int], list[float]]:
    """Give the tokens of an answer and their logprobs."""
    told = choice.logprobs
    if told is None:
        raise ValueError("there are no logprobs")
    tokens = choice.token_ids
    if tokens is None:
        if not all(token.startswith(_TOKEN_PREFIX) for token in told.tokens):
            raise ValueError("tokens came as text")
        tokens = [int(token.removeprefix(_TOKEN_PREFIX)) for token in told.tokens]
    logprobs = [logprob for logprob in told.token_logprobs if logprob is not None]
    if len(logprobs) != len(tokens):
        raise ValueError(f"{len(tokens)} tokens have {len(logprobs)} logprobs")
    return tokens, logprobs
