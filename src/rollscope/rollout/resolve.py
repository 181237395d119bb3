"""Which objects may stand for a workflow, and what each becomes."""

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING, Any, TypeGuard

from rollscope.rollout.agent import AgentWorkflow
from rollscope.rollout.imports import import_object
from rollscope.rollout.workflow import RolloutWorkflow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollscope.rollout.agent import Agent, MakeClient

__all__ = ["needs_client", "resolve_workflow"]

_log = logging.getLogger("rollscope")


def resolve_workflow(
    workflow: object,
    workflow_kwargs: Mapping[str, Any] | None = None,
    *,
    make_client: MakeClient | None = None,
) -> RolloutWorkflow:
    """Make a workflow of whatever stands for one.

    Args:
        workflow: A workflow, its class, an agent (any object with `async run(data, **extra)`), its
            class, or an import path to one of these.
        workflow_kwargs: What to make an object of a class with; a workflow's class needs it.
        make_client: Gives an agent's client for an engine.

    Raises:
        ValueError: A path cannot be imported, or a workflow's class came without arguments.
        TypeError: It is none of these.
    """
    if isinstance(workflow, str):
        try:
            found = import_object(workflow)
        except ImportError as error:
            raise ValueError(
                f"Failed to import workflow from string {workflow!r}: {error}"
            ) from error
        if isinstance(found, str):  # a path to a path could go round for ever
            raise TypeError(f"{workflow} is text, not a workflow")
        return resolve_workflow(found, workflow_kwargs, make_client=make_client)
    if isinstance(workflow, type):
        made = _make(workflow, workflow_kwargs)
    else:
        made = workflow
        if workflow_kwargs is not None:
            _log.warning("workflow_kwargs is ignored: the workflow is an object already")
    if isinstance(made, RolloutWorkflow):
        return made
    if _is_agent(made):
        return AgentWorkflow(made, make_client)
    raise TypeError(_not_a_workflow(made))


def needs_client(workflow: object) -> bool:
    """Say whether something runs through a client; it does unless it is known to be a workflow."""
    if isinstance(workflow, str):
        try:
            workflow = import_object(workflow)
        except ImportError:
            return True
    if isinstance(workflow, type):
        return not issubclass(workflow, RolloutWorkflow)
    return not isinstance(workflow, RolloutWorkflow)


def _make(kind: type, kwargs: Mapping[str, Any] | None) -> object:
    if issubclass(kind, RolloutWorkflow):
        if kwargs is None:
            raise ValueError(
                f"workflow_kwargs is needed to make a {kind.__qualname__}; "
                "give {} if it takes no arguments"
            )
    elif not _can_run(kind):
        raise TypeError(_not_a_workflow(kind))
    return kind(**(kwargs or {}))


def _is_agent(candidate: object) -> TypeGuard[Agent]:
    return _can_run(candidate)


def _can_run(candidate: object) -> bool:
    return inspect.iscoroutinefunction(getattr(candidate, "run", None))


def _not_a_workflow(candidate: object) -> str:
    return (
        f"{candidate!r:.200} is no workflow: give a RolloutWorkflow, an object with "
        "`async def run(self, data, **extra)`, a class of these, or an import path"
    )
