"""One data item on its way to a trajectory: its samples are run, joined and judged here."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from rollscope.errors import RollscopeError
from rollscope.instrument import default as tracing
from rollscope.rollout.episode import RolloutContext, bind_context, episode_input
from rollscope.rollout.trajectory import (
    Trajectory,
    check_trajectory_format,
    concat_padded,
    is_interactions,
)
from rollscope.runner import ctx
from rollscope.runner.context import current_task
from rollscope.runner.outcome import Failure, Reason, Status, describe_failure
from rollscope.runner.task import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollscope.rollout.accept import Filter
    from rollscope.rollout.engine import Engine
    from rollscope.rollout.loader import Drawn
    from rollscope.rollout.workflow import RolloutWorkflow
    from rollscope.runner.task import Task

__all__ = ["Episode", "EpisodeFailed", "Judgement", "Sampling"]

_log = logging.getLogger("rollscope.rollout")


class EpisodeFailed(RollscopeError):
    """What a workflow gave cannot be used, or the filter has failed; the cause is attached."""

    def __init__(self, reason: Literal["invalid_trajectory", "filter_error"], message: str) -> None:
        """Keep the reason that the outcome gets."""
        super().__init__(message)
        self.reason = reason


class Judgement(msgspec.Struct, frozen=True):
    """What became of a whole item."""

    status: Status
    reason: Reason
    trajectory: Trajectory | None = None
    failure: Failure | None = None
    samples: frozenset[int] = frozenset()
    """The tasks whose samples it is about."""


class Episode:
    """One data item, and what is known of its samples."""

    __slots__ = (
        "accept",
        "data",
        "drawn",
        "is_admitted",
        "is_eval",
        "judgement",
        "open_samples",
        "owner",
        "replaced",
        "samples",
        "size",
        "task_id",
        "workflow",
    )

    def __init__(
        self,
        data: Any,  # noqa: ANN401  (the item is the host's)
        workflow: RolloutWorkflow,
        accept: Filter,
        size: int,
        *,
        is_eval: bool,
        owner: object | None = None,
        drawn: Drawn | None = None,
    ) -> None:
        self.task_id = -1
        """Given when it is submitted."""
        self.data, self.workflow, self.accept = data, workflow, accept
        self.size = size
        self.is_eval = is_eval
        self.owner = owner
        """The call that its outcome is for; None where anybody may have it."""
        self.drawn = drawn
        """Where in a data loader it was drawn."""
        self.is_admitted = False
        self.samples: dict[int, Trajectory] = {}
        """What its tasks have made so far."""
        self.open_samples = size
        """How many are not known to have ended; members that never ran are not noticed here."""
        self.replaced = 0
        self.judgement: Judgement | None = None

    @property
    def key(self) -> str:
        """What names it in the trace."""
        named = self.data.get("id") if isinstance(self.data, dict) else None
        return f"rollout/{self.task_id}" if named is None else str(named)


class Sampling:
    """Runs samples with one engine, and judges what they have made.

    Args:
        engine: What workflows generate with.
        checks_format: Whether to look closely at what workflows give.
    """

    def __init__(self, engine: Engine, *, checks_format: bool = False) -> None:
        self._engine = engine
        self._checks_format = checks_format
        self._expected_keys: frozenset[str] | None = None

    async def run(self, episode: Episode) -> Trajectory | Verdict:
        """Run one sample; the last one of an episode judges the whole."""
        task = current_task.get()
        assert task is not None  # noqa: S101  (a runner calls this)
        try:
            trajectory = await self._play(episode)
        except BaseException:
            if _ends_for_good(episode, task):
                await self._sample_ended(episode)
            raise
        if trajectory is None:
            await self._sample_ended(episode)
            return Verdict(Status.REJECTED, Reason.RETURNED_NONE)
        _note_reward(trajectory)
        episode.samples[task.id] = trajectory
        judgement = await self._sample_ended(episode)
        if episode.size > 1 or judgement is None or judgement.status is Status.OK:
            return trajectory
        return Verdict(judgement.status, judgement.reason, trajectory)

    async def _play(self, episode: Episode) -> Trajectory | None:
        task = current_task.get()
        assert task is not None  # noqa: S101  (a runner calls this)
        known = RolloutContext(
            task_id=episode.task_id,
            session_id=f"{episode.task_id}/{task.options.sample}",
            attempt=task.attempt,
            version=task.version_start,
            is_eval=episode.is_eval,
            deadline=ctx.deadline,
            partial=ctx.partial,
        )
        with bind_context(known):
            data = episode_input(episode.workflow, episode.data)
            made = await episode.workflow.arun_episode(self._engine, data)
        try:
            return self._usable(made)
        except Exception as error:
            raise EpisodeFailed("invalid_trajectory", str(error)) from error

    def _usable(self, made: object) -> Trajectory | None:
        """Check what a workflow gave and make arrays of it."""
        if self._checks_format:
            check_trajectory_format(made, expected_keys=self._expected_keys)
        if is_interactions(made):
            made = concat_padded([one.to_tensor_dict() for one in made.values()])
        elif self._checks_format and isinstance(made, dict) and self._expected_keys is None:
            self._expected_keys = frozenset(made)
        if made is not None and not isinstance(made, dict):
            raise TypeError(f"a workflow gives a dict or None, not {type(made).__qualname__}")
        return made

    async def _sample_ended(self, episode: Episode) -> Judgement | None:
        """Judge the episode if that was its last sample."""
        episode.open_samples -= 1
        if episode.open_samples > 0 or not episode.samples:
            return None
        samples = frozenset(episode.samples)
        try:
            joined = _join(episode)
            is_good = await _ask(episode, joined)
        except EpisodeFailed as error:
            episode.judgement = _failed(error, samples)
            if episode.size == 1:
                raise
        else:
            episode.judgement = _judged(joined, samples, is_good=is_good)
        return episode.judgement

    def judge_now(self, episode: Episode, samples: frozenset[int]) -> Judgement:
        """Judge at once what there is of an episode, where no sample was left to do it."""
        episode.samples = {key: made for key, made in episode.samples.items() if key in samples}
        try:
            joined = _join(episode)
            asking = _ask(episode, joined)
            asking.send(None)
        except StopIteration as answer:
            return _judged(joined, samples, is_good=bool(answer.value))
        except EpisodeFailed as error:
            return _failed(error, samples)
        asking.close()  # it wants to be awaited, and nobody is left to do so
        unanswered = EpisodeFailed("filter_error", "the runner ended before the filter answered")
        return _failed(unanswered, samples)


async def _ask(episode: Episode, joined: Trajectory) -> bool:
    """Ask the filter."""
    try:
        return await episode.accept(joined)
    except Exception as error:
        raise EpisodeFailed("filter_error", f"{type(error).__qualname__}: {error}") from error


def _ends_for_good(episode: Episode, task: Task) -> bool:
    """Whether no other member comes for a sample that has ended with an error.

    Where somebody has ended it, there is nothing to judge; and a pause lets it begin again.
    """
    if episode.size == 1 or (task.stop is not None and task.stop[0] is Status.CANCELLED):
        return False
    if episode.replaced >= episode.size:
        return True
    episode.replaced += 1
    return False


def _join(episode: Episode) -> Trajectory:
    made = list(episode.samples.values())
    missing = episode.size - len(made)
    if missing > 0:
        _log.warning("task %s goes on without %d of its samples", episode.task_id, missing)
    try:
        return made[0] if len(made) == 1 else concat_padded(made)
    except Exception as error:
        raise EpisodeFailed("invalid_trajectory", str(error)) from error


def _judged(joined: Trajectory, samples: frozenset[int], *, is_good: bool) -> Judgement:
    if is_good:
        return Judgement(Status.OK, Reason.ACCEPTED, joined, samples=samples)
    return Judgement(Status.REJECTED, Reason.FILTERED, joined, samples=samples)


def _failed(error: EpisodeFailed, samples: frozenset[int]) -> Judgement:
    _log.error("an episode cannot be used", exc_info=error)
    failure = describe_failure(error)
    return Judgement(Status.FAILED, Reason(error.reason), failure=failure, samples=samples)


def _note_reward(trajectory: Mapping[str, Any]) -> None:
    """Keep the mean reward of a sample with its session."""
    rewards = trajectory.get("rewards")
    if rewards is None or not hasattr(rewards, "tolist"):
        return
    listed = rewards.tolist()
    values = listed if isinstance(listed, list) else [listed]
    if values and all(isinstance(value, int | float) for value in values):
        tracing.current().set(reward=sum(values) / len(values))
