"""The side of a runner that makes groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollscope.errors import SettingError
from rollscope.runner.checks import check_seconds
from rollscope.runner.collecting import Collecting
from rollscope.runner.groups.bias import GroupStats, GroupTally, Lengths
from rollscope.runner.groups.group import Group, GroupSpec, MemberOptions, OnFail
from rollscope.runner.groups.outcome import GroupOutcome
from rollscope.runner.groups.policies import GroupPolicy, all_ended, first
from rollscope.runner.submitting import Submitter, Submitting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rollscope.runner.outcome import Outcome
    from rollscope.runner.task import Task

__all__ = ["Grouping"]

_OURS = frozenset({"id", "group", "sample"})
"""Settings that a group gives its members itself."""


class Grouping(Submitting, Collecting):
    """Makes groups, and turns the outcomes of their members into one."""

    _tally: GroupTally | None = None

    def group(
        self,
        size: int,
        need: int | None = None,
        spawn: int | None = None,
        policy: GroupPolicy | None = None,
        on_fail: OnFail = "replace",
        max_replacements: int | None = None,
        deadline_s: float | None = None,
        tokens_of: Callable[[Outcome], float | None] | None = None,
        **options: Any,
    ) -> Group:
        """Make a group of tasks that share a prompt and are settled together.

        Its members are submitted to it, and start when the last one is there. Their outcomes reach
        nobody by themselves: the runner gives one `GroupOutcome`, after the last member has ended.

        Args:
            size: How many good members are wanted.
            need: With fewer good members the group fails; what the policy waits for, or `size`.
            spawn: How many are started; more than `size` samples more than is needed.
            policy: When it is settled: `all_ended()`, `at_least(k)`, `first(k)` or
                `after(k, multiple=x)`. By default when all have ended or, if more than `size`
                are started, with the first `size` good ones.
            on_fail: What a member that fails leads to: `replace` starts another at once, `shrink`
                goes on without it, `drop` ends the group. Rejected members are never replaced,
                nor any by a runner that takes no more tasks.
            max_replacements: How many are started in place of others; `size` if not given.
            deadline_s: For `at_least`, from the first start of a member.
            tokens_of: Gives the tokens of a member, for the bias figures.
            **options: Fields of `TaskOptions` for all members.

        Raises:
            SettingError: These do not go together.
        """
        spawned = size if spawn is None else spawn
        if policy is None:
            policy = all_ended() if spawned <= size else first(size)
        wanted = size if policy.count is None else policy.count
        spec = GroupSpec(
            size=size,
            need=wanted if need is None else need,
            spawn=spawned,
            policy=policy,
            on_fail=on_fail,
            max_replacements=size if max_replacements is None else max_replacements,
            deadline_s=check_seconds("deadline_s", deadline_s),
            tokens_of=tokens_of,
        )
        spec.check()
        if options.keys() & _OURS:
            raise SettingError("a group numbers its members itself: leave out id, group and sample")
        chosen = Submitter(self, self._options).options(**options)._options
        with self._kernel.lock:
            group_id = self._next_id
            self._next_id += 1
        return Group(self, group_id, spec, chosen)

    def group_stats(self) -> GroupStats:
        """Give figures over the last 1,000 groups: how much cutting favours short answers."""
        with self._kernel.lock:
            return (self._tally or GroupTally()).stats()

    # --- what groups need of their runner --------------------------------------------------------

    def _take_group(self, group_id: int, tasks: Sequence[Task]) -> None:
        """Accept all members, or none."""
        kernel = self._kernel
        with kernel.lock:
            self._expect_group(group_id)
        try:
            self._accept(tasks)
        except BaseException:
            with kernel.lock:
                kernel.groups.discard(group_id)
            raise

    def _expect_group(self, group_id: int) -> None:
        """Be ready for the members of a group to end; under the lock."""
        kernel = self._kernel
        kernel.on_settled, kernel.has_groups = _to_group, True
        kernel.groups.add(group_id)

    def _take_replacement(self, task: Task) -> bool:
        """Have a member start before all that wait, full inbox or not; false if none may now.

        It takes the place of one that had its turn already. On the loop thread.
        """
        kernel = self._kernel
        with kernel.lock:
            if self._refusal is not None or kernel.error is not None:
                return False
            self._count_in([task])
        kernel.queues.push(task, front=True)
        if task.options.queue_timeout_s is not None:
            kernel.limits.watch_queue(task)
        kernel.signal()
        return True

    def _group_ended(self, outcome: GroupOutcome, times: Lengths, tokens: Lengths | None) -> None:
        cut = sum(one.started_ns is not None for one in outcome.cut)
        with self._kernel.lock:
            if self._tally is None:
                self._tally = GroupTally()
            self._tally.add(times, tokens, cut)


def _to_group(task: Task, outcome: Outcome) -> Outcome | None:
    """Give a member's outcome to its group, and the group's to the outbox."""
    options = task.options
    if isinstance(options, MemberOptions):
        ended: GroupOutcome | None = options.owner.member_ended(task, outcome)
        return ended
    return outcome
