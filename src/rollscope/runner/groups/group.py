"""A group while it is made and while it runs."""

from __future__ import annotations

from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import msgspec
from msgspec.structs import replace

from rollscope.errors import RunnerError, SettingError
from rollscope.runner.groups.bias import bias_of, measure
from rollscope.runner.groups.outcome import GroupOutcome, has_failed, join_outcomes, run_ns
from rollscope.runner.groups.policies import GroupPolicy, Progress
from rollscope.runner.guard import quietly
from rollscope.runner.outcome import Outcome, Reason, Status
from rollscope.runner.task import Task, TaskOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from rollscope.runner.groups.grouping import Grouping

__all__ = ["Call", "Group", "GroupSpec", "MemberOptions", "OnFail"]

OnFail = Literal["replace", "shrink", "drop"]


class GroupSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a group is to be like."""

    size: int
    need: int
    spawn: int
    policy: GroupPolicy
    on_fail: OnFail
    max_replacements: int
    deadline_s: float | None
    tokens_of: Callable[[Outcome], float | None] | None

    def check(self) -> None:
        """Refuse a group that could never be good.

        Raises:
            SettingError: Numbers or names do not go together.
        """
        if not 1 <= self.size <= self.spawn:
            raise SettingError(f"a group of {self.size} cannot be made of {self.spawn} members")
        settles_at = self.policy.count
        most = self.spawn if settles_at is None else settles_at
        if not 0 <= self.need <= most <= self.spawn or not most:
            raise SettingError(
                f"a group that needs {self.need} good members of {self.spawn} cannot be settled "
                f"with {most}"
            )
        probe = Progress(0, 0, (), None, 1)
        if self.deadline_s is not None and self.policy.looks_again_ns(probe) is None:
            raise SettingError("this policy knows no deadline; use at_least(k) with deadline_s")
        if self.on_fail not in ("replace", "shrink", "drop"):
            raise SettingError(f"on_fail is replace, shrink or drop, not {self.on_fail!r}")


class MemberOptions(TaskOptions, frozen=True, kw_only=True):
    """Settings of a task that belongs to a group, and to whom its outcome goes."""

    owner: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to other processes as plain settings: the group stays where its runner is."""
        return _plain_options, (
            {name: getattr(self, name) for name in TaskOptions.__struct_fields__},
        )


def _plain_options(fields: dict[str, Any]) -> TaskOptions:
    return TaskOptions(**fields)


class Call(msgspec.Struct, frozen=True, eq=False):
    """What a member does; kept so that another can do it again."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    context: Context


_NS: Final = 1_000_000_000


class Group:
    """Tasks that are settled together, by one outcome.

    The runner takes all members at once, when the last of them is there. From then on the loop
    thread alone changes the group.
    """

    def __init__(
        self, runner: Grouping, group_id: int, spec: GroupSpec, options: TaskOptions
    ) -> None:
        fields = {name: getattr(options, name) for name in TaskOptions.__struct_fields__}
        self.id = group_id
        self.spec = spec
        self.calls: list[Call] = []
        self._runner = runner
        self._kernel = runner._kernel
        self._options = MemberOptions(**fields | {"group": group_id}, owner=self)
        self._is_started = False
        self._numbered = 0
        self._live: dict[Task, Call] = {}
        self._ended: list[Outcome] = []
        self._replaced: list[Outcome] = []
        self._cut_as: Reason | None = None
        self._is_given_up = False
        self._timer: Any = None

    # --- making it -------------------------------------------------------------------------------

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
        """Add a member; the last one has the runner take them all.

        Raises:
            InboxFull: There is no room for all of them; this member may be submitted again.
            RunnerClosed: The runner has not started, or takes no more.
            RunnerError: The group has all its members.
        """
        self._add([Call(fn, args, kwargs, copy_context())])

    def spawn_all(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
        """Add all members that are missing, each with the same call; raises as `submit`."""
        missing = self.spec.spawn - len(self.calls)
        self._add([Call(fn, args, kwargs, copy_context()) for _ in range(missing)])

    def _add(self, calls: list[Call]) -> None:
        spawn = self.spec.spawn
        if self._is_started or not calls:
            raise RunnerError(f"group {self.id} has all its {spawn} members")
        self.calls += calls
        if len(self.calls) < spawn:
            return
        try:
            self._start()
        except BaseException:
            self._live.clear()
            self._numbered = 0
            del self.calls[-len(calls) :]
            raise

    def _start(self) -> None:
        self._kernel = self._runner._kernel
        tasks = [self._new_task(call) for call in self.calls]
        self._is_started = True
        try:
            self._runner._take_group(self.id, tasks)
        except BaseException:
            self._is_started = False
            raise
        self.calls = []

    def restart(self, calls: Iterable[Call]) -> list[Task]:
        """Make the members of a group that an earlier runner did not settle, for this one."""
        self._is_started = True
        return [self._new_task(call) for call in calls]

    def _new_task(self, call: Call) -> Task:
        options = replace(self._options, sample=self._numbered)
        self._numbered += 1
        now_ns = self._kernel.clock()
        task = Task(call.fn, call.args, call.kwargs, call.context.copy(), options, now_ns)
        self._live[task] = call
        return task

    # --- waiting for it --------------------------------------------------------------------------

    def result(self, timeout_s: float | None = None) -> GroupOutcome:
        """Wait for its outcome, which nobody else gets meanwhile; raises as `Runner.wait_for`."""
        self._check_started()
        return cast("GroupOutcome", self._runner.wait_for(self.id, timeout_s))

    def __await__(self) -> Generator[Any, Any, GroupOutcome]:
        """Wait for its outcome, which nobody else gets meanwhile."""
        self._check_started()
        outcome = yield from self._runner.await_for(self.id).__await__()
        return cast("GroupOutcome", outcome)

    def _check_started(self) -> None:
        if not self._is_started:
            raise RunnerError(
                f"group {self.id} has {len(self.calls)} of its {self.spec.spawn} members; it "
                f"starts when the last one is submitted"
            )

    # --- while it runs ---------------------------------------------------------------------------

    def member_ended(self, task: Task, outcome: Outcome) -> GroupOutcome | None:
        """Take a member's outcome; gives the group's if that was the last."""
        call = self._live.pop(task, None)
        if call is not None:  # else it was told of already, and then something of ours failed
            self._ended.append(outcome)
        if call is not None and self._cut_as is None and has_failed(outcome):
            self._member_failed(call, outcome)
        if not self._live:
            return self._finish()
        if self._cut_as is None:
            self._look()
        return None

    def _member_failed(self, call: Call, outcome: Outcome) -> None:
        spec = self.spec
        if spec.on_fail == "drop":
            self._is_given_up = True
            self._settle(Reason.GROUP_SETTLED)
        elif spec.on_fail == "replace" and len(self._replaced) < spec.max_replacements:
            task = self._new_task(call)
            if self._runner._take_replacement(task):
                self._replaced.append(outcome)
            else:
                del self._live[task]

    def _look(self) -> None:
        """Ask the policy, and set a timer for when it is to be asked again."""
        if self._timer is not None:
            self._kernel.timers.take_back(self._timer)
            self._timer = None
        if self._cut_as is not None or not self._live:
            return
        seen = self._progress()
        reason, due_ns = None, None
        with quietly("the policy of a group"):  # which then ends with its last member
            reason = self.spec.policy.cuts(seen)
            due_ns = self.spec.policy.looks_again_ns(seen)
        if reason is not None:
            self._settle(reason)
        elif due_ns is not None:
            self._timer = self._kernel.timers.at(due_ns, self._look)

    def _progress(self) -> Progress:
        now_ns = self._kernel.clock()
        ended = [one for one in self._ended if one.started_ns is not None]
        starts = [task.started_ns for task in self._live] + [one.started_ns for one in ended]
        first_ns = min((start for start in starts if start is not None), default=None)
        deadline_ns = None
        if self.spec.deadline_s is not None:
            # Before the first start it cannot end earlier than if that were now.
            base_ns = now_ns if first_ns is None else first_ns
            deadline_ns = base_ns + int(self.spec.deadline_s * _NS)
        return Progress(
            now_ns,
            sum(one.is_ok for one in self._ended),
            [run_ns(one) for one in ended],
            first_ns,
            deadline_ns,
        )

    def _settle(self, reason: Reason) -> None:
        """Have what still runs ended, soon: the kernel is in the middle of ending members."""
        self._cut_as = reason
        self._kernel.call_loop(self._cut_rest)

    def _cut_rest(self) -> None:
        assert self._cut_as is not None  # noqa: S101  (called because it was set)
        for task in list(self._live):
            self._kernel.stops.stop(task, Status.CANCELLED, self._cut_as)

    def _finish(self) -> GroupOutcome:
        kernel, spec = self._kernel, self.spec
        if self._timer is not None:
            kernel.timers.take_back(self._timer)
            self._timer = None
        kept = [one for one in self._ended if one.is_ok][: spec.policy.keeps]
        times = measure(self._ended, kept, run_ns)
        assert times is not None  # noqa: S101  (run times are always known)
        tokens = None
        if spec.tokens_of is not None:
            tokens = measure(self._ended, kept, spec.tokens_of)
        outcome = join_outcomes(
            self.id,
            self._ended,
            kept=kept,
            replaced=self._replaced,
            cut_as=self._cut_as,
            need=spec.need,
            is_given_up=self._is_given_up,
            length_bias=bias_of([times]),
        )
        kernel.retry.group_ended(self.id)
        self._runner._group_ended(outcome, times, tokens)
        return outcome
