"""What becomes of a lease that ends in another way than by its task ending."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rollscope.runner.outcome import Failure, Reason, Status

if TYPE_CHECKING:
    from rollscope.runner.kernel import Kernel
    from rollscope.runner.ray.member import Lease
    from rollscope.runner.task import Task

__all__ = ["LOSSES", "hand_back", "recover"]

LOSSES: Final = 3
"""How often a task is started again after what executed it died."""


def recover(kernel: Kernel, lease: Lease, why: str) -> None:
    """Start a task again whose actor is gone, from its last checkpoint, or end it as lost."""
    task = lease.task
    if not lease.is_current:
        kernel.leftovers.forget_attempt(lease)
        return
    if not lease.is_sent:
        hand_back(kernel, lease)
        return
    task.finished_ns = kernel.clock()
    if _ends_now(kernel, task):
        return
    lost_before = sum(one.reason is Reason.LOST for one in task.more().history)
    if lost_before >= LOSSES:
        stop = task.more().stop = (Status.FAILED, Reason.LOST)  # whatever the rules of retries say
        text = f"lost {lost_before + 1} times, the last time because {why}"
        task.end(*stop, failure=Failure("infra", "ActorLost", text, ""), detail=text)
        kernel.ended(task)
        return
    task.end(Status.FAILED, Reason.LOST, detail=why)
    kernel.attempts.requeue(task)


def hand_back(kernel: Kernel, lease: Lease) -> None:
    """Let a task wait at the head again that was leased but never started: no attempt is used."""
    task = lease.task
    if not lease.is_current or _ends_now(kernel, task):
        return
    kernel.attempts.requeue(task, counts=False)


def _ends_now(kernel: Kernel, task: Task) -> bool:
    """End a task that was told to stop; one that a pause has aborted goes on later."""
    if task.stop is None:
        return False
    if task.rare is not None and task.rare.is_aborted:
        task.rare.is_aborted = False
        task.rare.stop = None
        return False
    task.finished_ns = kernel.clock()
    task.end(*task.stop)
    kernel.ended(task)
    return True
