"""Reinforcement learning on top of the runner: the executor, workflows, trajectories, engines.

Clients are in `rollscope.rollout.client`, reward functions in `rollscope.rollout.reward`.

Importing it starts nothing and loads no array library.
"""

from rollscope.rollout.accept import Filter, blocking, resolve_accept
from rollscope.rollout.agent import AgentWorkflow
from rollscope.rollout.arrays import choose_arrays
from rollscope.rollout.batches import BatchBudgetExceeded
from rollscope.rollout.engine import (
    Engine,
    GenerationConfig,
    ModelRequest,
    ModelResponse,
    generate,
)
from rollscope.rollout.episode import (
    RolloutContext,
    WorkflowTaskInput,
    bind_context,
    context,
    episode_input,
    stat_scope,
)
from rollscope.rollout.executor import WorkflowExecutor
from rollscope.rollout.multi_turn import MultiTurnWorkflow
from rollscope.rollout.resolve import needs_client, resolve_workflow
from rollscope.rollout.rlvr import RLVRWorkflow
from rollscope.rollout.tool_calls import ToolCall, parse_tool_calls
from rollscope.rollout.tools import ToolUseWorkflow
from rollscope.rollout.trajectory import Trajectory, check_trajectory_format, concat_padded
from rollscope.rollout.transcript import Transcript
from rollscope.rollout.vision import VisionRLVRWorkflow
from rollscope.rollout.workflow import RolloutWorkflow

__all__ = [
    "AgentWorkflow",
    "BatchBudgetExceeded",
    "Engine",
    "Filter",
    "GenerationConfig",
    "ModelRequest",
    "ModelResponse",
    "MultiTurnWorkflow",
    "RLVRWorkflow",
    "RolloutContext",
    "RolloutWorkflow",
    "ToolCall",
    "ToolUseWorkflow",
    "Trajectory",
    "Transcript",
    "VisionRLVRWorkflow",
    "WorkflowExecutor",
    "WorkflowTaskInput",
    "bind_context",
    "blocking",
    "check_trajectory_format",
    "choose_arrays",
    "concat_padded",
    "context",
    "episode_input",
    "generate",
    "needs_client",
    "parse_tool_calls",
    "resolve_accept",
    "resolve_workflow",
    "stat_scope",
]
