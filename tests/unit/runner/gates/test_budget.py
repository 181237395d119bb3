from __future__ import annotations

import threading

import pytest

from rollscope.runner.gates import BudgetGate, Gate
from tests.unit.runner.gates.views import FakeTask


def costs(cost: float) -> FakeTask:
    return FakeTask(kwargs={"tokens": cost})


def make(total: float) -> BudgetGate:
    return BudgetGate(total, lambda task: float(task.kwargs["tokens"]))


def test_tasks_are_admitted_while_their_costs_fit() -> None:
    gate = make(100)
    gate.acquire(costs(60))
    assert gate.available() is None
    assert gate.admits(costs(40))
    assert not gate.admits(costs(41))
    gate.acquire(costs(40))
    assert gate.available() == 0
    assert gate.numbers() == {"total": 100, "spent": 100}


def test_an_over_sized_task_runs_alone() -> None:
    gate = make(100)
    small = gate.acquire(costs(1))
    assert not gate.admits(costs(500))
    small.release()
    assert gate.admits(costs(500))
    huge = gate.acquire(costs(500))
    assert gate.available() == 0
    assert not gate.admits(costs(1))
    huge.release()
    assert gate.admits(costs(1))


def test_tasks_that_cost_nothing_do_not_keep_an_over_sized_one_waiting() -> None:
    gate = make(10)
    gate.acquire(costs(0))
    assert gate.admits(costs(11))


def test_release_refunds_once_and_wakes() -> None:
    gate: Gate = make(10)
    woken: list[None] = []
    gate.subscribe(lambda: woken.append(None))
    first, second = gate.acquire(costs(5)), gate.acquire(costs(5))
    first.release()
    first.release()
    assert len(woken) == 1
    assert gate.available() is None
    second.release()


def test_fractions_leave_nothing_behind() -> None:
    gate = make(1)
    permits = [gate.acquire(costs(0.1)) for _ in range(10)]
    for permit in permits:
        permit.release()
    assert gate.numbers()["spent"] == 0


@pytest.mark.parametrize("cost", [-1, float("nan")])
def test_a_senseless_cost_is_refused_and_charges_nothing(cost: float) -> None:
    gate = make(10)
    with pytest.raises(ValueError, match="below zero"):
        gate.acquire(costs(cost))
    assert gate.numbers()["spent"] == 0


def test_threads_leave_nothing_spent() -> None:
    gate = make(1_000)

    def hammer() -> None:
        for _ in range(1_000):
            gate.acquire(costs(3)).release()

    threads = [threading.Thread(target=hammer) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gate.numbers()["spent"] == 0
    assert gate.admits(costs(5_000))
