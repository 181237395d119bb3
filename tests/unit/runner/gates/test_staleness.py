from __future__ import annotations

import pytest

from rollscope.runner.compat import StalenessManager
from rollscope.runner.gates import StalenessGate
from rollscope.runner.gates.accounting import RolloutStat
from tests.unit.runner.gates.views import FakeTask

TRAIN, EVAL = FakeTask(tier="train"), FakeTask(tier="eval")


class Weights:
    version = 0

    def get_version(self) -> int:
        return self.version


class Foreign:
    """A manager with the least that one can have, its version counted in `room`."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.stat = RolloutStat()

    def get_capacity(self) -> int:
        return self.room - self.stat.running - self.stat.accepted

    def on_rollout_enqueued(self) -> None:
        self.stat.enqueued += 1

    def on_rollout_submitted(self) -> None:
        self.stat.enqueued -= 1
        self.stat.running += 1

    def on_rollout_accepted(self) -> None:
        self.stat.running -= 1
        self.stat.accepted += 1

    def on_rollout_rejected(self) -> None:
        self.stat.running -= 1
        self.stat.rejected += 1


def test_running_and_accepted_tasks_use_the_window_up() -> None:
    gate = StalenessGate.bounded(1, batch=4)
    gate.take(5)
    assert gate.available() == 3
    gate.finished(TRAIN, accepted=True, rejected=False)
    gate.give(1)
    assert gate.available() == 3
    assert gate.counters is not None
    assert gate.counters.rollout_stat == RolloutStat(accepted=1, running=4)


@pytest.mark.parametrize("rejected", [True, False])
def test_rejected_and_cancelled_tasks_give_their_room_back(rejected: bool) -> None:
    gate = StalenessGate.bounded(1, batch=4)
    gate.take(3)
    gate.finished(TRAIN, accepted=False, rejected=rejected)
    gate.give(1)
    assert gate.available() == 6
    assert gate.counters is not None
    assert gate.counters.rollout_stat == RolloutStat(rejected=int(rejected), running=2)


def test_finished_and_repeated_tasks_may_be_given_back_together() -> None:
    gate = StalenessGate.bounded(1, batch=4)
    gate.take(4)
    gate.finished(TRAIN, accepted=True, rejected=False)
    gate.finished(TRAIN, accepted=True, rejected=False)
    gate.give(3)
    assert gate.counters is not None
    assert gate.counters.rollout_stat == RolloutStat(accepted=2, running=1)
    assert gate.available() == 5


def test_concurrency_bounds_it_too_where_given() -> None:
    gate = StalenessGate.bounded(1, batch=4, concurrency=2)
    gate.take(3)
    assert gate.available() == -1


def test_the_eval_tier_needs_no_permit_and_is_not_counted() -> None:
    gate = StalenessGate.bounded(0, batch=4)
    assert gate.applies_to("train")
    assert not gate.applies_to("eval")
    gate.finished(EVAL, accepted=True, rejected=False)
    assert gate.available() == 4


def test_a_gate_that_begins_at_a_version_opens_as_a_new_one_does() -> None:
    gate = StalenessGate.bounded(1, batch=4, version=30)
    assert gate.available() == 8
    gate.consumed(0)
    assert gate.available() == 8
    gate.set_version(31)
    assert gate.accounting == "events"
    assert gate.available() == 8


def test_reports_reach_the_counters() -> None:
    gate = StalenessGate.bounded(0, batch=4, dynamic=True)
    gate.take(4)
    for accepted in (True, True, False, False):
        gate.finished(TRAIN, accepted=accepted, rejected=not accepted)
    gate.give(4)
    assert gate.available() == 0
    gate.discarded(1)
    assert gate.available() == 1
    gate.consumed(1)
    gate.filtered(2)
    assert gate.available() == 1
    gate.set_version(1)
    assert gate.available() == 4
    assert gate.numbers()["version"] == 1


def test_a_version_alone_wakes_who_subscribed() -> None:
    gate = StalenessGate.bounded(0)
    gate.take(1)
    gate.finished(TRAIN, accepted=True, rejected=False)
    gate.give(1)
    seen: list[int] = []
    gate.subscribe(lambda: seen.append(gate.available()))
    gate.set_version(1)
    assert seen == [1]


def test_only_a_version_that_nobody_announces_is_asked_for_again() -> None:
    assert StalenessGate.bounded(0).recheck_s is None
    assert StalenessGate.bounded(0, version_source=Weights()).recheck_s == 0.2
    assert StalenessGate(Foreign(1)).recheck_s == 0.2


def test_a_gate_and_its_manager_are_one_set_of_counters() -> None:
    manager = StalenessManager(Weights(), 8, 4, 1)
    gate = StalenessGate(manager)
    woken: list[None] = []
    gate.subscribe(lambda: woken.append(None))
    for _ in range(3):
        manager.on_rollout_enqueued()
    gate.take(2)
    assert manager.get_stats() == RolloutStat(enqueued=1, running=2)
    assert gate.available() == manager.get_capacity() == 6
    gate.finished(TRAIN, accepted=True, rejected=False)
    gate.give(2)  # one has ended, the other waits for its next attempt
    assert manager.get_stats() == RolloutStat(accepted=1, enqueued=2)
    manager.set_version(1)
    assert woken == [None]


def test_a_foreign_manager_counts_through_its_own_calls() -> None:
    manager = Foreign(room=8)
    gate = StalenessGate(manager)
    for _ in range(4):
        manager.on_rollout_enqueued()
    gate.take(4)
    assert gate.available() == 4
    gate.finished(TRAIN, accepted=True, rejected=False)
    gate.finished(TRAIN, accepted=False, rejected=True)
    gate.finished(TRAIN, accepted=False, rejected=False)
    gate.give(4)
    assert manager.stat == RolloutStat(accepted=1, enqueued=1, rejected=3)
    assert gate.numbers() == {"available": 7}


def test_a_foreign_manager_keeps_its_way_of_counting_and_wakes() -> None:
    gate = StalenessGate(Foreign(room=8))
    woken: list[None] = []
    gate.subscribe(lambda: woken.append(None))
    gate.consumed(4)
    gate.filtered(4)
    gate.discarded(4)
    gate.set_version(3)
    assert gate.available() == 8
    assert gate.accounting == "versions"
    assert gate.counters is None
    assert len(woken) == 4
