"""Which tasks may start now: the gates, asked together, and what holds the next one back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from rollscope.runner.gates.base import CountingGate
from rollscope.runner.guard import log, quietly
from rollscope.runner.outcome import Reason, Status, describe_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rollscope.runner.gates.base import Gate
    from rollscope.runner.kernel import Kernel
    from rollscope.runner.task import Task
    from rollscope.runner.tiers import TierQueues
    from rollscope.runner.timers import Timer

__all__ = ["BLOCKED_S", "Admission"]

_NO_LIMIT: Final = sys.maxsize
BLOCKED_S: Final = 60.0
"""After so long with nothing running and work held back, those who wait are told why."""
_ASK_AGAIN_S: Final = 0.2
"""A gate that could not answer is asked again after so long."""


class Admission:
    """Chooses tasks, takes their permits and gives them back."""

    def __init__(
        self, gates: Sequence[Gate | CountingGate], outbox: int | None, clock: Callable[[], int]
    ) -> None:
        self.gates = list(gates)
        self._counting = [gate for gate in gates if isinstance(gate, CountingGate)]
        self._single: list[Any] = [gate for gate in gates if not isinstance(gate, CountingGate)]
        self._choosy: list[Any] = [gate for gate in gates if hasattr(gate, "admits")]
        self._told: list[Any] = [gate for gate in gates if hasattr(gate, "finished")]
        self.counts = bool(self._counting)
        """Whether gates have to be told how many tasks have ended."""
        self._outbox = outbox
        self.bounds_outbox = outbox is not None
        self._clock = clock
        self.looks_at_each = bool(self._told or self._single)
        """Whether gates have to be told of each task that has ended."""
        self.binding: str | None = None
        """What holds the next task back."""
        self.binding_since_ns = 0
        self.binding_ns: dict[str, int] = {}
        self._refusing: set[str] = set()
        """Gates that hold back the next task of some tier."""
        self._silent: set[str] = set()
        """Names of gates that could not answer when they were asked last."""
        self._wakes_at: Timer | None = None
        self._blocked: Timer | None = None
        self._has_told = False
        """Whether those who wait were told what blocks them."""

    def choose(self, kernel: Kernel, at_most: int) -> list[Task]:
        """Take tasks from their queues, and permits for them."""
        busy = kernel.queues.with_work()
        holder: str | None = None
        self._refusing.clear()
        if not busy:
            kernel.queues.has_work, holder = False, "queue_empty"
        elif kernel.pauses.is_paused or kernel.breaker.is_open or self.bounds_outbox:
            holder = self._closed_for_all(kernel)
        if holder is not None:
            self._note(kernel, holder)
            return []
        if len(busy) == 1 and not self._single and not self._choosy:
            chosen, holder = self._choose_alike(kernel, busy[0], at_most)
        else:
            chosen, holder = self._choose_each(kernel, at_most)
        if holder != "queue_empty" or self.binding != "queue_empty":
            self._note(kernel, holder, starts=bool(chosen))
        return chosen

    def _closed_for_all(self, kernel: Kernel) -> str | None:
        if kernel.pauses.is_paused:
            return "paused"
        if kernel.breaker.is_open:
            return "breaker"
        if self._outbox is not None:
            with kernel.lock:
                waiting = len(kernel.outbox) - kernel.outbox.wanted()
            if waiting >= self._outbox:
                return "outbox"
        return None

    def _choose_alike(
        self,
        kernel: Kernel,
        queue: Any,  # noqa: ANN401  (a queue of `tiers`)
        at_most: int,
    ) -> tuple[list[Task], str | None]:
        """Choose where only one tier has work and all permits are alike: no look at each task."""
        tier = queue.tier
        holder = None
        room = at_most
        applying = []
        for gate in self._counting:
            if gate.applies_to(tier.name):
                applying.append(gate)
                permits = self._available(gate)
                if permits is not None and permits < room:
                    room, holder = permits, gate.name
        if tier.limit is not None and tier.limit - queue.running < room:
            room, holder = tier.limit - queue.running, f"tier:{tier.name}"
        if room <= 0:
            return [], holder
        chosen = queue.admit_many(room)
        for gate in applying:
            gate.take(len(chosen))
        if queue.size:
            return chosen, holder
        kernel.queues.has_work = False
        return chosen, "queue_empty"

    def _choose_each(self, kernel: Kernel, at_most: int) -> tuple[list[Task], str | None]:
        chosen: list[Task] = []
        free = [
            _NO_LIMIT if permits is None else permits
            for permits in map(self._available, self._counting)
        ]
        closed: set[str] = set()
        holder = None
        queues = kernel.queues
        while len(chosen) < at_most:
            queue = queues.next_queue(closed)
            if queue is None:
                break
            task = queue.head()
            assert task is not None  # noqa: S101  (the queue has work)
            try:
                refusing = self._refuses(task, free)
                if refusing is None:
                    for gate in self._single:
                        task.more().permits.append(gate.acquire(task))
            except Exception as error:  # code of a gate that is not ours, or of its user
                self._fail(kernel, task, error)
                continue
            if refusing is not None:
                holder = refusing
                self._refusing.add(refusing)
                closed.add(queue.tier.name)
                continue
            queues.admit(queue, task)
            for place, gate in enumerate(self._counting):
                if gate.applies_to(task.tier):
                    gate.take(1)
                    free[place] -= 1
            chosen.append(task)
        if holder is None and len(chosen) < at_most:
            waiting = [queue.tier.name for queue in queues.with_work()]
            queues.has_work = bool(waiting)
            holder = f"tier:{waiting[0]}" if waiting else "queue_empty"
        return chosen, holder

    def _fail(self, kernel: Kernel, task: Task, error: Exception) -> None:
        """End a task that a gate cannot cope with, and that task only."""
        self.release(task, None)
        task.more().failure = describe_failure(error)
        kernel.stops.end_waiting([task], Status.FAILED, Reason.EXCEPTION)

    def _refuses(self, task: Task, free: list[int]) -> str | None:
        """Name the gate that holds a task back."""
        for gate, permits in zip(self._counting, free, strict=True):
            if permits <= 0 and gate.applies_to(task.tier):
                return gate.name
        for gate in self._single:
            if _permits(gate) <= 0:
                name: str = gate.name
                return name
        for gate in self._choosy:
            if not gate.admits(task):
                name = gate.name
                return name
        return None

    def release(self, task: Task, status: Status | None) -> None:
        """Give back what a task alone holds; without a status it will run again."""
        if self._told and status is not None:
            for gate in self._told:
                gate.finished(
                    task, accepted=status is Status.OK, rejected=status is Status.REJECTED
                )
        rare = task.rare
        if rare is not None and rare.permits:
            permits, rare.permits = rare.permits, []
            for permit in permits:
                with quietly("giving a permit back"):
                    permit.release()

    def flush(self, queues: TierQueues) -> None:
        """Give back the permits of all tasks that have ended since the last time."""
        for queue in queues.queues.values():
            count, queue.freed = queue.freed, 0
            if count:
                for gate in self._counting:
                    if gate.applies_to(queue.tier.name):
                        gate.give(count)

    def _available(self, gate: CountingGate) -> int | None:
        """Ask a gate; one that cannot answer, as when it asks an engine that is gone, is closed."""
        try:
            permits = gate.available()
        except Exception:
            if gate.name not in self._silent:
                self._silent.add(gate.name)
                log.exception("the gate %s cannot tell what is free", gate.name)
            return 0
        if self._silent:
            self._silent.discard(gate.name)
        return permits

    def _note(self, kernel: Kernel, holder: str | None, *, starts: bool = False) -> None:
        """Note what holds the next task back, and see to it that it is looked at again."""
        if holder != self.binding:
            now_ns = self._clock()
            if self.binding is not None:
                spent_ns = now_ns - self.binding_since_ns
                self.binding_ns[self.binding] = self.binding_ns.get(self.binding, 0) + spent_ns
            self.binding, self.binding_since_ns = holder, now_ns
            kernel.trace.held_by(holder, kernel.pauses.named_owners() if holder == "paused" else "")
        is_held = holder is not None and holder != "queue_empty"
        if is_held:
            self._look_later(kernel, {*self._refusing, holder})
        if kernel.running or starts or not is_held:
            self._has_told = False
            if self._blocked is not None:
                kernel.timers.take_back(self._blocked)
                self._blocked = None
        elif self._blocked is None and not self._has_told:
            self._blocked = kernel.timers.after(BLOCKED_S, lambda: self._tell_blocked(kernel))

    def _look_later(self, kernel: Kernel, holders: set[str | None]) -> None:
        """Set a timer where a gate opens by the clock, or tells nobody when it opens."""
        due: list[int] = []
        for gate in self.gates:
            if gate.name not in holders:
                continue
            next_permit = getattr(gate, "next_permit_ns", None)
            recheck_s = (
                _ASK_AGAIN_S if gate.name in self._silent else getattr(gate, "recheck_s", None)
            )
            if next_permit is not None:
                due_ns = next_permit(self._clock())
                if due_ns is not None:
                    due.append(due_ns)
            elif recheck_s is not None:
                due.append(self._clock() + int(recheck_s * 1e9))
        armed = self._wakes_at
        if not due or (armed is not None and armed.act is not None and armed.due_ns <= min(due)):
            return
        if armed is not None:
            kernel.timers.take_back(armed)
        self._wakes_at = kernel.timers.at(min(due), kernel.signal)

    def _tell_blocked(self, kernel: Kernel) -> None:
        if kernel.running:
            self._blocked = None
            return
        with kernel.lock:
            waiting = kernel.outbox.wanted()
        if not waiting:  # somebody may come yet
            self._blocked = kernel.timers.after(BLOCKED_S, lambda: self._tell_blocked(kernel))
            return
        self._blocked, self._has_told = None, True
        log.warning(
            "nothing has run for %g s although %d tasks wait: %s",
            BLOCKED_S,
            len(kernel.queues),
            self.explain(),
        )

    def explain(self) -> str:
        """Say what holds tasks back, with its numbers."""
        for gate in self.gates:
            if gate.name == self.binding:
                numbers = getattr(gate, "numbers", None)
                if numbers is None:
                    break
                with quietly(f"the gate {gate.name}"):
                    said = ", ".join(f"{key} {value}" for key, value in numbers().items())
                    return f"held back by {gate.name} ({said})"
        return f"held back by {self.binding}"


def _permits(gate: Gate | CountingGate) -> int:
    permits = gate.available()
    return _NO_LIMIT if permits is None else permits
