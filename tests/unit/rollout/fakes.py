"""A tokenizer of single characters, and an engine that says what it was told to say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rollscope.rollout.engine import ModelRequest, ModelResponse

_SPECIAL = ("<|end|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|system|>")
_PIECES = re.compile("|".join(re.escape(token) for token in _SPECIAL) + "|.", re.DOTALL)

EOS = 0

Answer = str | ModelResponse


class FakeTokenizer:
    """One token per character; roles and the end of a message have tokens of their own."""

    eos_token_id = EOS

    def __init__(self, *, thinks: bool = False) -> None:
        self.thinks = thinks
        """Whether the last answer is written in another way than those before it."""
        self.settings: list[dict[str, Any]] = []

    def apply_chat_template(
        self,
        conversation: Sequence[dict[str, Any]],
        /,
        *,
        tokenize: bool = True,
        add_generation_prompt: bool = False,
        return_dict: bool = True,
        **settings: Any,
    ) -> Any:
        self.settings.append(settings)
        last = len(conversation) - 1
        text = "".join(
            self._written(message, is_last=number == last)
            for number, message in enumerate(conversation)
        )
        if add_generation_prompt:
            text += "<|assistant|>"
        if not tokenize:
            return text
        return {"input_ids": self.encode(text)} if return_dict else self.encode(text)

    def _written(self, message: dict[str, Any], *, is_last: bool) -> str:
        thought = "(thought)" if self.thinks and is_last else ""
        return f"<|{message['role']}|>{thought}{message['content']}<|end|>\n"

    def encode(self, text: str, /, *, add_special_tokens: bool = True) -> list[int]:
        assert not text.startswith("<|end|>") or not add_special_tokens
        return [
            _SPECIAL.index(piece) if piece in _SPECIAL else ord(piece) + len(_SPECIAL)
            for piece in _PIECES.findall(text)
        ]

    def decode(self, tokens: Sequence[int], /, *, skip_special_tokens: bool = False) -> str:
        special = ("",) * len(_SPECIAL) if skip_special_tokens else _SPECIAL
        return "".join(
            special[token] if token < len(special) else chr(token - len(special))
            for token in tokens
        )


class FakeEngine:
    """Gives its answers one after the other and keeps the requests."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.requests: list[ModelRequest] = []
        self.version = 7

    async def agenerate(self, req: ModelRequest) -> ModelResponse:
        self.requests.append(req)
        answer = self._answers.pop(0)
        if isinstance(answer, str):
            return said(answer, version=self.version)
        return answer

    def get_version(self) -> int:
        return self.version


def said(text: str, *, version: int = 7, stop_reason: Any = "stop") -> ModelResponse:
    """Make an answer of a text; one that was not cut off ends with the token for that."""
    tokens = FakeTokenizer().encode(text, add_special_tokens=False)
    if stop_reason == "stop":
        tokens.append(EOS)
    return ModelResponse(
        input_tokens=[],
        output_tokens=tokens,
        output_logprobs=[-0.5] * len(tokens),
        output_versions=[version] * len(tokens),
        stop_reason=stop_reason,
    )
