"""The demo's training: asynchronous rollouts, updates, weight syncs, checkpoints."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import numpy as np

import rollscope as rs
from rollscope import rollout
from rollscope.demo.episode import Multiply
from rollscope.demo.language import make_problem
from rollscope.demo.learning import Learner, Update
from rollscope.demo.replicas import Replicas

__all__ = ["GROUP", "StepDone", "Training"]

GROUP: Final = 8
_PROMPTS: Final = 12
_MOST_AT_ONCE: Final = 18
_STALENESS: Final = 1
_TRAIN_S_PER_TOKEN: Final = 0.0004
"""What training takes, as if the policy were large."""
_CHECKPOINT_EVERY: Final = 20
_PATIENCE_S: Final = 5.0


class StepDone(NamedTuple):
    """What a step came to."""

    step: int
    update: Update
    sessions: int
    took_s: float
    staleness: int
    """Of the oldest sample."""


class _Problems:
    """Problems without end, in batches."""

    batch_size = _PROMPTS

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __iter__(self) -> Iterator[list[dict[str, Any]]]:
        random = Random(self._seed)  # noqa: S311  (wants repetition, not secrecy)
        number = 0
        while True:
            batch = []
            for _ in range(_PROMPTS):
                batch.append({"id": f"product/{number}", "problem": make_problem(random)})
                number += 1
            yield batch


class Training:
    """Trains on what replicas roll out meanwhile."""

    def __init__(
        self, replicas: Replicas, workflow: Multiply, seed: int, checkpoints: Path
    ) -> None:
        self._replicas = replicas
        self._workflow = workflow
        self._checkpoints = checkpoints
        self._learner = Learner()
        self._problems = _Problems(seed)
        limits = SimpleNamespace(
            consumer_batch_size=_PROMPTS,
            max_concurrent_rollouts=_MOST_AT_ONCE,
            max_head_offpolicyness=_STALENESS,
        )
        self._executor = rollout.WorkflowExecutor(limits, replicas)

    def run(self, steps: int, before_step: Callable[[int], None]) -> Iterator[StepDone]:
        """Train, step by step.

        Args:
            steps: How many.
            before_step: Called with the number of each step before it begins.
        """
        self._executor.initialize()
        rs.gauge("slots", _MOST_AT_ONCE * GROUP, pool=self._executor.runner.name)
        try:
            self._publish()
            for step in range(steps):
                before_step(step)
                yield self._step(step)
        finally:
            # What is still under way ends first, else it would fail on closed connections.
            self._executor.runner.drain(_PATIENCE_S, mode="cancel")
            self._workflow.close(self._replicas)
            self._executor.destroy()

    def _step(self, step: int) -> StepDone:
        began = time.monotonic()
        with rs.step(step, version=self._learner.version):
            with rs.span("batch.wait", category="sync"):
                groups = self._executor.prepare_batch(
                    self._problems, self._workflow, group_size=GROUP
                )
                self._executor.ack()
            staleness = self._learner.version - _oldest(groups)
            with rs.span("train", category="compute") as span:
                update = self._learner.update(groups)
                time.sleep(update.tokens * _TRAIN_S_PER_TOKEN)
                span.set(tokens=update.tokens, clipped=round(update.clipped, 4))
            self._publish()
            if step % _CHECKPOINT_EVERY == _CHECKPOINT_EVERY - 1:
                self._save(step)
        rs.gauge("reward.mean", update.reward)
        rs.gauge("policy.entropy", update.entropy)
        sessions = sum(len(group["rewards"]) for group in groups)
        return StepDone(step, update, sessions, time.monotonic() - began, staleness)

    def _publish(self) -> None:
        """Give the replicas the newest weights; nothing new is asked of them meanwhile."""
        with rs.span("weights.sync", category="comm", version=self._learner.version):
            self._executor.pause()
            try:
                self._replicas.publish(self._learner.policy.to_bytes(), self._learner.version)
                self._executor.set_version(self._learner.version)
            finally:
                self._executor.resume()

    def _save(self, step: int) -> None:
        with rs.span("checkpoint", category="io", step=step):
            self._checkpoints.mkdir(parents=True, exist_ok=True)
            np.save(self._checkpoints / f"step_{step}.npy", self._learner.policy.weights)


def _oldest(groups: list[Any]) -> int:
    return min(int(group["versions"][group["loss_mask"] == 1].min()) for group in groups)
