"""Steering a runner while it works: cancel, pause, resume, versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from rollscope.errors import SettingError
from rollscope.runner.base import RunnerBase
from rollscope.runner.checks import check
from rollscope.runner.outcome import Reason, Status
from rollscope.runner.task import BACKOFF, QUEUED, RUNNING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rollscope.runner.pausing import PauseMode
    from rollscope.runner.task import Task

__all__ = ["Pause", "Steering"]

_STATUS_OF: Final = {
    Reason.REQUESTED: Status.CANCELLED,
    Reason.GROUP_SETTLED: Status.CANCELLED,
    Reason.STRAGGLER: Status.CANCELLED,
    Reason.CLOSED: Status.CANCELLED,
    Reason.DRAINED: Status.CANCELLED,
    Reason.TOO_OLD: Status.STALE,
    Reason.CUT_BEFORE_UPDATE: Status.STALE,
    Reason.OVERLOAD: Status.DROPPED,
    Reason.BUDGET: Status.DROPPED,
}
"""How tasks end that somebody ends, by the reason given."""


class Steering(RunnerBase):
    """The side of a runner that is steered."""

    # --- cancelling ------------------------------------------------------------------------------

    def cancel(
        self,
        id: int | None = None,
        *,
        group: object | None = None,
        tag: tuple[str, Any] | None = None,
        where: Callable[[Task], bool] | None = None,
        older_than: int | None = None,
        reason: Reason | str = Reason.REQUESTED,
    ) -> int:
        """End tasks: those that wait at once, those that run with a `CancelledError`.

        Args:
            id: The task of this id.
            group: All of a group.
            tag: All that have this label, as name and value.
            where: All that this says true for.
            older_than: All that started with an older version.
            reason: What their outcomes say: one that goes with `cancelled`, `stale` or `dropped`.

        Returns:
            How many are affected.

        Raises:
            SettingError: Not exactly one of the ways to choose is given, or another reason.
        """
        given = [one for one in (id, group, tag, where, older_than) if one is not None]
        if len(given) != 1:
            raise SettingError("cancel takes exactly one of id, group, tag, where, older_than")
        is_right = reason in _STATUS_OF
        check("reason", str(reason), f"one of {', '.join(_STATUS_OF)}", is_right=is_right)
        chosen_reason, status = Reason(reason), _STATUS_OF[Reason(reason)]
        kernel = self._kernel

        def is_chosen(task: Task) -> bool:
            if group is not None:
                return bool(task.group == group)
            if tag is not None:
                return bool(task.tags.get(tag[0], _MISSING) == tag[1])
            if older_than is not None:
                return task.version_start is not None and task.version_start < older_than
            return where is not None and where(task)

        def do() -> int:
            with kernel.lock:
                if id is None:
                    live = list(kernel.live.values())
                else:
                    live = [kernel.live[id]] if id in kernel.live else []
            # Not under the lock: what the caller asks of a task may ask the runner in turn.
            chosen = live if id is not None else [task for task in live if is_chosen(task)]
            waiting = [task for task in chosen if task.state in (QUEUED, BACKOFF)]
            running = [task for task in chosen if task.state == RUNNING]
            count = kernel.stops.end_waiting(waiting, status, chosen_reason)
            count += sum(kernel.stops.stop(task, status, chosen_reason) for task in running)
            kernel.figures.cancels += count
            return count

        count: int = self._on_loop(do)
        return count

    def cut(self, older_than: int) -> int:
        """End running tasks that would be too old after the next update; give how many."""
        return self.cancel(older_than=older_than, reason=Reason.CUT_BEFORE_UPDATE)

    # --- pausing ---------------------------------------------------------------------------------

    def pause(self, owner: object | None = None, mode: PauseMode = "finish") -> Pause:
        """Start nothing new until resumed; outcomes keep flowing and submits are taken.

        Args:
            owner: Who pauses; the runner is paused while any owner holds it. One that does
                already goes on as it began.
            mode: What running tasks do until it is quiet: `finish`, `hold` at their next
                `ctx.pause_point()`, or `abort` to start again after it, from their checkpoint.
        """
        kernel = self._kernel
        held_by = object() if owner is None else owner
        with kernel.lock:
            is_new = kernel.pauses.add(held_by, mode)
            mode = kernel.pauses.owners[held_by]
        if mode == "abort" and is_new:
            kernel.call_loop(self._abort_running)
        kernel.wake()
        return Pause(self, held_by, mode)

    def _abort_running(self) -> None:
        for task in self._kernel.running_tasks():
            self._kernel.stops.abort(task)

    def resume(self, owner: object | None = None, *, all: bool = False) -> bool:
        """Let go of a pause; true if the runner is paused no more.

        Args:
            owner: Who lets go; nothing happens if it holds nothing.
            all: Clear every pause.
        """
        kernel = self._kernel
        with kernel.lock:
            if all:
                kernel.pauses.clear()
            else:
                kernel.pauses.remove(owner)
            is_paused = kernel.pauses.is_paused
        kernel.call_loop(kernel.pauses.let_go)
        kernel.wake()
        return not is_paused

    @property
    def is_paused(self) -> bool:
        """Whether anybody holds the runner."""
        return self._kernel.pauses.is_paused

    def _is_quiet(self, mode: PauseMode) -> bool:
        """Whether no started task touches the engine."""
        kernel = self._kernel
        if mode == "hold":
            return all(map(kernel.pauses.is_held, kernel.running_tasks()))
        return not kernel.running

    # --- versions --------------------------------------------------------------------------------

    @property
    def version(self) -> int | None:
        """The weight version, if one was ever set."""
        return self._kernel.version

    def set_version(self, version: int) -> None:
        """Tell that the weights were updated; wakes admission."""
        kernel = self._kernel
        with kernel.lock:
            kernel.version = version
            if kernel.requeueing is not None:
                kernel.requeueing.run_again()
        if kernel.keeper is not None:
            kernel.keeper.versioned(version)
        for gate in kernel.admission.gates:
            tell = getattr(gate, "set_version", None)
            if tell is not None:
                tell(version)
        kernel.wake()


_MISSING = object()


class Pause:
    """A pause, which `with` lets go of at its end."""

    def __init__(self, runner: Steering, owner: object, mode: PauseMode) -> None:
        self._runner = runner
        self.owner = owner
        self.mode: PauseMode = mode

    def quiesced(self, timeout_s: float | None = None) -> bool:
        """Wait until no started task touches the engine; false if that is not so in time."""
        self._runner._check_may_block()
        return self._runner._until(self._is_quiet, timeout_s)

    async def aquiesced(self, timeout_s: float | None = None) -> bool:
        """As `quiesced`, for coroutines."""
        return await self._runner._auntil(self._is_quiet, timeout_s)

    def _is_quiet(self) -> bool:
        return self._runner._is_quiet(self.mode)

    def resume(self) -> None:
        """Let go."""
        self._runner.resume(self.owner)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.resume()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.resume()
