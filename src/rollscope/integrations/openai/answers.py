"""What is read off answers, pieces of answers and errors. All of it may be missing or odd."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

__all__ = ["facts_of_answer", "facts_of_error", "facts_of_piece", "is_first_token"]

_COUNTS: Final = {
    "tokens_in": ("prompt_tokens", "input_tokens"),
    "tokens_out": ("completion_tokens", "output_tokens"),
}
_DETAILS: Final = {
    "tokens_cached": (("prompt_tokens_details", "input_tokens_details"), "cached_tokens"),
    "tokens_reasoning": (
        ("completion_tokens_details", "output_tokens_details"),
        "reasoning_tokens",
    ),
}


def facts_of_answer(answer: object) -> dict[str, Any]:
    """Give model, id, tokens and why it stopped, as far as an answer tells."""
    usage = getattr(answer, "usage", None)
    facts: dict[str, Any] = {
        "model": _text(getattr(answer, "model", None)),
        "request_id": _text(getattr(answer, "id", None)),
        "finish": _finish(answer),
    }
    for name, fields in _COUNTS.items():
        facts[name] = _first(_whole(getattr(usage, field, None)) for field in fields)
    for name, (holders, field) in _DETAILS.items():
        details = (getattr(usage, holder, None) for holder in holders)
        facts[name] = _first(_whole(getattr(one, field, None)) for one in details)
    return {name: fact for name, fact in facts.items() if fact is not None}


def facts_of_piece(piece: object) -> dict[str, Any]:
    """Give what a piece of a streamed answer tells; events of responses carry the whole answer."""
    whole = getattr(piece, "response", None)
    return facts_of_answer(piece if whole is None else whole)


def facts_of_error(error: BaseException) -> dict[str, Any]:
    """Give the type of an error, and the status and id that a server has given it."""
    facts = {
        "error_type": type(error).__name__,
        "status": _whole(getattr(error, "status_code", None)),
        "request_id": _text(getattr(error, "request_id", None)),
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def is_first_token(piece: object) -> bool:
    """Say whether a piece brings tokens: of the events of responses only some do."""
    kind = getattr(piece, "type", None)
    return kind.endswith(".delta") if isinstance(kind, str) else True


def _finish(answer: object) -> str | None:
    choices = getattr(answer, "choices", None)
    if isinstance(choices, (list, tuple)) and choices:
        return _text(getattr(choices[0], "finish_reason", None))
    cut_short = getattr(answer, "incomplete_details", None)
    return _text(getattr(cut_short, "reason", None)) or _text(getattr(answer, "status", None))


def _first(values: Iterator[int | None]) -> int | None:
    return next((value for value in values if value is not None), None)


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
