"""How much memory a payload keeps from being freed while it waits, about."""

import sys
from typing import Any, Final

__all__ = ["held_bytes"]

_CHUNK: Final = 256
_NUMBERS: Final = frozenset({int, float, bool, type(None)})
_NUMBER_BYTES: Final = 24
_OTHER_BYTES: Final = 64


def held_bytes(value: Any, limit: int) -> int:  # noqa: ANN401  (any payload goes)
    """Say how many bytes a value takes, with what it holds; or some number above the limit.

    What it holds twice counts twice, so one that holds itself ends at the limit too.
    """
    total = 0
    left = [value]
    while left and total <= limit:
        one = left.pop()
        total += _own_bytes(one)
        kind = type(one)
        if issubclass(kind, (list, tuple)):
            base = list if issubclass(kind, list) else tuple
            for at in range(0, base.__len__(one), _CHUNK):
                chunk = base.__getitem__(one, slice(at, at + _CHUNK))
                if _NUMBERS.issuperset(map(type, chunk)):  # tokens: each alone would take long
                    total += _NUMBER_BYTES * len(chunk)
                else:
                    left += chunk
        elif issubclass(kind, dict):
            # Copies, each in one call: another thread may change it just now.
            left += list(dict.keys(one))
            left += list(dict.values(one))
    return total


def _own_bytes(value: Any) -> int:  # noqa: ANN401
    try:
        return sys.getsizeof(value)
    except Exception:  # an object may say this of itself, and fail at it
        return _OTHER_BYTES
