"""AReaL's names over the runner, so that code written for it needs no change."""

from rollscope.runner.compat.exits import register_loop_cleanup, unregister_loop_cleanup
from rollscope.runner.compat.staleness import RolloutStat, StalenessManager, VersionProvider
from rollscope.runner.compat.task_runner import (
    DEFAULT_POLL_SLEEP_TIME,
    DEFAULT_POLL_WAIT_TIME,
    AsyncTaskRunner,
    TaskQueueFullError,
    TimedResult,
)

__all__ = [
    "DEFAULT_POLL_SLEEP_TIME",
    "DEFAULT_POLL_WAIT_TIME",
    "AsyncTaskRunner",
    "RolloutStat",
    "StalenessManager",
    "TaskQueueFullError",
    "TimedResult",
    "VersionProvider",
    "register_loop_cleanup",
    "unregister_loop_cleanup",
]
