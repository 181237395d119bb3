"""How the samples of one data item end together: one outcome, counted once, told to the trace."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from rollscope.runner.groups import Group, GroupOutcome, all_ended
from rollscope.runner.groups.group import GroupSpec
from rollscope.runner.outcome import Reason, Status, describe_failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.rollout.samples import Episode, Sampling
    from rollscope.runner import Runner
    from rollscope.runner.groups.group import Call
    from rollscope.runner.task import Task, TaskOptions

__all__ = ["EpisodeGroup"]

_log = logging.getLogger("rollscope.rollout")

_BEFORE_ALL: Final = 1_000_000
"""Priority of a member that takes another's place: its episode holds a slot and waits for it."""
_BY_OTHERS: Final = frozenset({Reason.REQUESTED, Reason.CLOSED, Reason.DRAINED})
"""Why samples end that somebody has ended."""


class EpisodeGroup(Group):
    """The samples of one data item, as a group of the runner.

    A sample that fails is replaced, at most as often as there are samples; one good sample makes
    a good group. A single sample is not replaced.
    """

    def __init__(
        self,
        runner: Runner,
        options: TaskOptions,
        episode: Episode,
        sampling: Sampling,
        on_settled: Callable[[Episode, GroupOutcome], None],
    ) -> None:
        size = episode.size
        spec = GroupSpec(
            size=size,
            need=1,
            spawn=size,
            policy=all_ended(),
            on_fail="replace" if size > 1 else "shrink",
            max_replacements=size,
            deadline_s=None,
            tokens_of=None,
        )
        with runner._kernel.lock:
            group_id = runner._next_id
            runner._next_id += 1
        super().__init__(runner, group_id, spec, options)
        self._episode = episode
        self._sampling = sampling
        self._on_settled = on_settled
        self._of_group = self._options

    def start(self) -> int:
        """Have the runner take all samples; gives the id that the outcome has there."""
        self.spawn_all(self._sampling.run, self._episode)
        return self.id

    def _new_task(self, call: Call) -> Task:
        if self._is_started and self._numbered >= self.spec.spawn:
            self._options = replace(self._of_group, priority=_BEFORE_ALL)
        return super()._new_task(call)

    def _finish(self) -> GroupOutcome:
        outcome = super()._finish()
        try:
            outcome = self._judged(outcome)
        except Exception as error:  # of the host's filter or arrays; the runner must live on
            _log.exception("task %s cannot be judged", self._episode.task_id)
            outcome = _replaced(
                outcome, Status.FAILED, Reason.INVALID_TRAJECTORY, error=describe_failure(error)
            )
        self._on_settled(self._episode, outcome)
        # A timer of the loop may keep the context of a member, and by it this group, for long.
        self._ended, self._replaced, self._episode.judgement = [], [], None
        self._episode.samples.clear()
        return outcome

    def _judged(self, outcome: GroupOutcome) -> GroupOutcome:
        episode = self._episode
        cut = next((one for one in outcome.members if one.reason in _BY_OTHERS), None)
        if cut is not None:  # what is left of it is not what was asked for
            return _replaced(outcome, cut.status, cut.reason)
        if not outcome.is_ok:
            if episode.size > 1:
                return _replaced(outcome, outcome.status, outcome.reason, error=outcome.error)
            (only,) = outcome.members[-1:]
            return _replaced(outcome, only.status, only.reason, error=only.error, value=only.value)
        kept = frozenset(member.id for member in outcome.kept)
        judgement = episode.judgement
        if judgement is None or judgement.samples != kept:
            judgement = self._sampling.judge_now(episode, kept)
        return _replaced(
            outcome,
            judgement.status,
            judgement.reason,
            error=judgement.failure,
            value=judgement.trajectory,
        )


def _replaced(outcome: GroupOutcome, status: Status, reason: Reason, **more: Any) -> GroupOutcome:
    value = more.pop("value", None)
    return replace(outcome, status=status, reason=reason, value=value, **more)
