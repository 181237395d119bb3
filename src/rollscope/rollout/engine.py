"""What a rollout asks of an inference engine, and how an interrupted answer is continued.

The engines themselves are the host's: anything with `agenerate` and `get_version` will do. What a
request may cost is checked here, what its answer is worth is left to the workflows.
"""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from rollscope.instrument import default as tracing
from rollscope.runner import ctx

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "Engine",
    "GenerationConfig",
    "ModelRequest",
    "ModelResponse",
    "StopReason",
    "generate",
]

StopReason = Literal["stop", "length", "tool_calls", "abort"]
"""Why an engine stopped; `abort` means that it was interrupted and can go on."""

_FIRST_WAIT_S = 0.01
_LONGEST_WAIT_S = 1.0


@dataclass(frozen=True, slots=True)
class GenerationConfig:
    """How to sample; an engine may know more settings, which travel in `extra`."""

    n_samples: int = 1
    """Always 1 in a request: n samples of a prompt are n sessions."""
    max_new_tokens: int = 16_384
    min_new_tokens: int = 0
    max_tokens: int | None = None
    """Limit on prompt and answer together."""
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    greedy: bool = False
    stop: Sequence[str] = ()
    stop_token_ids: Sequence[int] = ()
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)

    def new(self, **changes: Any) -> GenerationConfig:
        """Give a copy in which some settings differ."""
        return dataclasses.replace(self, **changes)

    def room_after(self, prompt_len: int) -> int:
        """Say how many tokens may follow a prompt; zero or less if none."""
        if self.max_tokens is None:
            return self.max_new_tokens
        return min(self.max_new_tokens, self.max_tokens - prompt_len)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One prompt, as it goes to an engine."""

    input_ids: list[int]
    gconfig: GenerationConfig = field(default_factory=GenerationConfig)
    rid: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Names the request; its continuations keep the name."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: Any = None
    image_data: Sequence[str | bytes] | None = None
    processor: Any = None


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """What an engine answered; logprobs and versions are those of the output tokens."""

    input_tokens: list[int]
    output_tokens: list[int]
    output_logprobs: list[float]
    output_versions: list[int] = field(default_factory=list)
    """The policy version behind each token; left empty, the version at the request is meant."""
    stop_reason: StopReason = "stop"

    @property
    def input_len(self) -> int:
        """How many tokens the prompt has."""
        return len(self.input_tokens)

    @property
    def output_len(self) -> int:
        """How many tokens the answer has."""
        return len(self.output_tokens)


class Engine(Protocol):
    """Whatever generates."""

    async def agenerate(self, req: ModelRequest) -> ModelResponse:
        """Answer a request; stop reason `abort` if it was interrupted on the way."""

    def get_version(self) -> int:
        """Say which policy version is loaded."""


async def generate(engine: Engine, req: ModelRequest) -> ModelResponse:
    """Get a whole answer, however often the engine is interrupted on the way.

    While the runner is paused no request is sent. An aborted answer is continued from the tokens
    that are there, so its tokens may come from several versions; each keeps its own.

    Raises:
        ValueError: More than one sample is asked for, the prompt leaves no room for an answer, or
            the engine's answer does not have one logprob and one version per token.
    """
    answer = _Answer(req)
    wait_s = _FIRST_WAIT_S
    while True:
        await ctx.pause_point()
        version = engine.get_version()
        part = await engine.agenerate(answer.next_request())
        answer.add(part, version)
        if answer.is_complete:
            return answer.joined()
        tracing.event("generate_aborted", rid=req.rid, tokens_out=part.output_len)
        if part.output_tokens:
            ctx.progress()
            wait_s = _FIRST_WAIT_S
        else:
            # An engine that aborts at once, as one may that is being updated, must not spin us.
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)


class _Answer:
    """The parts of one answer so far."""

    def __init__(self, req: ModelRequest) -> None:
        self._req = req
        self._room = _room(req)
        self._tokens: list[int] = []
        self._logprobs: list[float] = []
        self._versions: list[int] = []
        self._stop_reason: StopReason = "abort"

    @property
    def is_complete(self) -> bool:
        return self._stop_reason != "abort"

    def next_request(self) -> ModelRequest:
        done, config = len(self._tokens), self._req.gconfig
        return dataclasses.replace(
            self._req,
            input_ids=[*self._req.input_ids, *self._tokens],
            gconfig=config.new(
                max_new_tokens=self._room - done,
                min_new_tokens=max(config.min_new_tokens - done, 0),
            ),
        )

    def add(self, part: ModelResponse, version: int) -> None:
        versions = part.output_versions or [version] * part.output_len
        if not len(part.output_logprobs) == len(versions) == part.output_len:
            raise ValueError(
                f"the engine answered request {self._req.rid} with {part.output_len} tokens, "
                f"{len(part.output_logprobs)} logprobs and {len(versions)} versions; "
                "each token needs one of both"
            )
        self._tokens += part.output_tokens
        self._logprobs += part.output_logprobs
        self._versions += versions
        is_full = part.stop_reason == "abort" and len(self._tokens) >= self._room
        self._stop_reason = "length" if is_full else part.stop_reason

    def joined(self) -> ModelResponse:
        return ModelResponse(
            input_tokens=list(self._req.input_ids),
            output_tokens=self._tokens,
            output_logprobs=self._logprobs,
            output_versions=self._versions,
            stop_reason=self._stop_reason,
        )


def _room(req: ModelRequest) -> int:
    """Say how many tokens may be generated."""
    config = req.gconfig
    if config.n_samples != 1:
        raise ValueError(
            f"a request gives one sample, not {config.n_samples}; run n sessions for n samples"
        )
    room = config.room_after(len(req.input_ids))
    if room <= 0:
        raise ValueError(
            f"a prompt of {len(req.input_ids)} tokens leaves no room for an answer: "
            f"max_new_tokens is {config.max_new_tokens}, max_tokens is {config.max_tokens}"
        )
    return room
