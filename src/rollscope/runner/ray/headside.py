"""What the head records and limits for tasks that run elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from rollscope.instrument import default
from rollscope.runner.limits import Limits
from rollscope.runner.tracing import Trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rollscope.runner.outcome import Outcome
    from rollscope.runner.task import Task

__all__ = ["HeadLimits", "HeadTrace"]


class HeadTrace(Trace):
    """Opens a session when its task is leased, so that what the actor records can hang under it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._leased: set[int] = set()
        """Tasks with a session that has not started."""

    def lease(self, task: Task) -> dict[str, str]:
        """Open the session of an attempt, and give what names it."""
        tracer = self._tracer or default._tracer
        if tracer._recorder is None:
            return {}
        if task.id not in self._leased:
            task.context = task.origin.copy()
            task.context.run(super().started, task)
            self._leased.add(task.id)
        carrier: dict[str, str] = task.context.run(tracer.inject)
        return carrier

    def recording(self) -> dict[str, Any] | None:
        """Give the settings that make an actor record into the same run; None if nothing does."""
        tracer = self._tracer or default._tracer
        return None if tracer._recorder is None else tracer._portable_settings()

    def started(self, task: Task) -> None:
        """Put the start of the session where the actor says that it was."""
        if task.id not in self._leased:
            return
        self._leased.discard(task.id)
        span = task.span
        if span is None or task.attempt_ns is None:
            return
        span.start_ns = task.attempt_ns
        if task.version_start is not None:
            span.fields["version_start"] = task.version_start

    def attempt_ended(self, task: Task) -> None:
        """Record an attempt that is followed by another."""
        self._leased.discard(task.id)
        super().attempt_ended(task)

    def ended(self, outcomes: Sequence[Outcome]) -> None:
        """Note outcomes that were made."""
        if self._leased:
            self._leased.difference_update(outcome.id for outcome in outcomes)
        super().ended(outcomes)


class HeadLimits(Limits):
    """Leaves it to the actor to see whether a task gets on: phases are seen only there."""

    def watch(self, task: Task) -> None:
        """Begin to count for an attempt that has started."""
        options = task.options
        if options.stall_s is None:
            super().watch(task)
            return
        task.options = replace(options, stall_s=None)
        try:
            super().watch(task)
        finally:
            task.options = options
