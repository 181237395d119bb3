"""Runs tasks again whose outcomes nobody has fetched and that have become too old."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rollscope.runner.gates import AgePolicy, age_of, judge_age
from rollscope.runner.task import QUEUED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rollscope.runner.kernel import Kernel
    from rollscope.runner.outcome import Outcome
    from rollscope.runner.task import Task

__all__ = ["Requeueing"]

_TRIES: Final = 3
"""After so many attempts an outcome is handed over as it is: weights change faster than it ends."""


class Requeueing:
    """Keeps what it takes to run a task again, until its outcome is handed over."""

    def __init__(
        self, kernel: Kernel, max_age: int, enlist: Callable[[Sequence[Task]], bool]
    ) -> None:
        """Begin with nothing.

        Args:
            kernel: What runs the tasks.
            max_age: What is older has to run again.
            enlist: Puts tasks into the inbox, under the lock; says whether to call the loop.
        """
        self._kernel = kernel
        self._max_age = max_age
        self._enlist = enlist
        self._kept: dict[int, Task] = {}

    def keep(self, tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> None:
        """Keep the inputs of good outcomes that are on their way to the outbox."""
        task_of = {task.id: task for task in tasks}
        for outcome in outcomes:
            task = task_of.get(outcome.id)
            if task is not None and outcome.is_ok and task.attempt < _TRIES:
                self._kept[outcome.id] = task

    def forget(self, outcomes: Sequence[Outcome]) -> None:
        """Let go of outcomes that were handed over."""
        for outcome in outcomes:
            self._kept.pop(outcome.id, None)

    def run_again(self) -> None:
        """Take outcomes that are too old out of the outbox, and run their tasks again.

        The caller holds the lock.
        """
        outbox = self._kernel.outbox
        for task in self._start_anew(outbox.outcomes()):
            outbox.withdraw(task.id)

    def sift(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Give those that may go to the outbox, and run the tasks of the others again.

        The caller holds the lock, and has counted all of them as there.
        """
        again = {task.id for task in self._start_anew(outcomes)}
        return [one for one in outcomes if one.id not in again] if again else outcomes

    def _start_anew(self, outcomes: Sequence[Outcome]) -> list[Task]:
        kernel = self._kernel
        if kernel.closed is not None or kernel.error is not None:
            return []  # what begins anew would never end, or not in time
        old = [
            self._kept.pop(outcome.id)
            for outcome in outcomes
            if outcome.id in self._kept and self._is_old(outcome)
        ]
        if not old:
            return []
        kernel.ledger.submitted -= len(old)  # they were counted when they came in
        kernel.ledger.outbox -= len(old)
        kernel.figures.run_again += len(old)
        for gate in kernel.admission.gates:
            withdrawn = getattr(gate, "withdrawn", None)
            if withdrawn is not None:
                for task in old:
                    withdrawn(task)
        self._enlist([_fresh(task) for task in old])
        if kernel.keeper is not None:
            kernel.keeper.requeued(old)
        kernel.call_loop(kernel.turn)
        return old

    def _is_old(self, outcome: Outcome) -> bool:
        age = age_of(self._kernel.version, outcome.versions)
        return judge_age(age, self._max_age, AgePolicy.REQUEUE) is AgePolicy.REQUEUE


def _fresh(task: Task) -> Task:
    fresh = replace(
        task,
        state=QUEUED,
        admitted_ns=None,
        attempt_ns=None,
        finished_ns=None,
        version_start=None,
        value=None,
        span=None,
        rare=None,
    )
    fresh.more().attempt = task.attempt + 1
    return fresh
