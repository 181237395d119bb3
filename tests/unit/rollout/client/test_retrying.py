from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from rollscope.rollout.client.retrying import RetryRule, read_retry_after

NOW = datetime(2025, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        ("0.5", 0.5),
        ("Wed, 01 Jan 2025 12:00:30 GMT", 30.0),
        ("Wed, 01 Jan 2025 12:00:30 -0000", 30.0),
        ("Wed, 01 Jan 2025 11:00:00 GMT", 0.0),
        ("soon", None),
        ("-3", None),
        ("nan", None),
        ("inf", None),
        ("", None),
    ],
)
def test_a_wait_is_read_as_seconds_or_as_a_date(text: str | None, seconds: float | None) -> None:
    assert read_retry_after(text, NOW) == seconds


def test_a_date_is_compared_with_the_present_by_default() -> None:
    assert read_retry_after("Wed, 01 Jan 2020 12:00:00 GMT") == 0.0


def test_waits_are_spread_from_nothing_to_a_limit_that_doubles_up_to_a_cap() -> None:
    rule, rng = RetryRule(base_s=1.0, cap_s=5.0), random.Random(1)
    for tries, limit in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 5.0), (5000, 5.0)]:
        waits = [rule.wait_s(tries, None, rng) for _ in range(2000)]
        assert min(waits) < 0.05 * limit
        assert 0.95 * limit < max(waits) <= limit


def test_what_the_server_asks_for_is_waited_at_least_but_only_up_to_its_cap() -> None:
    rule, rng = RetryRule(base_s=1.0, retry_after_cap_s=60.0), random.Random(1)
    assert all(10.0 <= rule.wait_s(1, 10.0, rng) <= 11.0 for _ in range(100))
    assert all(60.0 <= rule.wait_s(1, 1e9, rng) <= 61.0 for _ in range(100))
