"""The facts around one running episode: which task it belongs to, which attempt, for what.

The executor binds them; workflows, reward functions and engines read them with `context`.
"""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollscope.rollout.workflow import RolloutWorkflow

__all__ = [
    "RolloutContext",
    "WorkflowTaskInput",
    "bind_context",
    "context",
    "episode_input",
    "stat_scope",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutContext:
    """What is known of the running episode; all unknown outside of one."""

    task_id: int | None = None
    session_id: int | str | None = None
    attempt: int = 1
    version: int | None = None
    """The policy version at the start."""
    is_eval: bool = False
    deadline: int | None = None
    """When its time limit ends, in nanoseconds on the runner's clock; None if it has none."""
    partial: Any = None
    """What the attempt before this one left with `ctx.checkpoint`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowTaskInput(RolloutContext):
    """A data item with what is known of its episode."""

    data: Any


_current: ContextVar[RolloutContext | None] = ContextVar("rollscope_rollout_context", default=None)
_NOWHERE = RolloutContext()


def context() -> RolloutContext:
    """Say what is known of the episode that runs here."""
    return _current.get() or _NOWHERE


def stat_scope() -> str:
    """Say under which name statistics of this episode belong: `rollout` or `eval-rollout`."""
    return "eval-rollout" if context().is_eval else "rollout"


@contextmanager
def bind_context(bound: RolloutContext) -> Iterator[RolloutContext]:
    """Make an episode's facts known to all that runs inside the block."""
    token = _current.set(bound)
    try:
        yield bound
    finally:
        _current.reset(token)


def episode_input(workflow: RolloutWorkflow, data: Any) -> Any:  # noqa: ANN401  (the host's item)
    """Give what a workflow wants to be called with: the bare item, or all that is known."""
    if not workflow.takes_task_input:
        return data
    known = context()
    names = (field.name for field in dataclasses.fields(RolloutContext))
    return WorkflowTaskInput(data=data, **{name: getattr(known, name) for name in names})
