"""The executor: data items and workflows in, batches of trajectories out, none of them too old.

What it is made of is put together in `execution`; this is the part that callers see.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Final

from rollscope.errors import OutcomeTaken, RunnerClosed, RunnerError, UnknownTask, WaitTimeout
from rollscope.rollout.capacity import (
    EngineVersion,
    ExecutorSettings,
    data_parallel_size,
    make_manager,
)
from rollscope.rollout.claims import Claim
from rollscope.rollout.execution import Execution
from rollscope.rollout.loader import LoaderCursor
from rollscope.rollout.recipes import Recipe
from rollscope.runner import CloseReport

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rollscope.rollout.deliveries import Settled
    from rollscope.rollout.engine import Engine
    from rollscope.rollout.loader import DataLoader
    from rollscope.rollout.trajectory import Trajectory
    from rollscope.runner import Runner
    from rollscope.runner.waiters import Order

__all__ = ["WorkflowExecutor"]

_OWNER: Final = "executor"


class WorkflowExecutor:
    """Runs workflows on data items, and keeps off-policy age bounded.

    Args:
        config: Any object with settings of an executor as attributes: `consumer_batch_size`,
            `max_concurrent_rollouts`, `max_head_offpolicyness`, `queue_size`,
            `enable_rollout_tracing`, `check_trajectory_format`, `dump_to_file`, `tokenizer_path`.
        inference_engine: What workflows generate with, and whose version counts.
        staleness_manager: Counts in place of one made from the settings.
    """

    def __init__(
        self,
        config: object,
        inference_engine: Engine,
        staleness_manager: Any = None,  # noqa: ANN401  (ours, or one with the same calls)
    ) -> None:
        self.config = config
        self.settings = ExecutorSettings.read(config)
        self.logger = logging.getLogger("rollscope.rollout")
        self._engine = inference_engine
        self._given_manager = staleness_manager
        self._life: Execution | None = None
        self._batching = threading.Lock()
        self._loader_state: dict[str, Any] | None = None

    def initialize(
        self, logger: logging.Logger | None = None, train_data_parallel_size: int | None = None
    ) -> None:
        """Start, with this process's share of slots and batch; a second time does nothing.

        Args:
            logger: Where to log.
            train_data_parallel_size: Among how many processes rollouts are shared out; if not
                given, as many as torch's distributed group has.
        """
        if logger is not None:
            self.logger = logger
        if self._life is not None and not self._life.is_over:
            self.logger.warning("the executor runs already; the second initialize does nothing")
            return
        settings, version, manager = self.settings, EngineVersion(self._engine), self._given_manager
        if manager is None:
            manager = make_manager(settings, version, data_parallel_size(train_data_parallel_size))
        self._life = Execution(settings, self._engine, version, manager, self.logger)

    def destroy(self) -> CloseReport:
        """End everything; what was finished stays readable, what was not is in the report."""
        if self._life is None or self._life.is_over:
            return CloseReport([], 0, 0)
        return self._life.close()

    def _alive(self) -> Execution:
        if self._life is None:
            raise RuntimeError("WorkflowExecutor.initialize() must be called before it is used")
        return self._life

    # --- passed through --------------------------------------------------------------------------

    @property
    def runner(self) -> Runner:
        """What runs the samples."""
        return self._alive().runner

    @property
    def staleness_manager(self) -> Any:  # noqa: ANN401  (ours, or the one that was given)
        """What counts; there is no other."""
        return self._alive().manager

    def get_capacity(self) -> int:
        """Count the items that may start now; may be below zero."""
        return int(self._alive().manager.get_capacity())

    def pause(self) -> None:
        """Start nothing new; what runs goes on, and its outcomes are delivered."""
        self._alive().runner.pause(owner=_OWNER)

    def resume(self) -> None:
        """Go on, however often it was paused."""
        self._alive().runner.resume(owner=_OWNER)

    @property
    def is_paused(self) -> Claim:
        """Whether nothing new starts; may be called too, as AReaL's engines do."""
        return Claim(self._alive().runner.is_paused)

    def set_version(self, version: int) -> None:
        """Tell that the weights were updated: what was delivered is used, and more may start."""
        self._alive().set_version(version)

    def ack(self) -> None:
        """Say that everything delivered so far was used; a new version says so too."""
        self._alive().ack()

    def stats_text(self) -> str:
        """Say how many items are where."""
        return self._alive().stats_text()

    # --- single items ----------------------------------------------------------------------------

    def submit(
        self,
        data: Any,  # noqa: ANN401  (the item is the host's)
        workflow: object,
        should_accept_fn: Any = None,  # noqa: ANN401  (a function or an import path)
        task_id: int | None = None,
        is_eval: bool = False,
        group_size: int = 1,
        *,
        workflow_kwargs: Mapping[str, Any] | None = None,
        should_accept: Any = None,  # noqa: ANN401  (as above)
    ) -> int:
        """Have a workflow run on an item; never blocks.

        Args:
            data: The item.
            workflow: A workflow or what stands for one; see `resolve_workflow`.
            should_accept_fn: Says of a trajectory whether to train on it.
            task_id: The id of the task; counted up if not given.
            is_eval: Whether it is not for training.
            group_size: How many samples of it to make.
            workflow_kwargs: What to make a workflow of a class with.
            should_accept: The old name of `should_accept_fn`.

        Returns:
            The id.

        Raises:
            DuplicateTask: The outcome of a task with that id was not fetched yet.
            InboxFull: As many items wait as the queue holds.
        """
        life = self._alive()
        recipe = Recipe(workflow, workflow_kwargs, should_accept_fn, should_accept, group_size)
        return life.submit(recipe.episode(data, is_eval=is_eval), task_id)

    def wait(
        self,
        count: int,
        timeout: float | None = None,
        raise_timeout: bool = True,
        *,
        with_outcomes: bool = False,
    ) -> list[Any]:
        """Wait for so many items to end, in whichever way; those that started first come first.

        Items that a batch was asked for are left to that call.

        Args:
            count: How many.
            timeout: How many seconds; for ever if not given.
            raise_timeout: Whether to raise when the time is up, or to give an empty list.
            with_outcomes: Give whole outcomes in place of trajectories.

        Returns:
            The trajectory of each that was accepted, None for the others; in mixed order.

        Raises:
            TimeoutError: Too few came in time; none was taken.
            RunnerClosed: The executor was destroyed and too few are left.
        """
        if count <= 0:
            raise ValueError(f"count must be above zero, not {count}")
        life = self._alive()
        timeout_s = 0 if life.is_over else timeout
        try:
            outcomes = life.runner.wait(
                count, timeout_s, "oldest_shuffled", life.deliveries.are_for(None)
            )
        except WaitTimeout as error:
            if life.is_over:
                raise RunnerClosed(f"the executor is closed and has {error.ready} left") from None
            if not raise_timeout:
                return []
            raise TimeoutError(
                f"Timed out waiting for {count} results, only received {error.ready}"
            ) from None
        settled = life.consume(life.deliveries.hand_over(outcomes))
        return _given(settled, with_outcomes=with_outcomes)

    def wait_for_task(
        self,
        task_id: int,
        timeout: float | None = None,
        raise_timeout: bool = True,
        *,
        with_outcomes: bool = False,
    ) -> Any:  # noqa: ANN401  (a trajectory, an outcome, or None)
        """Wait for one item, which no `wait` gets meanwhile.

        Args:
            task_id: Which one.
            timeout: How many seconds; for ever if not given.
            raise_timeout: Whether to raise when the time is up, or to give None.
            with_outcomes: Give the whole outcome in place of the trajectory.

        Raises:
            ValueError: There is no such task, or its outcome was fetched.
            TimeoutError: It did not end in time; it can be asked for again.
        """
        life = self._alive()
        theirs = life.deliveries.find(task_id)
        if theirs is None:
            raise _never_submitted(task_id)
        try:
            outcome = life.runner.wait_for(theirs, timeout)
        except (UnknownTask, OutcomeTaken):
            raise _never_submitted(task_id) from None
        except WaitTimeout:
            if not raise_timeout:
                return None
            raise TimeoutError(f"Timed out waiting for task {task_id}") from None
        settled = life.consume(life.deliveries.hand_over([outcome]))
        return _given(settled, with_outcomes=with_outcomes)[0]

    # --- batches ---------------------------------------------------------------------------------

    def rollout_batch(
        self,
        data: Sequence[Any],
        workflow: object,
        should_accept_fn: Any = None,  # noqa: ANN401  (a function or an import path)
        group_size: int = 1,
        ordered: bool = False,
        *,
        workflow_kwargs: Mapping[str, Any] | None = None,
        should_accept: Any = None,  # noqa: ANN401  (as above)
    ) -> list[Trajectory]:
        """Run a workflow on all items and wait for all; gives the accepted trajectories.

        If it fails, what it has submitted is left to `wait`.

        Args:
            data: The items.
            workflow: As in `submit`, as are those not told of here.
            should_accept_fn: As in `submit`.
            group_size: As in `submit`.
            ordered: Keep the order of the items; otherwise that in which they ended.
            workflow_kwargs: As in `submit`.
            should_accept: As in `submit`.

        Raises:
            GateBlocked: Nothing runs, and the rest may not start at this version.
        """
        life = self._alive()
        recipe = Recipe(workflow, workflow_kwargs, should_accept_fn, should_accept, group_size)
        ours = object()
        try:
            for item in data:
                life.submit_when_room(recipe.episode(item, owner=ours))
            order: Order = "submitted" if ordered else "arrival"
            outcomes = life.wait_unless_blocked(len(data), ours, order)
        except BaseException:
            life.leave_to_anybody(ours)
            raise
        settled = life.consume(life.deliveries.hand_over(outcomes))
        return [one.outcome.value for one in settled if one.outcome.is_ok]

    def prepare_batch(
        self,
        dataloader: DataLoader,
        workflow: object,
        should_accept_fn: Any = None,  # noqa: ANN401  (a function or an import path)
        dynamic_bs: bool = False,
        group_size: int = 1,
        max_attempts: int | None = None,
        *,
        workflow_kwargs: Mapping[str, Any] | None = None,
        should_accept: Any = None,  # noqa: ANN401  (as above)
    ) -> list[Trajectory]:
        """Give the next batch for training, and keep rollouts going for the ones after it.

        Args:
            dataloader: Gives items, round after round; its `batch_size` is that of the batch. The
                place in it is kept between calls.
            workflow: As in `submit`, as are those not told of here. Items that were submitted
                before run as they were then.
            should_accept_fn: As in `submit`.
            dynamic_bs: Whether rejected items count as part of the batch, which is then smaller.
            group_size: As in `submit`.
            max_attempts: Outcomes that one batch may cost; 100 times its size if not given.
            workflow_kwargs: As in `submit`.
            should_accept: As in `submit`.

        Raises:
            ValueError: The queue is smaller than the batch, or the loader has no `batch_size`.
            RuntimeError: The loader gives no items.
            BatchBudgetExceeded: Too many items were tried; what was accepted is kept.
        """
        life = self._alive()
        recipe = Recipe(workflow, workflow_kwargs, should_accept_fn, should_accept, group_size)
        with self._batching:
            cursor = self._cursor_of(life, dataloader)
            life.set_dynamic(dynamic=dynamic_bs)
            batch = life.batches.collect(
                cursor.batch_size,
                lambda: life.feed(cursor, recipe),
                dynamic=dynamic_bs,
                max_attempts=max_attempts,
            )
            life.consume([*batch.accepted, *batch.rejected])
        chosen: list[Trajectory] = [one.outcome.value for one in batch.accepted]
        life.runner._random.shuffle(chosen)
        return chosen

    def _cursor_of(self, life: Execution, dataloader: DataLoader) -> LoaderCursor:
        cursor = life.cursor
        if cursor is None or cursor.loader is not dataloader:
            cursor = LoaderCursor(dataloader, self._loader_state)
            if self.settings.queue_size < cursor.batch_size:
                raise ValueError(
                    f"queue_size is {self.settings.queue_size}, less than a batch of "
                    f"{cursor.batch_size}"
                )
            life.cursor, self._loader_state = cursor, None
        return cursor

    # --- state -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Say where to go on: the place in the loader of the oldest item that was not used."""
        life = self._alive()
        loader = None if life.cursor is None else life.cursor.state_dict()
        return {"version": life.runner.version, "loader": loader}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another executor was; before the first batch is asked for.

        Raises:
            RunnerError: Items were drawn already.
        """
        if self._life is not None and self._life.cursor is not None:
            raise RunnerError("a state is loaded before the first batch is asked for")
        self._loader_state = state["loader"]


def _given(settled: list[Settled], *, with_outcomes: bool) -> list[Any]:
    if with_outcomes:
        return [one.outcome for one in settled]
    return [one.outcome.value if one.outcome.is_ok else None for one in settled]


def _never_submitted(task_id: int) -> ValueError:
    return ValueError(f"task {task_id} was never submitted, or its outcome was fetched already")
