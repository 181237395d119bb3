"""Running an agent, which knows a chat client but nothing of workflows, as a workflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from rollscope.rollout.workflow import RolloutWorkflow

if TYPE_CHECKING:
    from rollscope.rollout.engine import Engine
    from rollscope.rollout.trajectory import Trajectory

__all__ = ["Agent", "AgentClient", "AgentWorkflow", "MakeClient"]


class Agent(Protocol):
    """Whatever solves an item with a chat client, and says what that was worth."""

    async def run(self, data: Any, **extra: Any) -> float | Mapping[str, float]:  # noqa: ANN401
        """Solve an item; `extra["client"]` is the client.

        Returns:
            The reward of the last completion, or rewards by completion id.
        """


class AgentClient(Protocol):
    """What is asked of the client that an agent was given."""

    def set_reward(self, interaction_id: str, reward: float, /) -> None:
        """Say what one completion was worth."""

    def set_last_reward(self, reward: float, /) -> None:
        """Say what the last completion was worth."""

    def export_interactions(self, style: Any, /) -> dict[str, Any]:  # noqa: ANN401  (a literal)
        """Give all interactions by their id."""


MakeClient = Callable[["Engine"], AgentClient]
"""Gives a fresh client for one episode."""


class AgentWorkflow(RolloutWorkflow):
    """Lets an agent solve the item and returns the interactions that it had."""

    def __init__(self, agent: Agent, make_client: MakeClient | None = None) -> None:
        """Run an agent.

        Args:
            agent: Any object with `async run(data, **extra)`.
            make_client: Gives a client for an engine; if not given, a `RolloutClient` with the
                engine's own tokenizer.
        """
        self.agent = agent
        self._make_client = make_client or _default_client

    async def arun_episode(self, engine: Engine, data: Any) -> Trajectory | None:  # noqa: ANN401
        """Let the agent run once.

        Raises:
            ValueError: It returned something other than a reward or rewards by completion id.
        """
        client = self._make_client(engine)
        result = await self.agent.run(data, client=client)
        if isinstance(result, Real):
            client.set_last_reward(float(result))
        elif _are_rewards(result):
            for completion_id, reward in result.items():
                client.set_reward(completion_id, float(reward))
        else:
            raise ValueError(
                "an agent returns the reward of its last completion, or rewards by completion id; "
                f"{type(self.agent).__qualname__}.run returned a {type(result).__name__}"
            )
        return client.export_interactions("individual") or None


def _are_rewards(result: object) -> TypeGuard[Mapping[str, float]]:
    return isinstance(result, Mapping) and all(
        isinstance(key, str) and isinstance(reward, Real) for key, reward in result.items()
    )


def _default_client(engine: Engine) -> AgentClient:
    tokenizer = getattr(engine, "tokenizer", None)
    if tokenizer is None:
        raise ValueError(
            "an agent needs a client, and this engine has no `tokenizer` to make one with; "
            "give `make_client`"
        )
    from rollscope.rollout.client import RolloutClient

    return RolloutClient(engine, tokenizer)
