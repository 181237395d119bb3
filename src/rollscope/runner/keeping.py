"""The side of a runner that lets another one go on where it was: acknowledging, saving, loading."""

from __future__ import annotations

from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import msgspec

from rollscope.errors import SettingError, StateError
from rollscope.runner.gates.accounting import StalenessCounters
from rollscope.runner.groups.group import Call, Group
from rollscope.runner.groups.grouping import Grouping
from rollscope.runner.groups.outcome import GroupOutcome
from rollscope.runner.journal.records import records_of
from rollscope.runner.journal.writer import Journal
from rollscope.runner.keeper import Keeper
from rollscope.runner.outcome import Outcome, Status
from rollscope.runner.saving import (
    load_calls,
    load_counts,
    load_gates,
    load_options,
    load_outcome,
    load_spec,
    load_state,
    save_input,
    save_outcome,
)
from rollscope.runner.state import Input, PickleCodec, RunnerState
from rollscope.runner.task import Task

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from random import Random

    from rollscope.runner.kernel import Kernel
    from rollscope.runner.state import Codec, SavedInput

__all__ = ["Keeping"]


class Keeping(Grouping):
    """Saves and restores; only if the runner was made `resumable` or with a journal."""

    _random: Random
    _codec: Codec
    _is_resumable: bool
    _journal_path: str | os.PathLike[str] | None

    def ack(self, done: Iterable[int | Outcome], *, step: int | None = None) -> int:
        """Tell that outcomes are done with: a resumed runner will not give them again.

        Args:
            done: The outcomes, or their ids. Those not handed over, and those acknowledged
                before, are passed over.
            step: The training step that used them, for the trace.

        Returns:
            How many a resumed runner would have given again until now; 0 if none is kept.

        Raises:
            StateError: The journal cannot be written.
        """
        kernel, keeper = self._kernel, self._kernel.keeper
        given = list(done)
        ids = [one.id if isinstance(one, Outcome) else one for one in given]
        outcomes = [one for one in given if isinstance(one, Outcome)]
        acked: list[int] = []
        if keeper is not None:
            kept = [keeper.outcomes.get(one) for one in given if not isinstance(one, Outcome)]
            outcomes += [one for one in kept if one is not None]
            acked = keeper.ack(ids)
        if step is not None:
            kernel.trace.consumed([part for one in outcomes for part in one.parts], step)
        return len(acked)

    def sync_journal(self, timeout_s: float | None = None) -> bool:
        """Wait until all that happened so far is in the journal; false if it is not in time.

        Raises:
            StateError: It cannot be written, or there is none.
        """
        journal = self._keeper().journal
        if journal is None:
            raise StateError(f"the runner {self.name!r} has no journal")
        return journal.sync(timeout_s)

    # --- saving ----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Give all that a fresh runner needs to go on, as plain values; work is not stopped.

        It holds what is unfinished with its checkpoints, and outcomes that are not acknowledged,
        fetched or not. A group that is not settled is kept as a whole.

        Raises:
            StateError: A task or an outcome cannot be encoded; the message names it.
        """
        keeper, kernel = self._keeper(), self._kernel
        inputs, outcomes, acked = keeper.snapshot()
        with kernel.lock:
            next_id, version, clock_ns = self._next_id, kernel.version, kernel.clock()
            counts = kernel.figures.verdicts()
            version_of_random, numbers, gauss = self._random.getstate()
        codec = self._codec
        state = RunnerState(
            clock_ns=clock_ns,
            next_id=next_id,
            acked=acked,
            version=version,
            inputs=[save_input(one, task_id, codec) for task_id, one in inputs.items()],
            outcomes=[save_outcome(outcome, codec) for outcome in outcomes],
            counts={f"{status}/{reason}": count for (status, reason), count in counts.items()},
            gates={
                gate.name: codec.encode(gate.state_dict())
                for gate in kernel.admission.gates
                if hasattr(gate, "state_dict")
            },
            random=(version_of_random, numbers, gauss),
        )
        given: dict[str, Any] = msgspec.to_builtins(state, builtin_types=(bytes,))
        return given

    # --- loading ---------------------------------------------------------------------------------

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the runner was that gave this; before or after `start`, but before submits.

        What was unfinished runs again, from its checkpoint if there is one (`ctx.partial`).
        Outcomes that were not acknowledged are given again. New ids are above all old ones.

        Raises:
            StateError: The runner is not fresh, or something cannot be decoded; nothing is changed.
        """
        keeper = self._keeper()
        restored = load_state(state)
        if self._kernel.ledger.submitted or keeper.acked:
            raise StateError("a state can be loaded into a runner before its first task only")
        self._restore(restored)
        if keeper.journal is not None:
            for record in records_of(restored):
                keeper.journal.append(record)

    def _restore(self, state: RunnerState) -> None:
        kernel, keeper, codec = self._kernel, self._keeper(), self._codec
        later_ns = kernel.clock() - state.clock_ns
        outcomes = [load_outcome(one, codec, later_ns) for one in state.outcomes]
        inputs = [(one, *self._load_input(one)) for one in state.inputs]
        counts = load_counts(state)
        self._restore_gates(state, outcomes)
        spare = sum(given.spec.max_replacements for _, given, _ in inputs if given.spec is not None)
        with kernel.lock:
            # Members that took the place of others have ids that no record tells of.
            self._next_id = max(self._next_id, state.next_id + spare)
            kernel.version = state.version
            if state.random is not None:
                self._random.setstate(state.random)
            kernel.figures.outcomes.update(counts)
            weight = sum(outcome.weight for outcome in outcomes)
            kernel.ledger.submitted += state.acked + weight
            kernel.ledger.delivered += state.acked
            kernel.ledger.outbox += weight
            keeper.acked = state.acked
            keeper.outcomes.update((outcome.id, outcome) for outcome in outcomes)
            keeper.inputs.update((saved.id, given) for saved, given, _ in inputs)
            kernel.has_groups |= any(isinstance(one, GroupOutcome) for one in outcomes)
            woken = kernel.outbox.add(outcomes)
            for saved, given, tasks in inputs:
                if given.spec is not None:
                    self._expect_group(saved.id)
                self._enlist(tasks)
        for waiter in woken:
            waiter.notify()
        kernel.call_loop(kernel.turn)

    def _load_input(self, saved: SavedInput) -> tuple[Input, list[Task]]:
        calls, options, spec = load_calls(saved, self._codec), load_options(saved), load_spec(saved)
        try:
            self._kernel.queues.check(options.tier)
        except SettingError as error:
            raise StateError(f"task {saved.id} cannot be restored: {error}") from error
        given = Input(calls, options, spec)
        given.attempts = saved.attempts
        if saved.partial is not None:
            given.partial = self._codec.decode(saved.partial)
        if spec is not None:
            group = Group(self, saved.id, spec, options)
            return given, group.restart(
                Call(fn, args, kwargs, copy_context()) for fn, args, kwargs in calls
            )
        (fn, args, kwargs), now_ns = calls[0], self._kernel.clock()
        task = Task(fn, args, kwargs, copy_context(), options, now_ns)
        task.id = saved.id
        if saved.attempts:
            task.more().attempt = saved.attempts + 1
        if given.partial is not None:
            task.more().partial = given.partial
        return given, [task]

    def _restore_gates(self, state: RunnerState, outcomes: Iterable[Outcome]) -> None:
        parts = [part for outcome in outcomes for part in outcome.parts]
        states = load_gates(state, self._codec)
        for gate in self._kernel.admission.gates:
            if gate.name in states and hasattr(gate, "load_state_dict"):
                gate.load_state_dict(states[gate.name])
            counters = getattr(gate, "counters", None)
            if isinstance(counters, StalenessCounters):
                _restore_counters(counters, state.version, parts)

    # --- what the runner's life asks for ---------------------------------------------------------

    def _set_up_keeping(
        self,
        resumable: bool,
        journal: str | os.PathLike[str] | None,
        codec: Codec | None,
    ) -> None:
        self._is_resumable = resumable or journal is not None
        self._journal_path = journal
        self._codec = PickleCodec() if codec is None else codec

    def _begin_keeping(self, kernel: Kernel) -> None:
        if self._is_resumable:
            kernel.keeper = Keeper(kernel, self._codec)

    def _keeper(self) -> Keeper:
        keeper: Keeper | None = self._kernel.keeper
        if keeper is None:
            raise StateError(
                f"the runner {self.name!r} keeps no state; make it with resumable=True or a journal"
            )
        return keeper

    def _open_journal(self) -> None:
        """Go on with what the journal tells of, and write it from now on."""
        if self._journal_path is None:
            return
        keeper = self._keeper()
        loaded = self.state_dict() if self._kernel.ledger.submitted else None
        journal = Journal(self._journal_path)
        try:
            if loaded is None:
                self._restore(journal.found)
            elif not journal.found.is_empty:
                raise StateError(f"a state was loaded, but the journal {journal.path} has one too")
        except BaseException:
            journal.close()
            raise
        journal.start()
        keeper.journal = journal
        if loaded is not None:
            for record in records_of(msgspec.convert(loaded, RunnerState)):
                journal.append(record)

    def _close_journal(self) -> None:
        keeper = self._kernel.keeper
        if keeper is not None and keeper.journal is not None:
            keeper.journal.close()

    def _leave_journal(self) -> None:
        keeper = self._kernel.keeper
        if keeper is not None and keeper.journal is not None:
            keeper.journal.leave_to_parent()


def _restore_counters(
    counters: StalenessCounters, version: int | None, parts: Iterable[Outcome]
) -> None:
    """Count what is out again: outcomes that no batch has used."""
    if version is not None:
        counters.on_version_recovered(version)
    trained = [part for part in parts if part.tier != "eval"]
    counters.count(
        accepted=sum(part.status is Status.OK for part in trained),
        rejected=sum(part.status is Status.REJECTED for part in trained),
    )
