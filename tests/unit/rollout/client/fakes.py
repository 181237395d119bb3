"""A tokenizer of words and an engine that says what it is told to."""

from __future__ import annotations

from typing import Any

from rollscope.rollout.engine import ModelRequest, ModelResponse

END = 0


class WordTokenizer:
    """A token per word; `<role>` opens a message and `<end>` closes it."""

    eos_token_id = END

    def __init__(self) -> None:
        self.words = ["<end>"]

    def apply_chat_template(self, conversation: Any, /, **settings: Any) -> Any:
        tools = settings.get("tools")
        parts = [f"<tools:{len(tools)}>"] if tools else []
        for message in conversation:
            said = message.get("content") or ""
            calls = " ".join(call["function"]["name"] for call in message.get("tool_calls") or ())
            parts.append(f"<{message['role']}> {said} {calls} <end>")
        parts += ["<assistant>"] if settings["add_generation_prompt"] else []
        parts += ["<think>"] if settings.get("think") else []
        text = " ".join(" ".join(parts).split())
        return self.encode(text) if settings["tokenize"] else text

    def encode(self, text: str, /, *, add_special_tokens: bool = True) -> list[int]:
        for word in text.split():
            if word not in self.words:
                self.words.append(word)
        return [self.words.index(word) for word in text.split()]

    def decode(self, tokens: Any, /, *, skip_special_tokens: bool = False) -> str:
        return " ".join(
            self.words[token] for token in tokens if not (skip_special_tokens and token == END)
        )


class ScriptedEngine:
    """Gives prepared answers in turn and keeps the requests."""

    def __init__(self, tokenizer: WordTokenizer, *answers: str) -> None:
        self.tokenizer = tokenizer
        self.answers = list(answers)
        self.requests: list[ModelRequest] = []
        self.version = 3

    async def agenerate(self, req: ModelRequest) -> ModelResponse:
        self.requests.append(req)
        tokens = [*self.tokenizer.encode(self.answers.pop(0)), END]
        return ModelResponse(
            input_tokens=req.input_ids,
            output_tokens=tokens,
            output_logprobs=[-0.5] * len(tokens),
            output_versions=[self.version] * len(tokens),
        )

    def get_version(self) -> int:
        return self.version
