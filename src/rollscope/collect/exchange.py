"""Reading two clocks against each other from the round trips of requests.

A sender says when, by its monotonic clock, it sends this request, and how the last exchange went:
sent at M0, received at T1 and answered at T2 by the receiver's wall clock, answer there at M3. How
long each way took is not known, only both together, which bounds the error.
"""

import re
from typing import Final, NamedTuple

from rollscope.errors import FramesRefused
from rollscope.model.batch import ClockReading
from rollscope.model.clockline import ClockLine

__all__ = ["UNKNOWN_ERROR_NS", "Exchange", "bound_of", "parse_exchange", "reading_of"]

UNKNOWN_ERROR_NS: Final = -1
_NUMBERS: Final = re.compile(r"[0-9]{1,19}(?: [0-9]{1,19}){0,4}")
_COUNTS: Final = (1, 5)
_LARGEST: Final = 2**62
"""The year 2116; sums and differences of such times still fit into 64 bits."""


class Exchange(NamedTuple):
    """What a request says of its sender's clock; the last exchange is all 0 where there is none."""

    now_ns: int
    sent_ns: int = 0
    received_ns: int = 0
    answered_ns: int = 0
    back_ns: int = 0


def parse_exchange(text: str) -> Exchange:
    """Read the header that carries it.

    Raises:
        FramesRefused: It is no list of one or five numbers.
    """
    numbers = [int(part) for part in text.split()] if _NUMBERS.fullmatch(text) else []
    if len(numbers) not in _COUNTS or max(numbers) > _LARGEST:
        raise FramesRefused("Rollscope-Clock has to be one or five times in whole nanoseconds")
    return Exchange(*numbers)


def reading_of(exchange: Exchange, process: bytes, line: ClockLine) -> ClockReading | None:
    """Make a reading of a finished exchange; None if there is none, or it cannot have been."""
    there_ns = exchange.answered_ns - exchange.received_ns
    away_ns = exchange.back_ns - exchange.sent_ns
    if not exchange.received_ns or there_ns < 0 or away_ns < there_ns:
        return None
    out_ns = exchange.received_ns - line.wall_at(exchange.sent_ns)
    back_ns = exchange.answered_ns - line.wall_at(exchange.back_ns)
    middle_ns = (exchange.sent_ns + exchange.back_ns) // 2
    return ClockReading(process, middle_ns, (out_ns + back_ns) // 2, (away_ns - there_ns + 1) // 2)


def bound_of(exchange: Exchange, process: bytes, line: ClockLine, received_ns: int) -> ClockReading:
    """Make what one request alone tells: it came after it was sent, so the offset is no greater."""
    offset_ns = received_ns - line.wall_at(exchange.now_ns)
    return ClockReading(process, exchange.now_ns, offset_ns, UNKNOWN_ERROR_NS)
