"""Calls of metrics, grouped by how they were written: a thousand at a time, and mostly in C.

Nothing in here runs the code of a value or a label. A tensor is not asked for its value, since that
may wait for a GPU; a label that is neither text nor a whole number is made text before it is used.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Final

from rollscope.instrument.calls import CALL, LABELS, NAME
from rollscope.instrument.guard import tell_once
from rollscope.instrument.sanitise import clean_text, name_type, plain_number
from rollscope.instrument.serieslist import TEXT_BYTES, CallKey, pack_labels

__all__ = ["are_sound", "group_calls", "read_numbers"]

_TEXT: Final = frozenset({str})
_TEXT_OR_WHOLE: Final = frozenset({str, int})
_NUMBERS: Final = frozenset({int, float})
_PLAIN_CHARACTERS: Final = 1_000_000
"""Of all labels in a group of calls; with more than that each is cut before it is copied."""


def group_calls(calls: list[Any]) -> dict[CallKey, list[Any]]:
    """Give the values of calls by how they were written.

    Args:
        calls: `CALL` entries each; names and labels that are not what they should be are replaced.
    """
    if _are_plain(calls):
        with suppress(UnicodeError, OverflowError):  # half of a character; more than 64 bits
            return _group_plain(calls)
    _make_plain(calls)
    return _group_plain(calls)


def _group_plain(calls: list[Any]) -> dict[CallKey, list[Any]]:
    groups: defaultdict[CallKey, list[Any]] = defaultdict(list)
    entries = iter(calls)
    for code, name, value, labels in zip(entries, entries, entries, entries, strict=True):
        groups[code, name, pack_labels(labels)].append(value)
    return groups


def are_sound(values: list[Any]) -> bool:
    """Say whether values are plain numbers that any metric takes."""
    if not set(map(type, values)) <= _NUMBERS or min(values) < 0:
        return False
    try:
        return math.isfinite(sum(values))
    except OverflowError:  # whole numbers beyond any float
        return False


def _are_plain(calls: list[Any]) -> bool:
    """Say whether names are text, and labels text and whole numbers, not too long to be copied."""
    values = list(chain.from_iterable(map(dict.values, calls[LABELS::CALL])))
    kinds = set(map(type, values))
    if kinds <= _TEXT:
        size = sum(map(len, values))
    elif kinds <= _TEXT_OR_WHOLE:
        size = sum(len(value) for value in values if type(value) is str)
    else:
        return False
    return size <= _PLAIN_CHARACTERS and set(map(type, calls[NAME::CALL])) == _TEXT


def _make_plain(calls: list[Any]) -> None:
    """Make text of names and labels, whatever they are."""
    calls[NAME::CALL] = map(_name_text, calls[NAME::CALL])
    calls[LABELS::CALL] = [
        {clean_text(key, TEXT_BYTES): clean_text(value, TEXT_BYTES) for key, value in each.items()}
        for each in calls[LABELS::CALL]
    ]


def read_numbers(names: Sequence[object], values: Sequence[Any]) -> list[float | None]:
    """Make numbers of any sort plain; None where there is none."""
    if set(map(type, values)) <= _NUMBERS:
        with suppress(OverflowError):
            return list(map(float, values))
    found: list[float | None] = []
    for name, value in zip(names, values, strict=True):
        number = plain_number(value)
        if number is None:
            _tell_no_number(name, value)
        found.append(None if number is None else _as_float(number))
    return found


def _name_text(name: object) -> str:
    """Give a name as plain text; none if it is no text at all."""
    return clean_text(name, 4096) if issubclass(type(name), str) else ""


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _tell_no_number(name: object, value: object) -> None:
    shown = clean_text(name, 100)
    tell_once(
        f"no-number:{shown}",
        "Rollscope cannot add the value of type %s.%s to the metric %r; give it a number, "
        "such as tensor.item()",
        *name_type(type(value)),
        shown,
    )
