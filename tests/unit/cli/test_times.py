from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import TYPE_CHECKING

import pytest

from rollscope.cli.arguments import allow_minus
from rollscope.cli.times import TIME_PATTERN, add_times, parse_time
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator

SECOND = 1_000_000_000
NOW = 1_794_744_000 * SECOND  # 2026-11-15T12:00:00Z


@pytest.fixture(autouse=True)
def two_hours_ahead() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC-2")  # POSIX counts westwards
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("text", "before_s"),
    [("-5m", 300), ("-5min", 300), ("-30s", 30), ("-1.5h", 5400), ("-2d", 172_800), ("-0s", 0)],
)
def test_a_minus_counts_back_from_now(text: str, before_s: int) -> None:
    assert parse_time(text, NOW) == NOW - before_s * SECOND


def test_milliseconds_are_kept() -> None:
    assert parse_time("-250ms", NOW) == NOW - SECOND // 4


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("13:30", NOW - 1800 * SECOND),
        ("13:30:05", NOW - 1795 * SECOND),
        ("9:00", NOW - 5 * 3600 * SECOND),
        ("14:30", NOW - (86_400 - 1800) * SECOND),  # has not been yet today
    ],
)
def test_a_time_of_day_is_the_last_one_here(text: str, moment: int) -> None:
    assert parse_time(text, NOW) == moment


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-15T13:30:05",
        "2026-11-15 13:30:05",
        "2026-11-15T11:30:05Z",
        "2026-11-15T12:30:05+01:00",
    ],
)
def test_a_date_is_meant_here_unless_it_says_where(text: str) -> None:
    assert parse_time(text, NOW) == NOW - 1795 * SECOND


def test_a_date_alone_is_its_midnight_and_fractions_are_kept() -> None:
    assert parse_time("2026-11-15", NOW) == NOW - 14 * 3600 * SECOND
    assert parse_time("2026-11-15T14:00:00.250750", NOW) == NOW + 250_750_000


@pytest.mark.parametrize("text", ["", "soon", "25:00", "5m", "-5x", "-m", "10:3", "2026-13-01"])
def test_what_is_no_time_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(CommandError, match="is no time; write 10:30") as refused:
        parse_time(text, NOW)
    assert refused.value.exit_code == 2


def test_a_minus_may_follow_its_option_as_a_word_of_its_own() -> None:
    parser = ArgumentParser()
    add_times(parser)
    allow_minus(parser, TIME_PATTERN)
    args = parser.parse_args(["--since", "-5m", "--until=-1m"])
    assert (args.since, args.until) == ("-5m", "-1m")
