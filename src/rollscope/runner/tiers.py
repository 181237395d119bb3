"""Who starts next: tiers that share freed places, and the order inside each."""

from __future__ import annotations

import heapq
import math
from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec

from rollscope.errors import SettingError
from rollscope.runner.checks import check, is_number
from rollscope.runner.task import QUEUED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rollscope.runner.task import Task, TaskOptions

__all__ = ["DEFAULT_TIERS", "Tier", "TierQueues"]

_NS: Final = 1_000_000_000
_FEW: Final = 64
"""Entries below which those of tasks that wait no more are not worth sweeping out."""


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    """A class of tasks with a share of its own."""

    name: str
    weight: float = 1.0
    """Share of freed places, against the weights of the other tiers with work."""
    limit: int | None = None
    """How many of its tasks may run at once."""
    strict: bool = False
    """Always before the tiers that are not."""

    def __post_init__(self) -> None:
        """Refuse what places cannot be shared by.

        Raises:
            SettingError: A setting has a value that cannot be used.
        """
        is_right = is_number(self.weight) and 0 < self.weight < math.inf
        check("weight", self.weight, "a number above zero", is_right=is_right)
        is_right = self.limit is None or (is_number(self.limit) and self.limit >= 0)
        check("limit", self.limit, "a number from 0 on, or None", is_right=is_right)


DEFAULT_TIERS: Final = (Tier(name="train"), Tier(name="eval"))


class _Queue:
    """The tasks of one tier: what comes back first, then by priority, then by age.

    Waiting adds one to the priority every `ageing_s`, for all alike; so who is ahead of whom never
    changes, and one number made at submit is the whole order.
    """

    def __init__(self, tier: Tier, ageing_s: float) -> None:
        self.tier = tier
        self.running = 0
        self.freed = 0
        """Tasks that have ended and whose permits are still to be given back."""
        self.size = 0
        self.used = 0.0
        """Places taken so far by weight; the tier with the least is next."""
        self._ageing_ns = ageing_s * _NS
        self._front: deque[Task] = deque()
        self._plain: deque[Task] = deque()
        """Of priority 0, in order of submit."""
        self._ranked: list[tuple[float, int, Task]] = []
        self._pushed = 0

    def _rank(self, task: Task) -> float:
        return task.submitted_ns / self._ageing_ns - task.options.priority

    def push(self, task: Task) -> None:
        self.size += 1
        if task.options.priority:
            self._pushed += 1
            heapq.heappush(self._ranked, (self._rank(task), self._pushed, task))
        else:
            self._plain.append(task)

    def push_plain(self, tasks: Sequence[Task]) -> None:
        """Let tasks of priority 0 wait."""
        self.size += len(tasks)
        self._plain.extend(tasks)

    def push_front(self, task: Task) -> None:
        self.size += 1
        self._front.append(task)

    def remove(self) -> None:
        """Count one less: a task that is queued no more is skipped when its turn comes."""
        self.size -= 1
        held = len(self._front) + len(self._plain) + len(self._ranked)
        if held > _FEW and held > 2 * self.size:
            self._front = deque(task for task in self._front if task.state == QUEUED)
            self._plain = deque(task for task in self._plain if task.state == QUEUED)
            self._ranked = [entry for entry in self._ranked if entry[2].state == QUEUED]
            heapq.heapify(self._ranked)

    def head(self) -> Task | None:
        """Give the task that is next, and leave it there."""
        for waiting in (self._front, self._plain):
            while waiting and waiting[0].state != QUEUED:
                waiting.popleft()
        while self._ranked and self._ranked[0][2].state != QUEUED:
            heapq.heappop(self._ranked)
        if self._front:
            return self._front[0]
        if not self._ranked:
            return self._plain[0] if self._plain else None
        rank, _, ranked = self._ranked[0]
        if self._plain and self._rank(self._plain[0]) <= rank:
            return self._plain[0]
        return ranked

    def pop(self, task: Task) -> None:
        """Take the head off."""
        self.size -= 1
        if self._front and self._front[0] is task:
            self._front.popleft()
        elif self._plain and self._plain[0] is task:
            self._plain.popleft()
        else:
            heapq.heappop(self._ranked)

    def admit_many(self, count: int) -> list[Task]:
        """Take up to so many heads off, for them to run."""
        taken: list[Task] = []
        if not self._front and not self._ranked:
            plain = self._plain
            if len(plain) == self.size:  # all of them wait still
                pop = plain.popleft
                free = min(count, self.size)
                taken = [pop() for _ in range(free)] if free > 1 else [pop()]
            while plain and len(taken) < count:
                task = plain.popleft()
                if task.state == QUEUED:
                    taken.append(task)
            self.size -= len(taken)
        else:
            while len(taken) < count and (head := self.head()) is not None:
                self.pop(head)
                taken.append(head)
        self.running += len(taken)
        self.used += len(taken) / self.tier.weight
        return taken

    def __iter__(self) -> Iterator[Task]:
        yield from (task for task in self._front if task.state == QUEUED)
        yield from (task for task in self._plain if task.state == QUEUED)
        yield from (entry[2] for entry in self._ranked if entry[2].state == QUEUED)


class TierQueues:
    """The queues of all tiers; belongs to the loop thread."""

    def __init__(self, tiers: Sequence[Tier], ageing_s: float = 30.0) -> None:
        is_right = is_number(ageing_s) and ageing_s > 0
        check("ageing_s", ageing_s, "a number of seconds above zero", is_right=is_right)
        self.queues = {tier.name: _Queue(tier, ageing_s) for tier in tiers}
        names = [tier.name for tier in tiers]
        is_right = bool(names) and len(self.queues) == len(names)
        check("tiers", names, "at least one, each of a name of its own", is_right=is_right)
        self.default = names[0] if "train" not in names else "train"
        """The tier of tasks that are submitted without one."""
        self._ordered = list(self.queues.values())
        self.has_work = True
        """Whether tasks may wait; set false by who has found none."""

    def __len__(self) -> int:
        """Say how many tasks wait."""
        return sum(queue.size for queue in self._ordered)

    def __iter__(self) -> Iterator[Task]:
        """Give the tasks that wait."""
        for queue in self._ordered:
            yield from queue

    def check(self, name: str) -> None:
        """Refuse a tier that there is not.

        Raises:
            SettingError: The message names those that there are.
        """
        if name not in self.queues:
            raise SettingError(f"there is no tier {name!r}; there are {', '.join(self.queues)}")

    def push(self, task: Task, *, front: bool = False) -> None:
        """Let a task wait: at its place, or before all others if it was started before."""
        queue = self.queues[task.options.tier]
        if not queue.size and self.has_work:
            self._catch_up(queue)
        self.has_work = True
        if front:
            queue.push_front(task)
        else:
            queue.push(task)

    def push_many(self, tasks: Sequence[Task], options: TaskOptions) -> None:
        """Let tasks of the same options wait at their place."""
        queue = self.queues[options.tier]
        if options.priority or not tasks:
            for task in tasks:
                self.push(task)
            return
        if not queue.size and self.has_work:
            self._catch_up(queue)
        self.has_work = True
        queue.push_plain(tasks)

    def _catch_up(self, queue: _Queue) -> None:
        """Let a tier that had nothing to do have no claim to the places it did not use."""
        busy = self.with_work()
        if busy:
            queue.used = max(queue.used, min(other.used for other in busy))

    def forget(self, task: Task) -> None:
        """Count out a queued task that has ended; its state says so already."""
        self.queues[task.options.tier].remove()

    def next_queue(self, closed: set[str]) -> _Queue | None:
        """Give the queue whose head is next, among those that are not closed."""
        best: _Queue | None = None
        for queue in self._ordered:
            if not queue.size or queue.tier.name in closed:
                continue
            limit = queue.tier.limit
            if limit is not None and queue.running >= limit:
                continue
            if best is None or (not queue.tier.strict, queue.used) < (
                not best.tier.strict,
                best.used,
            ):
                best = queue
        return best

    def admit(self, queue: _Queue, task: Task) -> None:
        """Take a head off its queue, for it to run."""
        queue.pop(task)
        queue.running += 1
        queue.used += 1.0 / queue.tier.weight

    def with_work(self) -> list[_Queue]:
        """Give the queues in which tasks wait."""
        busy = []
        for queue in self._ordered:
            if queue.size:
                busy.append(queue)  # noqa: PERF401  (as a comprehension, one call more each turn)
        return busy

    def ended(self, task: Task) -> None:
        """Note that a task runs no more."""
        queue = self.queues[task.options.tier]
        queue.running -= 1
        queue.freed += 1
