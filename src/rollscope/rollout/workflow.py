"""What a workflow is: how one data item becomes a trajectory, or none.

Which objects may stand for one is told in `resolve`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from rollscope.rollout.engine import Engine
    from rollscope.rollout.trajectory import Trajectory

__all__ = ["RolloutWorkflow"]


class RolloutWorkflow(ABC):
    """Turns one data item into one sample; the base of every workflow.

    One object serves all sessions, many of them at once, so `arun_episode` keeps what belongs to
    one episode in local variables.
    """

    takes_task_input: ClassVar[bool] = False
    """Whether `arun_episode` gets a `WorkflowTaskInput` in place of the bare data item."""

    @abstractmethod
    async def arun_episode(
        self,
        engine: Engine,
        data: Any,  # noqa: ANN401  (the item is the host's)
    ) -> Trajectory | None:
        """Run one episode.

        Args:
            engine: What to generate with.
            data: The item, or the `WorkflowTaskInput` that holds it.

        Returns:
            Arrays of shape [1, tokens] by name, a dict of interactions, or None to reject the
            sample.
        """
