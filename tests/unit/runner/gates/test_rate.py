from __future__ import annotations

import pytest

from rollscope.runner.gates import RateGate
from rollscope.testing import FakeClock
from tests.unit.runner.gates.views import FakeTask


def make(per_s: float, burst: int = 1) -> tuple[RateGate, FakeClock]:
    clock = FakeClock()
    return RateGate(per_s, burst, clock=clock.mono_ns), clock


def test_a_full_bucket_gives_its_burst_and_then_waits() -> None:
    gate, clock = make(per_s=10, burst=3)
    assert gate.available() == 3
    assert gate.next_permit_ns(clock.mono_ns()) is None
    gate.take(3)
    assert gate.available() == 0
    assert gate.next_permit_ns(clock.mono_ns()) == clock.mono_ns() + 100_000_000


def test_tokens_come_back_with_time_and_not_beyond_the_burst() -> None:
    gate, clock = make(per_s=10, burst=3)
    gate.take(3)
    clock.advance(0.25)
    assert gate.available() == 2
    clock.advance(60)
    assert gate.available() == 3


def test_taking_more_than_there_is_leaves_a_debt() -> None:
    gate, clock = make(per_s=1, burst=2)
    gate.take(5)
    assert gate.available() == -3
    assert gate.next_permit_ns(clock.mono_ns()) == clock.mono_ns() + 4_000_000_000


def test_a_finished_task_brings_no_token_back() -> None:
    gate, _ = make(per_s=1)
    gate.acquire(FakeTask()).release()
    assert gate.available() == 0


@pytest.mark.parametrize("per_s", [0.3, 3, 7, 999.999, 1e6 / 3, 123_456_789])
def test_a_token_is_there_at_the_promised_time_and_not_before(per_s: float) -> None:
    now = 5_000
    gate = RateGate(per_s, clock=lambda: now)
    for _ in range(1_000):
        gate.take(1)
        due = gate.next_permit_ns(now)
        assert due is not None
        now = due - 1
        assert gate.available() == 0
        now = due
        assert gate.available() == 1


def test_the_rate_is_kept_over_a_long_time() -> None:
    now = 0
    gate = RateGate(7, clock=lambda: now)
    for _ in range(7 * 3_600):
        gate.take(1)
        now = gate.next_permit_ns(now) or now
    assert abs(now - 3_600 * 10**9) <= 7 * 3_600


@pytest.mark.parametrize(
    ("per_s", "burst", "message"), [(0, 1, "rate"), (-1, 1, "rate"), (1, 0, "burst")]
)
def test_senseless_numbers_are_refused(per_s: float, burst: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RateGate(per_s, burst)


def test_it_says_its_numbers() -> None:
    gate, _ = make(per_s=2, burst=4)
    assert gate.numbers() == {"per_s": 2, "burst": 4, "available": 4}
