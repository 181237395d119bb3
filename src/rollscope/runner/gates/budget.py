"""A gate on what tasks declare to cost: tokens, bytes, money."""

import threading
from collections.abc import Callable

from rollscope.runner.gates.base import Permit, Subscribers, TaskView

__all__ = ["BudgetGate"]


class BudgetGate:
    """Keeps the declared costs of started tasks within `total`.

    A task that costs more than the whole budget may run while nothing else that costs anything
    does. Costs are asked for again with every look at a task, so `cost_fn` should be quick and
    give the same answer each time; what was taken is what is given back in any case.

    Args:
        total: What may be spent at a time.
        cost_fn: Gives the cost of a task, not below zero.
        name: Under which the gate is reported.
    """

    def __init__(
        self, total: float, cost_fn: Callable[[TaskView], float], *, name: str = "budget"
    ) -> None:
        self.name = name
        self._total = total
        self._cost_fn = cost_fn
        self._lock = threading.Lock()
        self._subscribers = Subscribers()
        self._spent: float = 0
        self._payers = 0

    def available(self) -> int | None:
        """Give None while anything is left: how many tasks fit depends on the tasks."""
        with self._lock:
            return 0 if self._payers and self._spent >= self._total else None

    def admits(self, task: TaskView) -> bool:
        """Whether this very task fits now."""
        cost = self._ask(task)
        with self._lock:
            return not self._payers or self._spent + cost <= self._total

    def acquire(self, task: TaskView) -> Permit:
        """Charge the task's cost until the permit is released."""
        cost = self._ask(task)
        if cost:
            with self._lock:
                self._spent += cost
                self._payers += 1
        return _Charge(self, cost)

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, from any thread, when a cost was given back."""
        self._subscribers.add(wake)

    def numbers(self) -> dict[str, float | None]:
        """Give the budget and what is spent of it."""
        with self._lock:
            return {"total": self._total, "spent": self._spent}

    def refund(self, cost: float) -> None:
        """Take a charge back; permits do this."""
        if not cost:
            return
        with self._lock:
            self._payers -= 1
            # Sums of fractions do not come back to zero by themselves.
            self._spent = self._spent - cost if self._payers else 0
        self._subscribers.wake_all()

    def _ask(self, task: TaskView) -> float:
        cost = self._cost_fn(task)
        if not cost >= 0:
            raise ValueError(f"a cost cannot be below zero: {cost}")
        return cost


class _Charge:
    """What one task was charged."""

    def __init__(self, gate: BudgetGate, cost: float) -> None:
        self._gate: BudgetGate | None = gate
        self._cost = cost
        self._lock = threading.Lock()

    def release(self) -> None:
        """Take the charge back, once."""
        with self._lock:
            gate, self._gate = self._gate, None
        if gate is not None:
            gate.refund(self._cost)
