"""Both ways of counting agree where they must, and only `events` holds where batches vary."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollscope.runner.compat import StalenessManager
from rollscope.runner.gates import StalenessGate
from rollscope.runner.gates.accounting import StalenessCounters
from tests.unit.runner.gates.views import FakeTask

MOVES = ("submit", "accept", "reject", "cancel", "deliver", "skip_rejected", "version")


@dataclass
class FixedBatches:
    """A trainer with full batches and a version for each, as both ways of counting see it."""

    batch: int
    dynamic: bool | None
    by_versions: StalenessManager
    by_events: StalenessManager
    running: int = 0
    ready: int = 0
    rejected: int = 0
    taken: int = 0
    version: int = 0

    def get_version(self) -> int:
        return self.version

    @classmethod
    def make(cls, batch: int, staleness: int, concurrency: int, is_announced: bool) -> FixedBatches:
        trainer = cls(
            max(1, batch),
            False if is_announced else None,
            by_versions=StalenessManager(None, concurrency, batch, staleness),
            by_events=StalenessManager(None, concurrency, batch, staleness),
        )
        if not is_announced:
            for manager in trainer.both:
                manager.version_provider = trainer
        return trainer

    def move(self, name: str, count: int) -> None:
        getattr(self, name)(count)

    def submit(self, count: int) -> None:
        for manager in self.both:
            manager.count(running=count)
        self.running += count

    def accept(self, count: int) -> None:
        count = self._end(count, "accepted")
        self.ready += count

    def reject(self, count: int) -> None:
        self.rejected += self._end(count, "rejected")

    def cancel(self, count: int) -> None:
        self._end(count, None)

    def _end(self, count: int, ending: str | None) -> int:
        count = min(count, self.running)
        self.running -= count
        for manager in self.both:
            manager.count(running=-count, **({ending: count} if ending else {}))
        return count

    def deliver(self, count: int) -> None:
        count = min(count, self.ready, self.batch - self.taken)
        self.ready -= count
        self.taken += count
        self.by_events.consumed(count)

    def skip_rejected(self, count: int) -> None:
        if self.dynamic is False:  # who has not said so would now be taken for dynamic
            self.by_events.set_dynamic(False)
            self.by_events.filtered(min(count, self.rejected))
            self.rejected -= min(count, self.rejected)

    def version_if_trained(self) -> None:
        if self.taken < self.batch:
            return
        self.taken = 0
        self.version += 1
        if self.by_events.version_provider is None:
            for manager in self.both:
                manager.set_version(self.version)

    @property
    def both(self) -> tuple[StalenessManager, StalenessManager]:
        return self.by_versions, self.by_events


@given(
    batch=st.integers(0, 5),
    staleness=st.integers(0, 3),
    concurrency=st.integers(0, 40),
    is_announced=st.booleans(),
    moves=st.lists(st.tuples(st.sampled_from(MOVES), st.integers(1, 6)), max_size=80),
)
def test_fixed_batches_with_a_version_each_are_counted_alike_at_every_moment(
    batch: int,
    staleness: int,
    concurrency: int,
    is_announced: bool,
    moves: list[tuple[str, int]],
) -> None:
    trainer = FixedBatches.make(batch, staleness, concurrency, is_announced)
    for name, count in moves:
        if name == "version":
            trainer.version_if_trained()
        else:
            trainer.move(name, count)
        assert trainer.by_events.get_capacity() == trainer.by_versions.get_capacity()
    assert trainer.by_versions.accounting == "versions"


@dataclass
class Item:
    number: int
    version: int
    ends_at: int
    is_accepted: bool


@dataclass
class DynamicBatches:
    """A run in which a batch is complete with `batch` items, accepted or not."""

    gate: StalenessGate
    batch: int
    rng: random.Random
    is_reporting: bool
    accepted_share: float = 0.3
    version: int = 0
    tick: int = 0
    started: int = 0
    newest_consumed: int = -1
    running: list[Item] = field(default_factory=list)
    outbox: deque[Item] = field(default_factory=deque)
    taken: list[Item] = field(default_factory=list)
    trained_at: int | None = None
    ages: list[int] = field(default_factory=list)
    overtaken_ages: list[int] = field(default_factory=list)
    window: int = 0

    def run(self, steps: int) -> None:
        while self.version < steps:
            self.tick += 1
            self._admit()
            self._finish()
            self._consume()
            out = len(self.running) + len(self.outbox) + len(self.taken)
            self.window = max(self.window, out)

    def _admit(self) -> None:
        free = max(0, self.gate.available())
        self.gate.take(free)
        for _ in range(free):
            lasts = self.rng.choice((1, 2, 3, 5, 8, 60))
            is_accepted = self.rng.random() < self.accepted_share
            self.running.append(Item(self.started, self.version, self.tick + lasts, is_accepted))
            self.started += 1

    def _finish(self) -> None:
        ended = [item for item in self.running if item.ends_at <= self.tick]
        self.running = [item for item in self.running if item.ends_at > self.tick]
        for item in ended:
            self.gate.finished(FakeTask(), item.is_accepted, not item.is_accepted)
            self.outbox.append(item)
        self.gate.give(len(ended))

    def _consume(self) -> None:
        if self.trained_at is not None:
            self._train()
            return
        while self.outbox and len(self.taken) < self.batch:
            self._take(self.outbox.popleft())
        if len(self.taken) == self.batch:
            if any(item.is_accepted for item in self.taken):
                self.trained_at = self.tick + self.rng.randint(1, 6)
            else:
                self.taken = []

    def _take(self, item: Item) -> None:
        is_overtaken = item.number < self.newest_consumed
        self.newest_consumed = max(self.newest_consumed, item.number)
        ages = self.overtaken_ages if is_overtaken else self.ages
        ages.append(self.version - item.version)
        self.taken.append(item)
        if self.is_reporting:
            report = self.gate.consumed if item.is_accepted else self.gate.filtered
            report(1)

    def _train(self) -> None:
        if self.trained_at is not None and self.tick >= self.trained_at:
            self.trained_at = None
            self.taken = []
            self.version += 1
            self.gate.set_version(self.version)


def simulate(seed: int, staleness: int, *, is_reporting: bool = True) -> DynamicBatches:
    dynamic = True if is_reporting else None
    gate = StalenessGate.bounded(staleness, batch=8, concurrency=512, dynamic=dynamic)
    run = DynamicBatches(gate, 8, random.Random(seed), is_reporting)
    run.run(1_000)
    return run


@pytest.mark.parametrize(("seed", "staleness"), [(1, 0), (2, 1), (3, 1), (4, 3)])
def test_dynamic_batches_keep_their_age_and_window_over_a_thousand_versions(
    seed: int, staleness: int
) -> None:
    run = simulate(seed, staleness)
    assert max(run.ages) <= staleness
    assert run.window <= (staleness + 1) * 8
    assert len(run.ages) > 2_000
    assert run.overtaken_ages  # stragglers exist, and are what the age policy is for


def test_without_reports_the_same_run_grows_ever_staler() -> None:
    run = simulate(2, 1, is_reporting=False)
    assert max(run.ages) > 5
    assert run.window > 250


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ("accept", "reject", "consume", "filter", "discard", "mode", "version")
            ),
            st.integers(0, 5),
        ),
        max_size=60,
    ),
    st.booleans(),
)
def test_honest_reports_never_lose_room_and_never_make_any(
    moves: list[tuple[str, int]], dynamic: bool
) -> None:
    """Once everything was taken and a version has come, the window is exactly as at first."""
    counters = StalenessCounters(None, None, 4, 1, dynamic=dynamic)
    accepted = rejected = version = 0
    for name, count in moves:
        if name == "accept":
            counters.count(accepted=count)
            accepted += count
        elif name == "reject":
            counters.count(rejected=count)
            rejected += count
        elif name == "consume":
            counters.consumed(min(count, accepted))
            accepted -= min(count, accepted)
        elif name == "filter":
            counters.filtered(min(count, rejected))
            rejected -= min(count, rejected)
        elif name == "discard":
            counters.discarded(min(count, accepted))
            accepted -= min(count, accepted)
        elif name == "mode":
            counters.set_dynamic(count % 2 == 0)
        else:
            version += 1
            counters.set_version(version)
        assert counters.capacity() <= 8
    counters.consumed(accepted)
    counters.filtered(rejected)
    counters.set_version(version + 1)
    assert counters.capacity() == 8
