"""Keeping what a runner has not finished, or nobody has acknowledged, for another one to go on.

Only runners that are asked to do it: it holds on to every outcome until it is acknowledged.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from rollscope.errors import DuplicateTask, StateError
from rollscope.runner.groups.group import MemberOptions
from rollscope.runner.guard import log
from rollscope.runner.journal.records import (
    Acked,
    Attempted,
    Checkpointed,
    Delivered,
    Ended,
    Submitted,
    Versioned,
)
from rollscope.runner.outcome import Reason
from rollscope.runner.saving import save_input, save_outcome
from rollscope.runner.state import Input

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rollscope.runner.journal.writer import Journal
    from rollscope.runner.kernel import Kernel
    from rollscope.runner.outcome import Outcome
    from rollscope.runner.state import Codec, SavedInput
    from rollscope.runner.task import Task

__all__ = ["Keeper"]

_NOT_FINAL: Final = frozenset({Reason.CLOSED, Reason.DRAINED})
"""Ended by the end of the runner: the next one does it again."""

Packed = tuple[list[Input], "list[SavedInput] | None"]


class Keeper:
    """Told by a runner what happens to its tasks; a group is kept as a whole.

    Each id is an input until it has an outcome that counts, then an outcome until it is
    acknowledged. What the loop ends by dying, or the runner by being closed, stays an input.
    """

    def __init__(self, kernel: Kernel, codec: Codec) -> None:
        self.lock = threading.Lock()
        self.inputs: dict[int, Input] = {}
        self.outcomes: dict[int, Outcome] = {}
        self.acked = 0
        self.journal: Journal | None = None
        self.codec = codec
        self._kernel = kernel

    # --- told by the runner ----------------------------------------------------------------------

    def pack(self, tasks: Sequence[Task]) -> Packed:
        """Make ready what is to be kept of tasks, before they are accepted.

        Raises:
            StateError: A journal is written, and one of them cannot be.
            DuplicateTask: The outcome of an earlier task of that id is not acknowledged.
        """
        options = tasks[0].options
        if options.id is not None and options.id in self.outcomes:
            raise DuplicateTask(f"the outcome of task {options.id} is not acknowledged yet")
        calls = [(task.fn, task.args, task.kwargs) for task in tasks]
        if isinstance(options, MemberOptions):
            inputs = [Input(calls, options, options.owner.spec)]
        else:
            inputs = [Input([call], task.options) for call, task in zip(calls, tasks, strict=True)]
        journal = self.journal
        if journal is None:
            return inputs, None
        journal.check()
        if threading.get_ident() != self._kernel.thread_id:
            journal.wait_for_room()
        return inputs, [save_input(one, -1, self.codec) for one in inputs]

    def accepted(self, tasks: Sequence[Task], packed: Packed) -> None:
        """Keep accepted tasks, which have their ids now; under the runner's lock."""
        inputs, saved = packed
        options = tasks[0].options
        is_group = isinstance(options, MemberOptions)
        ids = [options.group] if is_group else [task.id for task in tasks]
        next_id = max(task.id for task in tasks) + 1
        with self.lock:
            self.inputs.update(zip(ids, inputs, strict=True))
        if saved is not None and self.journal is not None:
            for task_id, one in zip(ids, saved, strict=True):
                one.id = task_id
                bulk = sum(len(call.payload) for call in one.calls)
                self.journal.append(Submitted(one, next_id), bulk)

    def attempted(self, task: Task) -> None:
        """Note that a task has to begin again."""
        if self.journal is not None and task.id in self.inputs:
            self.journal.append(Attempted(task.id, task.attempt - 1))

    def checkpointed(self, task: Task) -> None:
        """Note what a task can go on from."""
        if self.journal is None or task.id not in self.inputs or task.rare is None:
            return
        try:
            partial = self.codec.encode(task.rare.partial)
        except Exception as error:
            log.warning("a checkpoint of task %d is not kept: %r", task.id, error)
        else:
            self.journal.append(Checkpointed(task.id, partial), len(partial))

    def requeued(self, tasks: Iterable[Task]) -> None:
        """Forget outcomes that were taken back for their tasks to run again; under the lock."""
        for task in tasks:
            given = Input([(task.fn, task.args, task.kwargs)], task.options)
            given.attempts = task.attempt
            with self.lock:
                self.outcomes.pop(task.id, None)
                self.inputs[task.id] = given
            if self.journal is not None:
                saved = save_input(given, task.id, self.codec)
                self.journal.append(Submitted(saved, task.id + 1))

    def ended(self, outcomes: Iterable[Outcome]) -> None:
        """Keep outcomes, and forget what led to them."""
        for outcome in outcomes:
            if outcome.reason in _NOT_FINAL or self._kernel.error is not None:
                self._stay(outcome)
                continue
            if self.journal is not None:
                self._write(outcome)
            with self.lock:
                self.inputs.pop(outcome.id, None)
                self.outcomes[outcome.id] = outcome

    def _stay(self, outcome: Outcome) -> None:
        with self.lock:
            given = self.inputs.get(outcome.id)
            if given is not None:
                given.partial = outcome.partial
                given.attempts = outcome.attempts if outcome.started_ns is not None else 0

    def _write(self, outcome: Outcome) -> None:
        assert self.journal is not None  # noqa: S101  (asked before)
        try:
            # Here and not by the writing thread: whoever fetches the value may change it.
            saved = save_outcome(outcome, self.codec)
        except StateError as error:
            log.warning("%s; if it is not acknowledged, it will run again", error)
        else:
            self.journal.append(Ended(saved), len(saved.value or b""))

    def delivered(self, outcomes: Sequence[Outcome]) -> None:
        """Note that outcomes were handed over."""
        if self.journal is not None and not self.journal.is_closed:
            self.journal.append(Delivered([outcome.id for outcome in outcomes]))

    def versioned(self, version: int) -> None:
        """Note that the weights were updated."""
        if self.journal is not None:
            self.journal.append(Versioned(version))

    # --- told by the user ------------------------------------------------------------------------

    def ack(self, ids: Iterable[int]) -> list[int]:
        """Forget what is done with; gives the ids that were kept until now."""
        if self.journal is not None:
            self.journal.check()
        kernel = self._kernel
        with kernel.lock, self.lock:
            # What is there still, somewhere, has not been handed over.
            places = (kernel.live, kernel.outbox, kernel.groups)
            given_out = [task_id for task_id in ids if not any(task_id in one for one in places)]
            done = [task_id for task_id in given_out if self._forget(task_id)]
        if done and self.journal is not None:
            self.journal.append(Acked(done))
        return done

    def _forget(self, task_id: int) -> bool:
        given, outcome = self.inputs.pop(task_id, None), self.outcomes.pop(task_id, None)
        if outcome is not None:
            self.acked += outcome.weight
        elif given is not None:
            self.acked += len(given.calls)
        return given is not None or outcome is not None

    # --- at one instant --------------------------------------------------------------------------

    def snapshot(self) -> tuple[dict[int, Input], list[Outcome], int]:
        """Give all that is kept, with how far each task is.

        Nothing but the choice is made under the lock, which stops the loop: how far a task is may
        be a moment younger.
        """
        with self._kernel.lock, self.lock:
            inputs, live = dict(self.inputs), dict(self._kernel.live)
            outcomes, acked = list(self.outcomes.values()), self.acked
        seen = {task_id: given.seen(live.get(task_id)) for task_id, given in inputs.items()}
        return seen, outcomes, acked
