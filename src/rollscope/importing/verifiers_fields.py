"""Small things that records of verifiers are made of: times, errors, counts of tokens, scores."""

import math
from typing import Any, Final, NamedTuple

from rollscope.importing.values import seconds_to_ns
from rollscope.importing.verifiers_records import text_of
from rollscope.otlp.aliases import first_number, whole_number

__all__ = [
    "Fault",
    "Score",
    "Tokens",
    "last_fault",
    "read_fault",
    "read_score",
    "read_time",
    "read_tokens",
]

_LATEST_NS: Final = 2**62


class Fault(NamedTuple):
    """An error as it was recorded; its traceback is not kept."""

    type: str
    message: str
    code: int | None

    def attrs(self) -> dict[str, Any]:
        """Give it as attributes."""
        told = {"error.type": self.type, "error.message": self.message, "error.code": self.code}
        return {key: value for key, value in told.items() if value not in ("", None)}


class Tokens(NamedTuple):
    """What calls of a model took; None where nobody counted."""

    taken: int | None = None
    made: int | None = None
    cached: int | None = None
    reasoning: int | None = None

    def plus(self, other: "Tokens") -> "Tokens":
        """Add up."""
        pairs = zip(self, other, strict=True)
        return Tokens(*(b if a is None else a if b is None else a + b for a, b in pairs))

    def attrs(self, prefix: str = "tokens_") -> dict[str, int]:
        """Give them as attributes."""
        names = ("in", "out", "cached", "reasoning")
        return {
            prefix + name: count
            for name, count in zip(names, self, strict=True)
            if count is not None
        }


class Score(NamedTuple):
    """What the rewards of a trace add up to."""

    value: float | None
    """None if nothing was scored."""
    unscored: list[str]


def read_time(value: object) -> int:
    """Read a time; 0 for one that was not reached."""
    time_ns = seconds_to_ns(value)
    return time_ns if time_ns is not None and 0 < time_ns < _LATEST_NS else 0


def last_fault(errors: object) -> Fault | None:
    """Read the newest of several errors."""
    every = errors if isinstance(errors, list) else []
    told = [error for error in every if isinstance(error, dict)]
    return read_fault(told[-1]) if told else None


def read_tokens(usage: object) -> Tokens:
    """Read counts; what came from the cache is not among the tokens of the prompt here."""
    if not isinstance(usage, dict):
        return Tokens()
    keys = ("prompt_tokens", "completion_tokens", "cached_input_tokens", "reasoning_tokens")
    prompt, made, cached, reasoning = (whole_number(usage.get(key)) for key in keys)
    return Tokens(None if prompt is None else prompt + (cached or 0), made, cached, reasoning)


def read_score(rewards: object) -> Score:
    """Add up the weighted scores; null is no score, not zero."""
    parts: list[float] = []
    unscored: list[str] = []
    for name, told in rewards.items() if isinstance(rewards, dict) else ():
        # Older files have plain numbers.
        reward = told if isinstance(told, dict) else {"score": told}
        value = _product(reward.get("score"), reward.get("weight", 1.0))
        if value is None:
            unscored.append(str(name))
        else:
            parts.append(value)
    return Score(sum(parts) if parts else None, unscored)


def _product(score: object, weight: object) -> float | None:
    pair = (first_number(score), first_number(weight))
    try:
        value = math.prod(float(number) for number in pair if number is not None)
    except OverflowError:
        return None
    return value if None not in pair and math.isfinite(value) else None


def read_fault(error: dict[str, Any]) -> Fault:
    """Read one error."""
    code = whole_number(error.get("status_code"))
    return Fault(text_of(error.get("type")), text_of(error.get("message")), code)
