from __future__ import annotations

import pytest

from rollscope.collect.exchange import Exchange, bound_of, parse_exchange, reading_of
from rollscope.errors import FramesRefused
from rollscope.model.batch import ClockReading
from rollscope.model.clockline import ClockLine
from tests.builders import PROCESS

LINE = ClockLine(1_000, 500_000)
"""Wall time is monotonic time and 499,000 ns, by the sender's own account."""


def test_a_round_trip_gives_the_offset_and_how_wrong_it_may_be() -> None:
    # The receiver's clock is 70,000 ns ahead; 40 ns out, 100 there, 60 back.
    exchange = Exchange(9_000, 2_000, 571_040, 571_140, 2_200)
    assert reading_of(exchange, PROCESS, LINE) == ClockReading(PROCESS, 2_100, 69_990, 50)


def test_the_true_offset_lies_within_the_error_however_the_way_is_split() -> None:
    for out in range(0, 101, 10):
        received = 2_000 + 499_000 + 70_000 + out
        exchange = Exchange(9_000, 2_000, received, received + 30, 2_130)
        reading = reading_of(exchange, PROCESS, LINE)
        assert reading is not None
        assert abs(reading.offset_ns - 70_000) <= reading.error_ns == 50


@pytest.mark.parametrize(
    "exchange",
    [
        Exchange(9_000),
        Exchange(9_000, 2_000, 571_000, 570_000, 2_200),
        Exchange(9_000, 2_000, 571_000, 571_500, 2_200),
        Exchange(9_000, 2_200, 571_000, 571_000, 2_000),
    ],
)
def test_what_cannot_have_been_gives_no_reading(exchange: Exchange) -> None:
    assert reading_of(exchange, PROCESS, LINE) is None


def test_one_request_alone_bounds_the_offset_from_above() -> None:
    bound = bound_of(Exchange(2_000), PROCESS, LINE, 571_040)
    assert bound == ClockReading(PROCESS, 2_000, 70_040, -1)


def test_the_header_is_one_time_or_five() -> None:
    assert parse_exchange("7") == Exchange(7)
    assert parse_exchange("7 1 2 3 4") == Exchange(7, 1, 2, 3, 4)


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "1 2", "1 2 3 4 5 6", "1  2 3 4 5", f"{2**62 + 1}"]
)
def test_any_other_header_is_refused(text: str) -> None:
    with pytest.raises(FramesRefused, match="one or five"):
        parse_exchange(text)
