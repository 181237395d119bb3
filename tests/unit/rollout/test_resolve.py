from __future__ import annotations

import logging
from typing import Any

import pytest

from rollscope.rollout.agent import AgentWorkflow
from rollscope.rollout.engine import Engine
from rollscope.rollout.resolve import needs_client, resolve_workflow
from rollscope.rollout.trajectory import Trajectory
from rollscope.rollout.workflow import RolloutWorkflow

HERE = "tests.unit.rollout.test_resolve"


class Workflow(RolloutWorkflow):
    def __init__(self, size: int = 1) -> None:
        self.size = size

    async def arun_episode(self, engine: Engine, data: Any) -> Trajectory | None:
        return None


class Agent:
    def __init__(self, size: int = 1) -> None:
        self.size = size

    async def run(self, data: Any, **extra: Any) -> float:
        return 1.0


class Runs:
    def run(self, data: Any) -> float:
        return 1.0


INSTANCE = Workflow(5)
TEXT = f"{HERE}.TEXT"


def test_a_workflow_cannot_be_made_without_an_episode() -> None:
    with pytest.raises(TypeError, match="arun_episode"):
        RolloutWorkflow()  # type: ignore[abstract]


@pytest.mark.parametrize("given", [INSTANCE, f"{HERE}.INSTANCE", f"{HERE}:INSTANCE"])
def test_an_object_or_its_path_is_used_as_it_is(
    given: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert getattr(resolve_workflow(given), "size", None) == 5
    assert not caplog.records


def test_arguments_for_an_object_are_ignored_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert resolve_workflow(INSTANCE, {"size": 2}) is INSTANCE
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "workflow_kwargs is ignored" in caplog.text


@pytest.mark.parametrize("given", [Workflow, f"{HERE}.Workflow"])
def test_a_class_or_its_path_is_made_an_object_with_the_arguments(given: object) -> None:
    assert getattr(resolve_workflow(given, {"size": 3}), "size", None) == 3
    assert getattr(resolve_workflow(given, {}), "size", None) == 1


@pytest.mark.parametrize("given", [Workflow, f"{HERE}.Workflow"])
def test_a_class_without_arguments_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match="workflow_kwargs is needed to make a Workflow"):
        resolve_workflow(given)


@pytest.mark.parametrize("given", [Agent(3), Agent, f"{HERE}.Agent"])
def test_an_agent_its_class_or_a_path_becomes_a_workflow(given: object) -> None:
    kwargs = None if isinstance(given, Agent) else {"size": 3}
    resolved = resolve_workflow(given, kwargs)
    assert isinstance(resolved, AgentWorkflow)
    assert getattr(resolved.agent, "size", None) == 3


def test_an_agent_class_needs_no_arguments() -> None:
    resolved = resolve_workflow(Agent)
    assert isinstance(resolved, AgentWorkflow)
    assert getattr(resolved.agent, "size", None) == 1


@pytest.mark.parametrize("path", ["nowhere", "no.such.module", f"{HERE}.NoSuch"])
def test_a_path_that_leads_nowhere_is_a_value_error(path: str) -> None:
    with pytest.raises(ValueError, match=f"Failed to import workflow from string '{path}'"):
        resolve_workflow(path)


@pytest.mark.parametrize("given", [None, 3, len, Runs, Runs(), f"{HERE}.HERE", f"{HERE}.TEXT"])
def test_anything_else_is_a_type_error(given: object) -> None:
    with pytest.raises(TypeError, match="workflow"):
        resolve_workflow(given)


@pytest.mark.parametrize("given", [INSTANCE, Workflow, f"{HERE}.INSTANCE", f"{HERE}.Workflow"])
def test_a_workflow_needs_no_client(given: object) -> None:
    assert not needs_client(given)


@pytest.mark.parametrize("given", [Agent(), Agent, f"{HERE}.Agent", "no.such.module", None])
def test_everything_else_needs_one(given: object) -> None:
    assert needs_client(given)
