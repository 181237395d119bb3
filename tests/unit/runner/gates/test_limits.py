from __future__ import annotations

import threading

import pytest

from rollscope.runner.gates import ConcurrencyGate, CountingGate, ExternalGate, Gate
from tests.unit.runner.gates.views import FakeTask


def test_a_concurrency_gate_counts_what_runs() -> None:
    gate = ConcurrencyGate(3)
    gate.take(2)
    assert gate.available() == 1
    gate.give(1)
    assert gate.available() == 2
    assert gate.numbers() == {"limit": 3, "held": 1}


def test_no_limit_is_none() -> None:
    gate = ConcurrencyGate(None)
    gate.take(1_000)
    assert gate.available() is None


def test_a_lowered_limit_leaves_a_debt_and_takes_nothing_back() -> None:
    gate = ConcurrencyGate(8)
    gate.take(8)
    gate.set_limit(5)
    assert gate.limit == 5
    assert gate.available() == -3
    gate.give(4)
    assert gate.available() == 1


@pytest.mark.parametrize("make", [lambda: ConcurrencyGate(-1), lambda: ExternalGate().set(-1)])
def test_a_limit_below_zero_is_refused(make: type) -> None:
    with pytest.raises(ValueError, match="below zero"):
        make()


def test_an_external_gate_does_what_it_was_told_last() -> None:
    gate = ExternalGate()
    assert gate.available() is None
    gate.take(2)
    gate.set(5)
    assert gate.available() == 3
    gate.close()
    assert gate.available() == -2
    gate.open()
    assert gate.available() is None


def test_every_move_of_a_limit_wakes() -> None:
    woken: list[str] = []
    fixed, external = ConcurrencyGate(1), ExternalGate()
    fixed.subscribe(lambda: woken.append("fixed"))
    external.subscribe(lambda: woken.append("external"))
    fixed.set_limit(2)
    external.set(1)
    external.close()
    external.open()
    assert woken == ["fixed", "external", "external", "external"]


def test_wake_is_called_without_the_lock_held() -> None:
    gate = ConcurrencyGate(1)
    seen: list[int | None] = []

    def look_from_another_thread() -> None:
        other = threading.Thread(target=lambda: seen.append(gate.available()), daemon=True)
        other.start()
        other.join(timeout=10)

    gate.subscribe(look_from_another_thread)
    gate.set_limit(4)
    assert seen == [4]


def test_a_permit_can_be_released_twice_and_counts_once() -> None:
    gate: Gate = ConcurrencyGate(2)
    woken: list[None] = []
    gate.subscribe(lambda: woken.append(None))
    permit = gate.acquire(FakeTask())
    assert gate.available() == 1
    permit.release()
    permit.release()
    assert gate.available() == 2
    assert len(woken) == 1


def test_giving_back_wakes_the_others_that_share_the_gate() -> None:
    gate = ConcurrencyGate(2)
    woken: list[str] = []
    gate.subscribe(lambda: woken.append("a"))
    gate.take(2)
    gate.give(1)
    assert woken == []  # the only one who could want it is the giver
    gate.subscribe(lambda: woken.append("b"))
    gate.give(1)
    assert woken == ["a", "b"]


def test_threads_leave_exact_counts() -> None:
    gate = ConcurrencyGate(100)
    permits = [gate.acquire(FakeTask()) for _ in range(20)]

    def hammer() -> None:
        for _ in range(2_000):
            gate.take(3)
            gate.give(3)
        for permit in permits:
            permit.release()

    threads = [threading.Thread(target=hammer) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gate.available() == 100


def test_a_plain_gate_applies_to_every_tier_and_needs_no_second_look() -> None:
    gate: CountingGate = ConcurrencyGate(1)
    assert gate.applies_to("train")
    assert gate.applies_to("eval")
    assert gate.recheck_s is None
