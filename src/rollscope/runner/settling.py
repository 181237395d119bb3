"""What becomes of a task that has ended: the record of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollscope.runner.outcome import Attempt, Outcome, Status

if TYPE_CHECKING:
    from rollscope.runner.task import Task

__all__ = ["attempt_of", "outcome_of"]


def outcome_of(task: Task, version_end: int | None) -> Outcome:
    """Make the outcome of a task.

    Args:
        task: As it has ended.
        version_end: The weight version as it is now.
    """
    rare = task.rare
    status, options = task.status, task.options
    start = task.version_start
    versions: tuple[int, ...] = ()
    if start is not None:
        versions = (start, *rare.versions) if rare is not None and rare.versions else (start,)
    attempt_ns, finished_ns = task.attempt_ns, task.finished_ns or task.submitted_ns
    execution_ns = 0 if attempt_ns is None else finished_ns - attempt_ns
    # By position: naming two dozen fields takes twice as long.
    return Outcome(
        task.id,
        status,
        task.reason,
        task.value,
        None if rare is None else rare.failure,
        "" if rare is None else rare.detail,
        options.group,
        options.tier,
        options.tags,
        1 if rare is None else rare.attempt,
        task.submitted_ns,
        task.admitted_ns,
        attempt_ns if rare is None else task.started_ns,
        finished_ns,
        start,
        version_end if start is not None else None,
        versions,
        rare.partial if rare is not None and status is not Status.OK else None,
        (*rare.history, attempt_of(task)) if rare is not None and rare.history else (),
        execution_ns if rare is None else rare.execution_ns + execution_ns,
        task.span,
    )


def attempt_of(task: Task) -> Attempt:
    """Describe the attempt that has just ended."""
    actor = getattr(task.runs_in, "actor", None)
    return Attempt(task.attempt, task.attempt_ns, task.finished_ns, task.status, task.reason, actor)
