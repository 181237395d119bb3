"""What was said in a call, for runs that keep payloads: the question, and the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["said_answer", "said_in_piece", "said_question"]


def said_question(arguments: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Give the name and value of what is asked; None if the call has no such argument."""
    if "prompt" in arguments:
        return "prompt", arguments["prompt"]
    for name in ("messages", "input"):
        if name in arguments:
            return "messages", arguments[name]
    return None


def said_answer(answer: object) -> Any:  # noqa: ANN401  (messages or text)
    """Give what a whole answer says: messages of a chat, else text; None if it says nothing."""
    choices = getattr(answer, "choices", None)
    if not isinstance(choices, (list, tuple)):
        return getattr(answer, "output_text", None)
    said = [_message(choice) for choice in choices]
    return "".join(said) if said and all(isinstance(one, str) for one in said) else said


def said_in_piece(piece: object) -> str:
    """Give the text that a piece of a streamed answer brings, for its first choice."""
    kind = getattr(piece, "type", None)
    if isinstance(kind, str):
        found = getattr(piece, "delta", None) if kind == "response.output_text.delta" else None
    else:
        choices = getattr(piece, "choices", None)
        choice = choices[0] if isinstance(choices, (list, tuple)) and choices else None
        delta = getattr(choice, "delta", None)
        found = getattr(choice, "text", None) or getattr(delta, "content", None)
    return found if isinstance(found, str) else ""


def _message(choice: object) -> Any:  # noqa: ANN401
    message = getattr(choice, "message", None)
    dump = getattr(message, "model_dump", None)
    return dump(exclude_none=True) if callable(dump) else getattr(choice, "text", None)
