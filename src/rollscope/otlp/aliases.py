"""What attributes mean, under whichever of their names they came.

Attributes that are known under an alias are kept under the canonical name, all others as they are.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from rollscope.otlp.forms import Attrs
from rollscope.otlp.othernames import CONTENT_PREFIXES, DETAILS, PLACES
from rollscope.otlp.pairs import PAIRED, read_pairs

__all__ = [
    "CONTENT_PREFIXES",
    "Meaning",
    "first_number",
    "read_aliases",
    "read_places",
    "whole_number",
]

_SCORE: Final = ".evaluation.score"
_NUMBERS: Final = frozenset(
    {"attempt", "tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning", "version"}
)
_SECONDS: Final = frozenset(name for name in DETAILS if name.endswith("_s")) | {"reward"}


class Meaning(NamedTuple):
    """What the attributes of a span say."""

    place: Attrs
    """By the names of `PLACES`, and of `pairs.LOOP`."""
    details: Attrs
    """All that is kept as attributes."""
    content: Attrs
    """What was said to and by a model."""
    session_alias: str
    """The name under which the session was given; empty if it was not."""
    is_told: bool = False
    """Whether another Rollscope wrote them, so that nothing has to be guessed."""


def _fit_finish(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, list):
        value = value[0] if value else None
    return value.get("type") if isinstance(value, dict) else value


def _fit_whole(value: Any) -> Any:  # noqa: ANN401
    number = whole_number(value)
    return value if number is None else number


def _fit_number(value: Any) -> Any:  # noqa: ANN401
    number = first_number(value)
    return value if number is None else number


def _fit_for(name: str) -> Callable[[Any], Any] | None:
    """Give how the values of a detail are read; None if as they are."""
    if name == "finish":
        return _fit_finish
    if name in _NUMBERS:
        return _fit_whole
    return _fit_number if name in _SECONDS else None


class _Alias(NamedTuple):
    name: str
    rank: int
    is_place: bool
    fit: Callable[[Any], Any] | None


_ALIASES: Final = {
    alias: _Alias(name, rank, table is PLACES, None if table is PLACES else _fit_for(name))
    for table in (PLACES, DETAILS)
    for name, aliases in table.items()
    for rank, alias in enumerate(aliases)
}
_PLACE_ALIASES: Final = {key: alias for key, alias in _ALIASES.items() if alias.is_place}


def read_aliases(attrs: Attrs) -> Meaning:
    """Read what attributes mean."""
    place: Attrs = {}
    details: Attrs = {}
    content: Attrs = {}
    ranks: dict[str, int] = {}
    for key, value in attrs.items():
        alias = _ALIASES.get(key)
        if alias is None:
            if key.startswith(CONTENT_PREFIXES):
                content[key] = value
            else:
                details[key] = value
                if key.endswith(_SCORE) and key.startswith("evaluations."):
                    ranks.setdefault("reward", len(DETAILS["reward"]))
                    details.setdefault("reward", _fit_number(value))
            continue
        name, rank, is_place, fit = alias
        if ranks.get(name, rank) < rank:
            continue
        ranks[name] = rank
        if is_place:
            place[name] = value
        else:
            details[name] = value if fit is None else fit(value)
    return Meaning(place, details, content, _session_alias(attrs, place, details, ranks))


def read_places(attrs: Attrs) -> Meaning:
    """Read no more than where a span belongs, which is the same as `read_aliases` says."""
    place: Attrs = {}
    ranks: dict[str, int] = {}
    for key in _PLACE_ALIASES.keys() & attrs.keys():
        name, rank, _, _ = _PLACE_ALIASES[key]
        if ranks.get(name, rank) >= rank:
            ranks[name] = rank
            place[name] = attrs[key]
    details: Attrs = {}
    return Meaning(place, details, {}, _session_alias(attrs, place, details, ranks))


def _session_alias(attrs: Attrs, place: Attrs, details: Attrs, ranks: dict[str, int]) -> str:
    """Read what only pairs of names say; give the name under which the session was given."""
    alias = PLACES["session"][ranks["session"]] if "session" in ranks else ""
    if PAIRED.isdisjoint(attrs):
        return alias
    return read_pairs(attrs, place, details, alias)


def whole_number(value: object) -> int | None:
    """Read a whole number of 64 bits in any spelling; None if it is none."""
    if value is None:
        return None
    number = value if type(value) is int else first_number(value)
    if number is None or number != number // 1:
        return None
    return int(number) if -(2**63) <= number < 2**63 else None


def first_number(value: object) -> int | float | None:
    """Read a number in any spelling; None if it is none, or has no size."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = (
                int(value) if value.lstrip("-").isdecimal() and len(value) < 24 else float(value)
            )
        except ValueError:
            return None
    if isinstance(value, int):
        return value
    is_finite = isinstance(value, float) and abs(value) < float("inf")
    return value if isinstance(value, float) and is_finite else None
