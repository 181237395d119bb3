"""Values as foreign files spell them: numbers, times, ids, JSON that is not quite JSON."""

import hashlib
import json
from typing import Any, Final

import msgspec

from rollscope.model.undecodable import UNDECODABLE
from rollscope.otlp.aliases import first_number, whole_number

__all__ = [
    "WALL_NS",
    "decode_object",
    "derived_id",
    "leaf_id",
    "micros_to_ns",
    "millis_to_ns",
    "seconds_to_ns",
    "stable_bytes",
    "stable_id",
    "stable_number",
]

WALL_NS: Final = 10**18
"""Below a billion seconds it is no wall clock."""
_BILLION: Final = 1_000_000_000
_EXACT_MICROS: Final = 2.0**40
_WALL_MICROS: Final = 2.0**50
"""In 2005; up to 2041, floats lie a quarter of a microsecond apart."""
_QUARTERS: Final = (0, 200, 500, 800)
"""What a writer meant by each of them: the shortest text has one digit."""
_MOST_S: Final = 2**62 // _BILLION
"""In the year 2116."""
_MASK: Final = 2**64 - 1
_FIRST_S: Final = 2.0**30
"""In 2004; the next is in 2038."""
_LAST_S: Final = 2.0**31
_decode = msgspec.json.Decoder().decode


def decode_object(raw: bytes) -> tuple[dict[str, Any], bool] | None:
    """Read one JSON object; numbers without a size become null.

    Returns:
        The object, and whether it held such a number; None if it is no object.
    """
    try:
        value = _decode(raw)
    except UNDECODABLE:
        return _decode_odd(raw)
    return (value, False) if isinstance(value, dict) else None


def _decode_odd(raw: bytes) -> tuple[dict[str, Any], bool] | None:
    odd: list[str] = []
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=odd.append)
    except (ValueError, RecursionError):
        return None
    return (value, bool(odd)) if isinstance(value, dict) else None


def seconds_to_ns(value: object) -> int | None:
    """Turn decimal seconds into nanoseconds by their text, as the writer meant them."""
    if type(value) is float:
        if _FIRST_S < value < _LAST_S:
            # Such floats lie 2**-22 s apart, so that their shortest text has six digits behind the
            # point, or the seven that come closest. To make that text takes thrice as long.
            whole = int(value)
            part = value - whole
            micros = whole * 1_000_000 + round(part * 1e6)
            if micros / 1e6 == value:
                return micros * 1000
            return whole * _BILLION + round(part * 1e7) * 100
        seconds, _, digits = repr(value).partition(".")
        is_plain = len(digits) <= 9 and digits.isdecimal() and seconds.isdecimal()
        if is_plain and value < _MOST_S:
            return int(seconds) * _BILLION + int(digits.ljust(9, "0"))
    elif type(value) is int:
        return value * _BILLION if abs(value) < _MOST_S else None
    return _odd_to_ns(value, 9)


def micros_to_ns(value: object) -> int | None:
    """Turn decimal microseconds into nanoseconds."""
    if type(value) is int:
        return value * 1000 if abs(value) < 2**53 else None
    if type(value) is float:
        # The product is off by less than a quarter, so that digits up to the third come out right.
        if -_EXACT_MICROS < value < _EXACT_MICROS:
            return round(value * 1000)
        if _WALL_MICROS <= value < 2 * _WALL_MICROS:
            whole = int(value)
            return whole * 1000 + _QUARTERS[int((value - whole) * 4)]
        micros, _, digits = repr(value).partition(".")
        if len(digits) <= 3 and digits.isdecimal() and micros.isdecimal():
            return int(micros) * 1000 + int(digits.ljust(3, "0"))
    return _odd_to_ns(value, 3)


def millis_to_ns(value: object) -> int | None:
    """Turn decimal milliseconds into nanoseconds."""
    return _odd_to_ns(value, 6)


def _odd_to_ns(value: object, digits: int) -> int | None:
    from decimal import Decimal, InvalidOperation

    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(value if isinstance(value, str) else repr(value))
    except InvalidOperation:
        return None
    if not number.is_finite() or abs(number) >= 2**62 // 10**digits:
        return None
    return int(number.scaleb(digits).to_integral_value())


def stable_bytes(size: int, *parts: object) -> bytes:
    """Hash the parts of a foreign key: the same parts give the same bytes, always."""
    digest = hashlib.blake2b(digest_size=size)
    for part in parts:
        text = str(part).encode("utf-8", "replace")
        digest.update(b"%d:" % len(text) + text)
    return digest.digest()


def stable_id(*parts: object) -> int:
    """Make the id of a span from a foreign key."""
    return (int.from_bytes(stable_bytes(8, *parts)) >> 1) | 1


def derived_id(span_id: int, number: int) -> int:
    """Make the id of the n-th thing below a span, without hashing text again."""
    mixed = (span_id + (number + 1) * 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((mixed ^ (mixed >> 31)) >> 1) | 1


def leaf_id(span_id: int, number: int) -> int:
    """Make the id of the n-th thing below a span that has nothing below it: quicker still."""
    return ((span_id + (number + 3) * 0x9E3779B97F4A7C15) & _MASK) >> 1 | 1


def stable_number(value: object) -> int | None:
    """Give a number for an id in any spelling; text that is no number gets a negative one."""
    if type(value) is int and -(2**63) <= value < 2**63:
        return value
    if value is None or isinstance(value, bool | list | dict):
        return None
    number = whole_number(value) if first_number(value) is not None else None
    return number if number is not None else -stable_id(value)
