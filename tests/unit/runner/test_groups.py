"""Groups: what settles them, who replaces whom, and that none of their tasks gets lost."""

from __future__ import annotations

import asyncio
import math
import pickle
import threading
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rollscope.errors import InboxFull, RunnerBroken, RunnerClosed, RunnerError, SettingError
from rollscope.runner import Reason, Retry, Runner, Status, TaskOptions, Verdict, ctx
from rollscope.runner.groups import GroupOutcome, MemberOptions, after, all_ended, at_least, first
from tests.unit.runner.virtual import Stage, play

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollscope.runner.groups import Progress

LONG_S = 60.0


def make_runner(**settings: Any) -> Runner:
    return Runner(loop="asyncio", probe_s=None, **settings)


@pytest.fixture
def runner() -> Iterator[Runner]:
    with make_runner(cleanup_s=2.0, breaker=None) as one:
        yield one
        assert one.ledger().adds_up()


async def give(value: Any) -> Any:
    return value


async def fail() -> None:
    raise ValueError("bad sample")


async def hang() -> None:
    await asyncio.Event().wait()


class Script:
    """Behaves differently each time that it is called, and counts what runs."""

    def __init__(self, *acts: Any) -> None:
        self._acts = list(acts)
        self.calls = 0
        self.running = 0

    async def __call__(self) -> Any:
        act = self._acts[min(self.calls, len(self._acts) - 1)]
        self.calls += 1
        self.running += 1
        try:
            if isinstance(act, type):
                raise act
            return await hang() if act == "hang" else act
        finally:
            self.running -= 1


def test_a_group_gives_one_outcome_made_of_all_its_members(runner: Runner) -> None:
    group = runner.group(3, tags={"set": "aime"})
    for value in (10, 20, 30):
        group.submit(give, value)
    (outcome,) = runner.wait(1, timeout_s=LONG_S)
    assert isinstance(outcome, GroupOutcome)
    assert (outcome.id, outcome.status, outcome.reason) == (group.id, "ok", "accepted")
    assert sorted(outcome.value) == [10, 20, 30]
    assert outcome.tags == {"set": "aime"}
    assert [member.group for member in outcome.members] == [group.id] * 3
    assert outcome.started_ns == min(member.started_ns or 0 for member in outcome.members)
    assert runner.take_ready() == []
    assert runner.ledger().delivered == 3


def test_members_start_when_the_last_one_is_submitted(runner: Runner) -> None:
    group = runner.group(2)
    group.submit(give, 1)
    assert runner.ledger().submitted == 0
    with pytest.raises(RunnerError, match="1 of its 2 members"):
        group.result(0)
    group.submit(give, 2)
    assert sorted(group.result(LONG_S).value) == [1, 2]
    with pytest.raises(RunnerError, match="has all its 2 members"):
        group.submit(give, 3)


def test_a_group_that_does_not_fit_into_the_inbox_is_refused_whole() -> None:
    with make_runner(inbox=3) as runner, runner.pause():
        runner.submit(give, 0)
        runner.submit(give, 0)
        group = runner.group(2)
        group.submit(give, 1)
        with pytest.raises(InboxFull):
            group.submit(give, 2)
        assert runner.ledger().submitted == 2
        runner.cancel(0)
        group.submit(give, 2)
        assert runner.ledger().submitted == 4
        runner.resume(all=True)
        assert sorted(group.result(LONG_S).value) == [1, 2]


def test_a_member_that_raises_is_replaced_and_its_siblings_are_kept(runner: Runner) -> None:
    script = Script("a", ValueError, "b", "c", "replacement")
    group = runner.group(4)
    group.spawn_all(script)
    outcome = group.result(LONG_S)
    assert outcome.is_ok
    assert sorted(outcome.value) == ["a", "b", "c", "replacement"]
    assert [one.reason for one in outcome.replaced] == [Reason.EXCEPTION]
    assert outcome.weight == len(outcome.members) == 5
    assert (script.calls, script.running) == (5, 0)
    assert runner.ledger().submitted == runner.ledger().delivered == 5


def test_a_replacement_starts_before_what_waits_already() -> None:
    order: list[str] = []

    async def act(name: str) -> None:
        order.append(name)
        if order == ["member"]:
            raise ValueError

    async def main(stage: Stage) -> None:
        runner = stage.runner
        with runner.pause():
            group = runner.group(1)
            group.submit(act, "member")
            for name in ("first", "second"):
                runner.submit(act, name)
        assert (await group).is_ok
        assert order[:2] == ["member", "member"]

    play(main, concurrency=1)


class _BadPolicy(msgspec.Struct, frozen=True):
    count: int | None = None
    keeps: int | None = None

    def cuts(self, seen: Progress) -> Reason | None:
        raise LookupError("the policy is broken")

    def looks_again_ns(self, seen: Progress) -> int | None:
        return None


def test_a_group_whose_policy_raises_ends_with_its_last_member(
    runner: Runner, caplog: pytest.LogCaptureFixture
) -> None:
    group = runner.group(2, policy=_BadPolicy())
    group.spawn_all(give, 1)
    assert group.result(LONG_S).value == [1, 1]
    assert "the policy is broken" in caplog.text
    assert runner.health().state == "running"


def test_a_fault_while_a_group_is_settled_leaves_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with make_runner() as runner:
        real, faults = runner._group_ended, [ZeroDivisionError("a fault of ours")]

        def fail_once(*given: Any) -> None:
            if faults:
                raise faults.pop()
            real(*given)

        monkeypatch.setattr(runner, "_group_ended", fail_once)
        group = runner.group(2)
        group.spawn_all(give, 1)
        with pytest.raises(RunnerBroken):
            runner.wait(2, LONG_S)
        (outcome,) = runner.take_ready()
        assert (outcome.id, outcome.value) == (group.id, [1, 1])
        assert runner.ledger().adds_up()


@pytest.mark.parametrize("multiple", [math.nan, math.inf, -1.0, "2"])
def test_no_such_multiple_of_a_time_is_taken(multiple: Any) -> None:
    with pytest.raises(SettingError):
        after(1, multiple=multiple)


def test_when_replacements_run_out_the_good_members_are_still_attached(runner: Runner) -> None:
    group = runner.group(3, max_replacements=2)
    group.submit(give, 1)
    group.submit(give, 2)
    group.submit(fail)
    outcome = group.result(LONG_S)
    assert (outcome.status, outcome.reason) == (Status.FAILED, Reason.GROUP_SHORT)
    assert sorted(outcome.value) == [1, 2]
    assert len(outcome.replaced) == 2
    assert outcome.error is not None
    assert outcome.error.text == "bad sample"


def test_a_shrunken_group_is_good_if_it_has_what_it_needs(runner: Runner) -> None:
    group = runner.group(3, need=2, on_fail="shrink")
    group.submit(give, 1)
    group.submit(give, 2)
    group.submit(fail)
    outcome = group.result(LONG_S)
    assert outcome.is_ok
    assert sorted(outcome.value) == [1, 2]
    assert outcome.replaced == ()


def test_drop_ends_the_rest_when_one_fails(runner: Runner) -> None:
    group = runner.group(3, on_fail="drop")
    group.submit(hang)
    group.submit(hang)
    group.submit(fail)
    outcome = group.result(LONG_S)
    assert (outcome.status, outcome.reason) == (Status.FAILED, Reason.GROUP_SHORT)
    assert [one.reason for one in outcome.cut] == [Reason.GROUP_SETTLED] * 2


@pytest.mark.parametrize(
    ("fn", "status", "reason"),
    [
        (Script(None), Status.REJECTED, Reason.RETURNED_NONE),
        (Script(Verdict(Status.REJECTED, Reason.FILTERED)), Status.REJECTED, Reason.FILTERED),
    ],
)
def test_rejected_members_are_not_replaced(
    runner: Runner, fn: Any, status: Status, reason: Reason
) -> None:
    alone = runner.group(2, need=1, none_is=Reason.RETURNED_NONE)
    alone.spawn_all(fn)
    outcome = alone.result(LONG_S)
    assert (outcome.status, outcome.reason) == (status, reason)
    assert outcome.weight == 2
    mixed = runner.group(2, need=1, none_is=Reason.RETURNED_NONE)
    mixed.submit(fn)
    mixed.submit(give, 1)
    assert mixed.result(LONG_S).value == [1]


def test_a_member_that_cancels_itself_is_replaced(runner: Runner) -> None:
    group = runner.group(2)
    group.spawn_all(Script(asyncio.CancelledError, 1, 2))
    outcome = group.result(LONG_S)
    assert outcome.is_ok
    assert [one.reason for one in outcome.replaced] == [Reason.SELF_CANCELLED]


def test_a_member_is_retried_before_it_counts_as_failed(runner: Runner) -> None:
    retry = Retry(rules={ConnectionError: "infra"}, per_task=1, base_s=0.0)
    group = runner.group(2, retry=retry)
    group.spawn_all(Script(ConnectionError, 1, 2))
    outcome = group.result(LONG_S)
    assert (outcome.weight, outcome.replaced, outcome.attempts) == (2, (), 3)


def test_first_keeps_the_first_good_ones_and_cuts_the_rest(runner: Runner) -> None:
    group = runner.group(2, spawn=4)
    script = Script("hang", 1, 2, "hang")
    group.spawn_all(script)
    outcome = group.result(LONG_S)
    assert outcome.is_ok
    assert sorted(outcome.value) == [1, 2]
    assert [(one.status, one.reason) for one in outcome.cut] == [
        (Status.CANCELLED, Reason.GROUP_SETTLED)
    ] * 2
    assert script.running == 0


def test_a_member_that_is_about_to_be_retried_is_cut_all_the_same(runner: Runner) -> None:
    async def settle(release: asyncio.Event) -> int:
        release.set()
        return 1

    async def fail_just_then(release: asyncio.Event) -> None:
        if ctx.attempt == 1:
            await release.wait()
            await asyncio.sleep(0)  # the group is settled by now, and nobody was told to end yet
            raise ConnectionError
        await hang()

    release = asyncio.Event()
    retry = Retry(rules={ConnectionError: "infra"}, per_task=1, base_s=0.0)
    group = runner.group(1, spawn=2, retry=retry)
    group.submit(fail_just_then, release)
    group.submit(settle, release)
    outcome = group.result(5.0)
    assert outcome.value == [1]
    assert [one.reason for one in outcome.cut] == [Reason.GROUP_SETTLED]


def test_first_keeps_no_more_than_asked_for_if_more_end_together(runner: Runner) -> None:
    group = runner.group(2, spawn=5, policy=first(2))
    group.spawn_all(give, 1)
    outcome = group.result(LONG_S)
    assert (len(outcome.kept), outcome.weight) == (2, 5)


def test_members_that_never_started_are_cut_too() -> None:
    with make_runner(concurrency=1) as runner:
        group = runner.group(1, spawn=3)
        group.spawn_all(give, 1)
        outcome = group.result(LONG_S)
        assert outcome.value == [1]
        assert [one.started_ns is None for one in outcome.cut] == [True, True]
        assert runner.ledger().delivered == 3


def test_at_least_settles_at_the_deadline_with_enough_good_ones(runner: Runner) -> None:
    group = runner.group(3, policy=at_least(2), deadline_s=0.05)
    group.submit(give, 1)
    group.submit(give, 2)
    group.submit(hang)
    outcome = group.result(LONG_S)
    assert outcome.is_ok
    assert len(outcome.cut) == 1
    assert outcome.finished_ns - (outcome.started_ns or 0) >= 50_000_000


def test_at_least_waits_past_the_deadline_for_enough_good_ones(runner: Runner) -> None:
    release = asyncio.Event()

    async def wait_for_release() -> int:
        await release.wait()
        return 2

    group = runner.group(3, policy=at_least(2), deadline_s=0.01)
    group.submit(give, 1)
    group.submit(wait_for_release)
    group.submit(hang)
    passed = runner.options(tier="eval").submit(asyncio.sleep, 0.05)
    passed.result(LONG_S)
    assert runner.ledger().running == 2
    runner._kernel.call_loop(release.set)
    outcome = group.result(LONG_S)
    assert sorted(outcome.value) == [1, 2]
    assert len(outcome.cut) == 1


def test_the_deadline_does_not_begin_before_a_member_has_started() -> None:
    with make_runner(breaker=None) as runner:
        pause = runner.pause()
        group = runner.group(2, policy=at_least(1), deadline_s=0.05)
        group.submit(give, 1)
        group.submit(asyncio.sleep, 0.02, 2)
        elsewhere = make_runner()
        with elsewhere:  # lets the time of the deadline pass
            elsewhere.submit(asyncio.sleep, 0.1).result(LONG_S)
        pause.resume()
        assert sorted(group.result(LONG_S).value) == [1, 2]


def test_after_cuts_stragglers(runner: Runner) -> None:
    group = runner.group(4, policy=after(3, multiple=2.0))
    for _ in range(3):
        group.submit(asyncio.sleep, 0.02, 1)
    group.submit(hang)
    outcome = group.result(LONG_S)
    assert outcome.is_ok
    assert [one.reason for one in outcome.cut] == [Reason.STRAGGLER]
    assert outcome.length_bias is not None
    assert 0.5 < outcome.length_bias < 1.0


def test_cancelling_a_group_ends_it_without_replacements(runner: Runner) -> None:
    group = runner.group(3)
    group.spawn_all(hang)
    assert runner.cancel(group=group.id) == 3
    outcome = group.result(LONG_S)
    assert (outcome.status, outcome.reason) == (Status.CANCELLED, Reason.REQUESTED)
    assert outcome.weight == 3


def test_a_member_that_will_not_end_is_left_as_a_zombie_and_the_group_goes_on() -> None:
    async def stubborn(release: asyncio.Event) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    with make_runner(cleanup_s=0.05) as runner:
        release = asyncio.Event()
        group = runner.group(1, spawn=2)
        group.submit(stubborn, release)
        group.submit(asyncio.sleep, 0.01, 1)
        outcome = group.result(LONG_S)
        assert outcome.value == [1]
        assert runner.health().zombies == 1
        runner._kernel.call_loop(release.set)


def test_closing_ends_groups_and_leaves_their_outcomes_readable() -> None:
    runner = make_runner(cleanup_s=0.5)
    with runner:
        group = runner.group(2)
        group.submit(give, 1)
        group.submit(hang)
    (outcome,) = runner.take_ready()
    assert (outcome.id, outcome.status, outcome.reason) == (group.id, "cancelled", "closed")
    assert outcome.value in ([1], [])
    assert runner.ledger().adds_up()
    assert runner.ledger().outbox == 0


def test_a_runner_that_drains_starts_no_replacements(runner: Runner) -> None:
    started = asyncio.Event()

    async def fail_later() -> None:
        await started.wait()
        raise ValueError

    group = runner.group(2, need=1)
    group.submit(fail_later)
    group.submit(give, 1)
    runner._refuse("no more")
    runner._kernel.call_loop(started.set)
    outcome = group.result(LONG_S)
    assert (outcome.is_ok, outcome.value, outcome.weight) == (True, [1], 2)
    with pytest.raises(RunnerClosed):
        runner.group(1).submit(give, 1)


def test_members_of_a_runner_whose_loop_dies_end_in_their_group() -> None:
    runner = make_runner()
    with runner:
        group = runner.group(2)
        group.submit(give, 1)
        group.submit(hang)
        runner._on_loop(lambda: runner._kernel.die(RuntimeError("broken")))
        (outcome,) = runner.take_ready()
        assert (outcome.id, outcome.status) == (group.id, Status.FAILED)
        assert runner.ledger().adds_up()
        assert runner.ledger().delivered == 2


def test_only_the_ledger_sees_members_until_the_group_is_fetched(runner: Runner) -> None:
    release = asyncio.Event()
    group = runner.group(2)
    group.submit(give, 1)
    group.submit(release.wait)
    other = runner.submit(give, 2)
    assert other.result(LONG_S).value == 2
    ledger = runner.ledger()
    assert ledger.adds_up()
    assert (ledger.outbox, ledger.running) == (1, 1)
    runner._kernel.call_loop(release.set)
    assert group.result(LONG_S).is_ok


def test_members_have_numbered_samples_and_the_settings_of_their_group(runner: Runner) -> None:
    async def see() -> tuple[Any, int | None]:
        return ctx.tags["set"], ctx.id

    group = runner.group(3, tags={"set": "eval-1"}, tier="eval")
    group.spawn_all(see)
    outcome = group.result(LONG_S)
    assert outcome.tier == "eval"
    assert {tag for tag, _ in outcome.value} == {"eval-1"}
    assert len({task_id for _, task_id in outcome.value} | {group.id}) == 4


def test_settings_of_members_travel_to_other_processes_without_their_group() -> None:
    options = MemberOptions(tier="eval", tags={"set": "a"}, group=3, owner=threading.Lock())
    arrived = pickle.loads(pickle.dumps(options))  # noqa: S301  (our own)
    assert type(arrived) is TaskOptions
    assert (arrived.tier, arrived.tags, arrived.group) == ("eval", {"set": "a"}, 3)


def test_groups_work_on_the_callers_loop() -> None:
    async def train() -> list[Any]:
        async with Runner() as runner:
            group = runner.group(2)
            group.spawn_all(give, 1)
            values: list[Any] = (await group).value
            return values

    assert asyncio.run(train()) == [1, 1]


def test_bias_is_one_without_cuts_and_below_with_them(runner: Runner) -> None:
    assert runner.group_stats().length_bias is None
    even = runner.group(2, tokens_of=lambda outcome: 10)
    even.spawn_all(give, 1)
    assert even.result(LONG_S).length_bias == pytest.approx(1.0)
    stats = runner.group_stats()
    assert (stats.groups, stats.cut_share, stats.length_bias_tokens) == (1, 0.0, 1.0)
    uneven = runner.group(1, spawn=2, tokens_of=lambda outcome: 10 if outcome.is_ok else 30)
    uneven.submit(give, 1)
    uneven.submit(hang)
    uneven.result(LONG_S)
    stats = runner.group_stats()
    assert stats.cut_share == pytest.approx(1 / 4)
    assert stats.length_bias_tokens == pytest.approx(10 / 15)


def test_tokens_that_cannot_be_told_leave_the_figure_out(runner: Runner) -> None:
    def tokens_of(outcome: Any) -> int:
        raise KeyError("tokens")

    group = runner.group(1, tokens_of=tokens_of)
    group.submit(give, 1)
    assert group.result(LONG_S).is_ok
    assert runner.group_stats().length_bias_tokens is None


@pytest.mark.parametrize(
    "settings",
    [
        {"size": 0},
        {"size": 4, "spawn": 3},
        {"size": 2, "need": 3},
        {"size": 2, "policy": first(3)},
        {"size": 2, "policy": first(0)},
        {"size": 3, "policy": first(2), "need": 3},
        {"size": 2, "on_fail": "explode"},
        {"size": 2, "id": 7},
        {"size": 2, "no_such_setting": 1},
        {"size": 2, "policy": all_ended(), "deadline_s": 1.0},
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    runner: Runner, settings: dict[str, Any]
) -> None:
    with pytest.raises(SettingError):
        runner.group(**settings)
    assert runner.ledger().submitted == 0
