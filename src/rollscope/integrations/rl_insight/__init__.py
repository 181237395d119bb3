"""The stand-in for `rl_insight`: its names, both forms of them, over Rollscope's recorder.

    import rollscope.integrations.rl_insight as rl_insight

    rl_insight.init(project="verl", experiment_name="ppo")
    with rl_insight.trace_state("generate", state_lane_id="replica_0"):
        ...
    rl_insight.metric_gauge("critic_rewards_mean", 0.5)
    rl_insight.finish()

Without `init` every call is a no-op. RL-Insight itself is never imported.
"""

import sys

from rollscope._version import __version__
from rollscope.integrations.rl_insight import agent_loop
from rollscope.integrations.rl_insight.agent_loop import agent_loop_session
from rollscope.integrations.rl_insight.lifecycle import close, finish, init
from rollscope.integrations.rl_insight.metrics import (
    metric_count,
    metric_distribution,
    metric_gauge,
    metric_histogram,
    metric_value,
)
from rollscope.integrations.rl_insight.targets import update_prometheus_config
from rollscope.integrations.rl_insight.tracing import trace_op, trace_span, trace_state

__all__ = [
    "__version__",
    "agent_loop_session",
    "close",
    "finish",
    "init",
    "install",
    "metric_count",
    "metric_distribution",
    "metric_gauge",
    "metric_histogram",
    "metric_value",
    "trace_op",
    "trace_span",
    "trace_state",
    "update_prometheus_config",
]

_NAME = "rl_insight"


def install() -> None:
    """Have `import rl_insight` give this module, for frameworks that import it by that name.

    Raises:
        RuntimeError: RL-Insight itself is imported already.
    """
    here = sys.modules[__name__]
    there = sys.modules.get(_NAME)
    if there is not None and there is not here:
        raise RuntimeError("rl_insight is imported already; install the stand-in before that")
    sys.modules[_NAME] = here
    sys.modules[f"{_NAME}.agent_loop"] = agent_loop
