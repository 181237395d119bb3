from __future__ import annotations

import threading

import pytest

from rollscope.runner.gates.accounting import RolloutStat, StalenessCounters


class Weights:
    def __init__(self, version: int = 0) -> None:
        self.version = version

    def get_version(self) -> int:
        return self.version


def make(
    batch: int = 4,
    staleness: int = 1,
    concurrency: int | None = None,
    source: Weights | None = None,
    dynamic: bool | None = None,
) -> StalenessCounters:
    return StalenessCounters(source, concurrency, batch, staleness, dynamic=dynamic)


def accept(counters: StalenessCounters, count: int) -> None:
    counters.count(accepted=count)


def reject(counters: StalenessCounters, count: int) -> None:
    counters.count(rejected=count)


@pytest.mark.parametrize(
    ("concurrency", "batch", "staleness", "version", "running", "accepted", "capacity"),
    [
        (8, 4, 1, 0, 3, 2, 3),
        (8, 4, 1, 2, 3, 2, 5),
        (8, 4, 1, 10**9, 3, 2, 5),  # a huge version leaves concurrency as the limit
        (8, 4, 0, 0, 4, 0, 0),
        (2, 4, 0, 0, 5, 0, -3),
        (100, 4, 0, 0, 0, 9, -5),
        (0, 0, 0, 0, 0, 0, 1),
        (0, 0, 0, 0, 1, 0, 0),
        (0, 0, 3, 2, 0, 0, 1),
        (None, 4, 1, 0, 0, 0, 8),
    ],
)
def test_versions_count_one_full_batch_each(
    concurrency: int | None,
    batch: int,
    staleness: int,
    version: int,
    running: int,
    accepted: int,
    capacity: int,
) -> None:
    counters = make(batch, staleness, concurrency, Weights(version))
    counters.count(running=running, accepted=accepted)
    assert counters.capacity() == capacity
    assert counters.accounting == "versions"


@pytest.mark.parametrize("report", ["consumed", "filtered", "discarded"])
def test_the_first_report_puts_events_in_force(report: str) -> None:
    counters = make(source=Weights(3))
    accept(counters, 14)
    before = counters.capacity()
    getattr(counters, report)(0)
    assert counters.accounting == "events"
    assert counters.capacity() == before == (1 + 3 + 1) * 4 - 14


def test_what_a_batch_took_settles_with_the_next_version_and_not_before() -> None:
    counters = make(dynamic=True)
    accept(counters, 3)
    reject(counters, 5)
    assert counters.capacity() == 0
    counters.consumed(3)
    counters.filtered(1)
    assert counters.capacity() == 0
    counters.set_version(1)
    assert counters.capacity() == 4


def test_a_small_batch_gives_back_only_what_it_took() -> None:
    counters = make(dynamic=False)
    accept(counters, 8)
    counters.consumed(1)
    counters.set_version(1)
    assert counters.capacity() == 1
    assert counters.numbers()["window"] == 8


def test_repeating_a_version_settles_nothing() -> None:
    counters = make(dynamic=False)
    counters.set_version(1)
    accept(counters, 4)
    counters.consumed(4)
    counters.set_version(1)
    assert counters.capacity() == 4
    counters.set_version(2)
    assert counters.capacity() == 8


def test_discarded_items_settle_at_once() -> None:
    counters = make(dynamic=False)
    accept(counters, 8)
    counters.discarded(3)
    assert counters.capacity() == 3


def test_a_skipped_batch_settles_at_once_and_only_once() -> None:
    counters = make(dynamic=False)
    accept(counters, 8)
    counters.consumed(4)
    counters.discarded(4, was_consumed=True)
    assert counters.capacity() == 4
    counters.set_version(1)
    assert counters.capacity() == 4


def test_a_batch_of_rejected_items_alone_settles_at_once() -> None:
    counters = make(dynamic=True)
    reject(counters, 8)
    for _ in range(3):
        counters.filtered(1)
    assert counters.capacity() == 0  # the rest of this batch may yet be accepted
    counters.filtered(1)
    assert counters.capacity() == 4


def test_rejected_items_of_a_batch_with_an_accepted_one_wait_for_the_version() -> None:
    counters = make(dynamic=True)
    accept(counters, 1)
    reject(counters, 7)
    counters.consumed(1)
    counters.filtered(7)
    assert counters.capacity() == 0
    counters.set_version(1)
    assert counters.capacity() == 8


@pytest.mark.parametrize(("accepted", "at_once"), [(0, 2), (1, 0)])
def test_a_whole_batch_is_known_to_be_empty_whatever_its_size(accepted: int, at_once: int) -> None:
    counters = make(dynamic=True)
    accept(counters, 4)
    reject(counters, 4)
    counters.batch_taken(accepted, 2)
    assert counters.capacity() == at_once
    counters.set_version(1)
    assert counters.capacity() == accepted + 2


def test_rejected_items_give_their_room_back_under_fixed_batches() -> None:
    counters = make(dynamic=False)
    reject(counters, 100)
    assert counters.capacity() == 8
    counters.filtered(100)
    counters.set_version(1)
    assert counters.capacity() == 8


def test_the_first_filtered_makes_batches_dynamic() -> None:
    counters = make()
    reject(counters, 3)
    assert counters.capacity() == 8
    counters.filtered(1)
    assert counters.capacity() == 5  # all three had arrived; the one that was taken is pending
    reject(counters, 1)
    assert counters.capacity() == 4
    counters.set_version(1)
    assert counters.capacity() == 5


def test_rejected_items_passed_over_by_earlier_versions_do_not_narrow_the_window() -> None:
    counters = make()
    for version in range(1, 101):
        accept(counters, 4)
        reject(counters, 10)
        counters.consumed(4)
        counters.set_version(version)
    counters.filtered(2)
    counters.set_version(101)
    assert counters.capacity() == 8


def test_more_filtered_than_ever_arrived_does_not_widen_the_window() -> None:
    counters = make(dynamic=True)
    reject(counters, 2)
    counters.consumed(0)
    counters.filtered(50)
    counters.set_version(1)
    assert counters.capacity() == 8


def test_batches_may_change_their_kind() -> None:
    counters = make(dynamic=False)
    reject(counters, 5)
    counters.filtered(2)
    counters.set_dynamic(True)
    assert counters.capacity() == 8 - 3
    counters.filtered(1)
    counters.set_dynamic(False)
    assert counters.capacity() == 8 - 1  # taken while it counted, so its version is waited for
    counters.set_version(1)
    assert counters.capacity() == 8


@pytest.mark.parametrize("dynamic", [None, False, True])
@pytest.mark.parametrize("is_reporting", [False, True])
def test_a_resumed_run_opens_with_the_window_of_a_new_one(
    dynamic: bool | None, is_reporting: bool
) -> None:
    source = Weights()
    counters = make(source=source, dynamic=dynamic)
    if is_reporting:
        counters.count(accepted=3, rejected=2)
        counters.consumed(2)
    counters.count(running=1)
    source.version = 40
    counters.on_version_recovered(40)
    assert counters.capacity() == (1 + 1) * 4 - 1
    assert counters.rollout_stat.accepted == 160


def test_a_change_seen_at_the_provider_counts_as_set_version() -> None:
    source = Weights()
    counters = make(source=source)
    accept(counters, 8)
    counters.consumed(4)
    assert counters.capacity() == 0
    source.version = 1
    assert counters.capacity() == 4
    assert counters.capacity() == 4


def test_a_report_belongs_to_the_version_in_force_when_it_is_made() -> None:
    source = Weights()
    counters = make(source=source)
    accept(counters, 8)
    counters.consumed(4)
    source.version = 1
    counters.consumed(4)  # nobody has looked at the version in between
    assert counters.capacity() == 4


def test_a_provider_that_lags_behind_set_version_settles_nothing_twice() -> None:
    source = Weights()
    counters = make(source=source)
    accept(counters, 8)
    counters.consumed(4)
    assert counters.capacity() == 0
    counters.set_version(1)
    counters.consumed(4)
    assert counters.capacity() == 4
    source.version = 1
    assert counters.capacity() == 4


def test_an_older_answer_does_not_undo_a_newer_one() -> None:
    asked, go_on = threading.Event(), threading.Event()

    class Slow(Weights):
        is_slow = True

        def get_version(self) -> int:
            version = self.version
            if self.is_slow:
                self.is_slow = False
                asked.set()
                assert go_on.wait(10)
            return version

    source = Slow()
    counters = make(source=source)
    late = threading.Thread(target=counters.capacity)
    late.start()
    assert asked.wait(10)
    source.version = 5
    assert counters.capacity() == (1 + 5 + 1) * 4
    go_on.set()
    late.join()
    assert counters.numbers()["version"] == 5


@pytest.mark.parametrize(
    "event",
    [
        lambda counters: counters.consumed(1),
        lambda counters: counters.filtered(1),
        lambda counters: counters.discarded(1),
        lambda counters: counters.batch_taken(1, 1),
        lambda counters: counters.set_version(1),
        lambda counters: counters.on_version_recovered(1),
        lambda counters: counters.set_dynamic(True),
    ],
)
def test_every_event_wakes_without_the_lock_held(event: threading.Event) -> None:
    counters = make()
    locked: list[bool] = []
    counters.subscribe(lambda: locked.append(counters.lock.locked()))
    event(counters)  # type: ignore[operator]  # a lambda each, as the table shows
    assert locked == [False]


def test_its_numbers_say_what_capacity_is_made_of() -> None:
    counters = make(concurrency=16, dynamic=True)
    counters.count(running=3, accepted=2, rejected=1)
    assert counters.numbers() == {
        "version": 0,
        "window": 8,
        "outstanding": 6,
        "running": 3,
        "concurrency": 16,
    }


def test_submitted_is_everything_that_was_started() -> None:
    assert RolloutStat(accepted=3, enqueued=9, rejected=2, running=1).submitted == 6
