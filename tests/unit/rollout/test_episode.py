from __future__ import annotations

import asyncio
import dataclasses

import pytest

from rollscope.rollout.engine import Engine
from rollscope.rollout.episode import (
    RolloutContext,
    WorkflowTaskInput,
    bind_context,
    context,
    episode_input,
    stat_scope,
)
from rollscope.rollout.trajectory import Trajectory
from rollscope.rollout.workflow import RolloutWorkflow


class Plain(RolloutWorkflow):
    async def arun_episode(self, engine: Engine, data: object) -> Trajectory | None:
        return None


class Informed(Plain):
    takes_task_input = True


def test_outside_of_an_episode_nothing_is_known() -> None:
    assert context() == RolloutContext()
    assert (context().task_id, context().attempt, context().partial) == (None, 1, None)
    assert stat_scope() == "rollout"


def test_inside_a_block_everyone_learns_the_same() -> None:
    known = RolloutContext(task_id=4, is_eval=True)
    with bind_context(known):
        assert context() is known
        assert stat_scope() == "eval-rollout"
    assert stat_scope() == "rollout"


def test_episodes_side_by_side_do_not_mix() -> None:
    async def episode(number: int, barrier: asyncio.Barrier) -> int | None:
        with bind_context(RolloutContext(task_id=number)):
            await barrier.wait()
            return context().task_id

    async def main() -> list[int | None]:
        barrier = asyncio.Barrier(5)
        return await asyncio.gather(*(episode(number, barrier) for number in range(5)))

    assert asyncio.run(main()) == [0, 1, 2, 3, 4]


def test_a_workflow_gets_the_bare_item_unless_it_asks_for_more() -> None:
    known = RolloutContext(
        task_id=4,
        session_id=9,
        attempt=2,
        version=3,
        is_eval=True,
        deadline=77,
        partial="so far",
    )
    with bind_context(known):
        assert episode_input(Plain(), "item") == "item"
        told = episode_input(Informed(), "item")
    assert told == WorkflowTaskInput(
        data="item",
        task_id=4,
        session_id=9,
        attempt=2,
        version=3,
        is_eval=True,
        deadline=77,
        partial="so far",
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        told.attempt = 3
