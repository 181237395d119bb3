"""How many tokens an answer may have: one rule for every client, on integers alone."""

from typing import Any, Final, NamedTuple, TypeAlias

__all__ = ["DEFAULT_TOKENS", "Setting", "TokenLimit", "given", "token_limit"]

Setting: TypeAlias = Any
"""An argument from outside, which may be a marker of the SDK for "not set" and is checked."""

DEFAULT_TOKENS: Final = 512
"""What an answer may have if nobody set any limit."""

_NOT_GIVEN: Final = frozenset({"NotGiven", "Omit"})
"""Types whose values mean "not set" in the openai SDK, known by name so that it is not needed."""


class TokenLimit(NamedTuple):
    """What `token_limit` found."""

    tokens: int
    is_default: bool
    """Nobody set a limit; somebody ought to be told."""


def given(value: Setting) -> Setting:
    """Give a value, or None if it is a marker that stands for "not set"."""
    return None if type(value).__name__ in _NOT_GIVEN else value


def token_limit(
    prompt_tokens: int,
    *,
    max_completion_tokens: Setting = None,
    max_tokens: Setting = None,
    max_output_tokens: Setting = None,
    max_total_tokens: Setting = None,
    engine_max_tokens: Setting = None,
) -> TokenLimit:
    """Say how many tokens an answer may have.

    None and the SDK's markers mean "not set".

    Args:
        prompt_tokens: How many tokens the prompt has.
        max_completion_tokens: Limit on the answer.
        max_tokens: Another name for it.
        max_output_tokens: Its name in the responses API.
        max_total_tokens: Limit on prompt and answer together, of this call.
        engine_max_tokens: The same, of the engine.

    Raises:
        TypeError: A limit is not an integer.
        ValueError: A limit is not above 0, two of its names are used, or the prompt leaves no room.
    """
    wanted = {
        "max_tokens": _checked("max_tokens", max_tokens),
        "max_completion_tokens": _checked("max_completion_tokens", max_completion_tokens),
        "max_output_tokens": _checked("max_output_tokens", max_output_tokens),
    }
    total = _checked("max_total_tokens", max_total_tokens)
    engine_total = _checked("engine_max_tokens", engine_max_tokens)
    used = [name for name, limit in wanted.items() if limit is not None]
    if len(used) > 1:
        raise ValueError(f"{' and '.join(used)} mean the same; set one of them")
    limits = [limit for limit in wanted.values() if limit is not None]
    totals = [limit for limit in (total, engine_total) if limit is not None]
    if totals:
        room = min(totals) - prompt_tokens
        if room <= 0:
            raise ValueError(
                f"len of prompt tokens {prompt_tokens} exceeds max_total_tokens {min(totals)}"
            )
        limits.append(room)
    return TokenLimit(min(limits), False) if limits else TokenLimit(DEFAULT_TOKENS, True)


def _checked(name: str, value: Setting) -> int | None:
    value = given(value)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value <= 0:
        raise ValueError(f"{name} must be above 0, not {value}")
    return value
