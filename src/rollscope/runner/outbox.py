"""Outcomes that nobody has fetched yet, and who gets them.

Everything here happens under the runner's lock; waking those who wait happens outside of it.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from rollscope.errors import OutcomeTaken, WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from random import Random

    from rollscope.runner.outcome import Outcome
    from rollscope.runner.waiters import Order, Waiter

__all__ = ["Outbox"]

_KEYS: Final[dict[str, Callable[[Outcome], Any]]] = {
    "started": lambda outcome: (outcome.started_ns or outcome.finished_ns, outcome.id),
    "oldest_shuffled": lambda outcome: (outcome.started_ns or outcome.finished_ns, outcome.id),
    "submitted": attrgetter("submitted_ns", "id"),
}


def _excluding(
    where: Callable[[Outcome], bool] | None, others: Sequence[Callable[[Outcome], bool]]
) -> Callable[[Outcome], bool] | None:
    """Give a condition that leaves to others what they want."""
    if not others:
        return where
    unwanted = list(others)
    return lambda outcome: (
        (where is None or where(outcome)) and not any(_wants(other, outcome) for other in unwanted)
    )


def _wants(where: Callable[[Outcome], bool], outcome: Outcome) -> bool:
    """Whether somebody wants an outcome; an error of theirs is told to them, not to who asks."""
    try:
        return where(outcome)
    except Exception:
        return False


class Outbox:
    """Keeps outcomes in order of arrival until they are handed over."""

    def __init__(
        self,
        random: Random,
        deliver: Callable[[Sequence[Outcome]], None],
    ) -> None:
        """Begin empty.

        Args:
            random: For the orders that shuffle.
            deliver: Told of outcomes that are handed over.
        """
        self._random = random
        self._deliver = deliver
        self.free: OrderedDict[int, Outcome] = OrderedDict()
        """What anybody may have, in order of arrival; others look only at how many there are."""
        self._held: dict[int, Outcome] = {}
        """What somebody has reserved."""
        self._reserved: dict[int, list[Waiter]] = {}
        self._waiting: deque[Waiter] = deque()

    def __len__(self) -> int:
        """Say how many are there."""
        return len(self.free) + len(self._held)

    def __contains__(self, task_id: int) -> bool:
        """Say whether the outcome of a task is there."""
        return task_id in self.free or task_id in self._held

    def wanted(self) -> int:
        """Say how many those who wait still want."""
        return sum(waiter.count for waiter in self._waiting) + len(self._reserved)

    def add(self, outcomes: Iterable[Outcome]) -> list[Waiter]:
        """Take outcomes in; give those to be woken."""
        reserved = self._reserved
        woken: list[Waiter] = []
        if reserved:
            for outcome in outcomes:
                if outcome.id in reserved:
                    self._held[outcome.id] = outcome
                    woken += self._serve_id(outcome.id)
                else:
                    self.free[outcome.id] = outcome
        else:
            for outcome in outcomes:
                self.free[outcome.id] = outcome
        if self._waiting:
            woken += self.serve()
        return woken

    def serve(self) -> list[Waiter]:
        """Give those in line what they wait for.

        Who comes later may have what those before do not want, and nothing else.
        """
        woken: list[Waiter] = []
        waiting = self._waiting
        while waiting and waiting[0].where is None:
            first = waiting[0]
            if len(self.free) < first.count:
                return woken
            first.result = self.take(first.count, first.order, None)
            woken.append(waiting.popleft())
        if waiting and self.free:
            woken += self._serve_choosy()
        return woken

    def _serve_choosy(self) -> list[Waiter]:
        """Serve a line whose first does not take just anything."""
        woken: list[Waiter] = []
        ahead: list[Callable[[Outcome], bool]] = []
        for waiter in list(self._waiting):
            if not self.free:
                break
            try:
                taken = self.take(waiter.count, waiter.order, _excluding(waiter.where, ahead))
            except Exception as error:  # the waiter's own `where`
                waiter.error = error
            else:
                if taken is None:
                    if waiter.where is None:
                        break
                    ahead.append(waiter.where)
                    continue
                waiter.result = taken
            self._waiting.remove(waiter)
            woken.append(waiter)
        return woken

    def take_at_once(self, count: int, order: Order) -> list[Outcome] | None:
        """Take exactly so many; None if there are too few, or somebody is in line for them."""
        return None if self._waiting else self.take(count, order, None)

    def take(
        self, count: int, order: Order, where: Callable[[Outcome], bool] | None
    ) -> list[Outcome] | None:
        """Take exactly so many; None, and nothing taken, if there are too few."""
        if len(self.free) < count:
            return None
        if where is None and order == "arrival":
            pop = self.free.popitem
            first = [pop(False)[1] for _ in range(count)] if count != 1 else [pop(False)[1]]
            self._deliver(first)
            return first
        candidates: Iterable[Outcome] = self.free.values()
        if where is not None:
            candidates = [one for one in candidates if where(one)]
            if len(candidates) < count:
                return None
        if order in _KEYS:
            candidates = sorted(candidates, key=_KEYS[order])
        chosen = list(itertools.islice(candidates, count))
        if "shuffled" in order:
            self._random.shuffle(chosen)
        for outcome in chosen:
            del self.free[outcome.id]
        self._deliver(chosen)
        return chosen

    def take_ready(self, limit: int | None) -> list[Outcome]:
        """Take what is there, in order of arrival."""
        count = len(self.free) if limit is None else min(limit, len(self.free))
        return self.take(count, "arrival", None) or []

    def join(self, waiter: Waiter) -> list[Waiter]:
        """Stand in line; give those to be woken."""
        self._waiting.append(waiter)
        return self.serve() if self.free else []

    def leave(self, waiter: Waiter) -> WaitTimeout:
        """Give up waiting; nothing was taken. Those behind may have their turn."""
        self._waiting.remove(waiter)
        where = waiter.where
        ready = len(self.free)
        if where is not None:
            ready = sum(1 for one in self.free.values() if where(one))
        return WaitTimeout(waiter.count, ready)

    def reserve(self, task_id: int, waiter: Waiter) -> bool:
        """Keep the outcome of a task for somebody; true if it is there already."""
        outcome = self.free.pop(task_id, None)
        if outcome is not None:
            self._held[task_id] = outcome
        self._reserved.setdefault(task_id, []).append(waiter)
        return bool(self._serve_id(task_id))

    def _serve_id(self, task_id: int) -> list[Waiter]:
        outcome = self._held.pop(task_id, None)
        if outcome is None:
            return []
        first, *others = self._reserved.pop(task_id)
        self._deliver([outcome])
        first.result = [outcome]
        for other in others:
            other.error = OutcomeTaken(f"the outcome of task {task_id} was handed over")
        return [first, *others]

    def release(self, task_id: int, waiter: Waiter) -> WaitTimeout:
        """Give a reservation up."""
        waiters = self._reserved.get(task_id, [])
        if waiter in waiters:
            waiters.remove(waiter)
            if not waiters:
                del self._reserved[task_id]
        return WaitTimeout(1, 0)

    def fail_all(self, error: Callable[[], BaseException]) -> list[Waiter]:
        """End the waiting of everybody with an error; give those to be woken.

        Who stood behind one that wanted too many has what is there.
        """
        woken = [one for some in self._reserved.values() for one in some]
        self._reserved.clear()
        for waiter in woken:
            waiter.error = error()
        while self._waiting:
            first = self._waiting.popleft()
            first.error = error()
            woken += [first, *self.serve()]
        return woken

    def withdraw(self, task_id: int) -> None:
        """Take an outcome out that is not to be handed over after all."""
        if self.free.pop(task_id, None) is None:
            del self._held[task_id]

    def put_back(self, outcomes: Iterable[Outcome]) -> None:
        """Take outcomes back that reached nobody; they are the next to be handed over."""
        for outcome in reversed(list(outcomes)):
            self.free[outcome.id] = outcome
            self.free.move_to_end(outcome.id, last=False)

    def outcomes(self) -> list[Outcome]:
        """Give all that are there, and leave them."""
        return [*self._held.values(), *self.free.values()]
