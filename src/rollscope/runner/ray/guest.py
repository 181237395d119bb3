"""The runner inside an actor: it hosts attempts, and tells how they begin and end.

It keeps no outcomes, tries nothing again and records no sessions: all that is the head's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from rollscope.instrument import default
from rollscope.runner.runner import Runner
from rollscope.runner.tracing import Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollscope.runner.kernel import Kernel, Launcher
    from rollscope.runner.outcome import Outcome
    from rollscope.runner.task import Task

__all__ = ["GuestRunner", "GuestTrace", "Listener"]


class Listener(Protocol):
    """Is told what becomes of attempts."""

    def note_start(self, task: Task) -> None:
        """The first line of an attempt runs."""

    def note_checkpoint(self, task: Task) -> None:
        """A task has left something to go on from."""

    def note_end(self, task: Task, outcome: Outcome) -> None:
        """An attempt has ended."""


class GuestTrace(Trace):
    """Puts what tasks record under the sessions that the head keeps."""

    def __init__(self, name: str, listener: Listener) -> None:
        super().__init__(name, None)
        self._listener = listener
        self.is_on = True  # starts are told to the head, recorded or not

    def refresh(self) -> None:
        """Leave it to `started` what is recorded with."""

    def started(self, task: Task) -> None:
        """Go on under the session of the task, in the context that its code runs in."""
        carrier, task.span = task.span, None
        self._recorder = default._tracer._recorder
        if carrier and self._recorder is not None:
            default.attach(carrier)
            task.span = self._recorder.current.get()  # phases inside are told from it
        if task.version_start is None:  # it has started before, elsewhere
            task.version_start = task.kernel.version
        self._listener.note_start(task)

    def ended_unstarted(self, task: Task) -> None:
        """Leave it to the head what never started."""

    def attempt_ended(self, task: Task) -> None:
        """Leave closing the session to the head."""

    def ended(self, outcomes: Sequence[Outcome]) -> None:
        """Leave closing the session to the head."""

    def ended_without_loop(self, outcomes: Sequence[Outcome]) -> None:
        """Leave closing the session to the head."""

    def held_by(self, holder: str | None, *rest: Any) -> None:
        """Leave it to the head what holds work back."""

    def slots_changed(self, running: int) -> None:
        """Leave it to the head how many run."""


class GuestRunner(Runner):
    """A runner inside an actor, with a loop thread of its own: no call is harmed by its tasks."""

    def __init__(self, listener: Listener, **settings: Any) -> None:
        self._listener = listener
        super().__init__(**settings)

    def _make_launcher(self, kernel: Kernel) -> Launcher:
        listener = self._listener
        kernel.trace = GuestTrace(self.name, listener)
        kernel.trace.use_timers(kernel.timers)
        # What it gives, None, keeps the outcome from the outbox.
        kernel.on_settled = listener.note_end
        kernel.checkpointed = listener.note_checkpoint  # type: ignore[method-assign]
        return super()._make_launcher(kernel)
