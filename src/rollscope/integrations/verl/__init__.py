"""verl's metrics and agent loops in a run: a backend of its `Tracking`, and its rollout trace.

    trainer.logger='["console","rollscope"]'

with `install()` before, or `VERL_USE_EXTERNAL_MODULES=rollscope.integrations.verl.installed` in the
environment. Nothing of verl is imported before that, nor torch or Ray at all.
"""

from rollscope.integrations.verl.installing import install, uninstall
from rollscope.integrations.verl.rollouts import (
    RolloutTraceConfig,
    rollout_trace_attr,
    rollout_trace_op,
)
from rollscope.integrations.verl.tracking import TrackingBackend

__all__ = [
    "RolloutTraceConfig",
    "TrackingBackend",
    "install",
    "rollout_trace_attr",
    "rollout_trace_op",
    "uninstall",
]
