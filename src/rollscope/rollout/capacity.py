"""How much may be out at a time: the executor's settings, and who counts."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rollscope.runner.compat import StalenessManager

if TYPE_CHECKING:
    from rollscope.runner.gates.accounting import VersionProvider

__all__ = ["EngineVersion", "ExecutorSettings", "data_parallel_size", "make_manager"]

_log = logging.getLogger("rollscope.rollout")

_QUEUED_PER_SLOT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSettings:
    """What an executor is told by the configuration of its host."""

    consumer_batch_size: int = 1
    max_concurrent_rollouts: int = 1
    max_staleness: int = 0
    queue_size: int = _QUEUED_PER_SLOT
    enable_rollout_tracing: bool = False
    check_trajectory_format: bool = False
    dump_to_file: Any = False
    """True, or the folder to write to."""
    tokenizer_path: str | None = None

    @classmethod
    def read(cls, config: object) -> ExecutorSettings:
        """Read the settings from any object that has some of them as attributes."""

        def given(name: str, default: Any) -> Any:  # noqa: ANN401  (a setting of any type)
            value = getattr(config, name, None)
            return default if value is None else value

        batch = given("consumer_batch_size", 1)
        concurrent = given("max_concurrent_rollouts", batch)
        return cls(
            consumer_batch_size=batch,
            max_concurrent_rollouts=concurrent,
            max_staleness=given("max_head_offpolicyness", 0),
            queue_size=given("queue_size", _QUEUED_PER_SLOT * max(1, concurrent)),
            enable_rollout_tracing=given("enable_rollout_tracing", False),
            check_trajectory_format=given("check_trajectory_format", False),
            dump_to_file=given("dump_to_file", False),
            tokenizer_path=given("tokenizer_path", None),
        )


class EngineVersion:
    """The version of an engine's weights; the last one known while it cannot be asked."""

    def __init__(self, engine: VersionProvider) -> None:
        self._engine = engine
        self._known = 0
        self._is_told = False

    def get_version(self) -> int:
        """Give the version in force."""
        try:
            self._known = self._engine.get_version()
            self._is_told = False
        except Exception:  # an engine may be far away, and its moods must not end the runner
            if not self._is_told:
                self._is_told = True
                _log.exception("the engine does not tell its version; %d is assumed", self._known)
        return self._known


def data_parallel_size(given: int | None) -> int:
    """Say among how many processes the rollouts are shared out: as given, else all of torch's."""
    if given is not None:
        return max(1, given)
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    return int(distributed.get_world_size())


def make_manager(
    settings: ExecutorSettings, version: VersionProvider, share_among: int
) -> StalenessManager:
    """Make the counters of this process, with its share of slots and batch.

    A run that begins at a later version is a resumed one: its window opens as wide as a new one's.
    """
    manager = StalenessManager(
        version,
        max(1, settings.max_concurrent_rollouts // share_among),
        max(1, settings.consumer_batch_size // share_among),
        settings.max_staleness,
    )
    resumed_at = version.get_version()
    if resumed_at > 0:
        manager.on_version_recovered(resumed_at)
    return manager
