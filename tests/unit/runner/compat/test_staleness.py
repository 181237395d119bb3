from __future__ import annotations

import threading
from dataclasses import asdict

import pytest

from rollscope.runner.compat import RolloutStat, StalenessManager


class Weights:
    def __init__(self, version: int = 0) -> None:
        self.version = version
        self.asked = 0

    def get_version(self) -> int:
        self.asked += 1
        return self.version


def make(
    concurrency: int = 8, batch: int = 4, staleness: int = 1, version: int = 0
) -> tuple[StalenessManager, Weights]:
    weights = Weights(version)
    return StalenessManager(weights, concurrency, batch, staleness), weights


def start(manager: StalenessManager, count: int) -> None:
    for _ in range(count):
        manager.on_rollout_enqueued()
        manager.on_rollout_submitted()


def test_its_numbers_stay_readable_as_given() -> None:
    weights = Weights()
    manager = StalenessManager(
        version_provider=weights,
        max_concurrent_rollouts=0,
        consumer_batch_size=0,
        max_staleness=0,
    )
    assert manager.version_provider is weights
    assert manager.max_concurrent_rollouts == 0
    assert manager.consumer_batch_size == 0
    assert manager.max_staleness == 0
    assert manager.get_capacity() == 1
    assert manager.get_pending_limit() == 0


def test_capacity_follows_running_accepted_and_version() -> None:
    manager, weights = make()
    start(manager, 5)
    manager.on_rollout_accepted()
    manager.on_rollout_accepted()
    assert manager.get_capacity() == 3
    weights.version = 2
    assert manager.get_capacity() == 5
    weights.version = 0
    assert manager.get_capacity() == 3
    weights.version = 10**12
    assert manager.get_capacity() == 5
    assert manager.get_pending_limit() == 8


def test_the_version_is_asked_for_every_time() -> None:
    manager, weights = make()
    for _ in range(3):
        manager.get_capacity()
    assert weights.asked == 3


@pytest.mark.parametrize(
    ("call", "change"),
    [
        ("on_rollout_enqueued", {"enqueued": 1}),
        ("on_rollout_submitted", {"enqueued": -1, "running": 1}),
        ("on_rollout_accepted", {"running": -1, "accepted": 1}),
        ("on_rollout_rejected", {"running": -1, "rejected": 1}),
    ],
)
def test_each_call_moves_its_counts_without_guards(call: str, change: dict[str, int]) -> None:
    manager, _ = make()
    getattr(manager, call)()
    assert asdict(manager.get_stats()) == asdict(RolloutStat(**change))


def test_stats_are_a_copy() -> None:
    manager, _ = make()
    stats = manager.get_stats()
    stats.running = 99
    assert manager.get_stats() == RolloutStat()
    with manager.lock:
        manager.rollout_stat.running = 2
    assert manager.get_stats().running == 2


def test_capacity_goes_below_zero() -> None:
    manager, _ = make(concurrency=2, batch=1, staleness=0)
    start(manager, 5)
    assert manager.get_capacity() == -4


def test_a_rejection_gives_its_room_back() -> None:
    manager, _ = make(concurrency=4, batch=4, staleness=0)
    start(manager, 4)
    assert manager.get_capacity() == 0
    manager.on_rollout_rejected()
    assert manager.get_capacity() == 1
    manager.on_rollout_accepted()
    assert manager.get_capacity() == 1


def test_recovery_counts_earlier_versions_as_accepted() -> None:
    manager, weights = make(concurrency=100)
    weights.version = 7
    assert manager.get_capacity() == (1 + 7 + 1) * 4
    manager.on_version_recovered(7)
    start(manager, 3)
    assert manager.get_stats().accepted == 28
    assert manager.get_capacity() == (1 + 1) * 4 - 3


def test_recovery_does_not_stand_in_for_the_provider() -> None:
    manager, weights = make(concurrency=100)
    manager.get_capacity()
    manager.on_version_recovered(7)
    assert manager.get_capacity() == (1 + 0 + 1) * 4 - 28
    weights.version = 7
    assert manager.get_capacity() == 8


def test_recovery_clamps_the_batch() -> None:
    manager, _ = make(batch=0)
    manager.on_version_recovered(5)
    assert manager.get_stats().accepted == 5


def test_endings_wake_who_subscribed() -> None:
    manager, _ = make()
    woken: list[None] = []
    manager.subscribe(lambda: woken.append(None))
    manager.on_rollout_enqueued()
    manager.on_rollout_submitted()
    assert woken == []
    manager.on_rollout_accepted()
    manager.on_rollout_rejected()
    assert len(woken) == 2


def test_the_older_form_is_told_the_version_with_the_question() -> None:
    manager = StalenessManager(None, 100, 4, 1)
    start(manager, 2)
    manager.on_rollout_accepted()
    assert manager.get_capacity(0) == 6
    assert manager.get_capacity(2) == 14
    assert manager.get_capacity() == 14
    assert manager.get_stats().submitted == 2


def test_reports_are_taken_as_an_extension() -> None:
    manager, weights = make(concurrency=100)
    start(manager, 8)
    for _ in range(8):
        manager.on_rollout_accepted()
    manager.consumed(2)
    assert manager.get_capacity() == 0
    weights.version = 1
    assert manager.get_capacity() == 2
    manager.discarded(1)
    assert manager.get_capacity() == 3


def test_threads_leave_exact_counts() -> None:
    manager, _ = make(concurrency=10_000, batch=1_000, staleness=9)
    rounds = 500

    def hammer(ending: str) -> None:
        for _ in range(rounds):
            manager.on_rollout_enqueued()
            manager.on_rollout_submitted()
            manager.get_capacity()
            getattr(manager, ending)()
            manager.get_stats()

    endings = ["on_rollout_accepted", "on_rollout_rejected"] * 3
    threads = [threading.Thread(target=hammer, args=(ending,)) for ending in endings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert manager.get_stats() == RolloutStat(accepted=3 * rounds, rejected=3 * rounds)
    assert manager.get_capacity() == manager.get_capacity() == 10_000 - 3 * rounds
