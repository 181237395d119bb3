"""Groups of members that end in every way: one outcome each, no orphan, a ledger that adds up."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rollscope.runner import Reason, Retry, Runner, Status
from rollscope.runner.groups import Group, GroupOutcome, all_ended, first

ACTS = ["ok", "ok", "fail", "none", "cancel", "flaky", "refuse_to_end"]


class Plan:
    """What the members of one group do, one after the other, and how many of them run."""

    def __init__(self, acts: list[tuple[str, int]]) -> None:
        self._acts = acts
        self.begun = 0
        self.running = 0

    async def __call__(self) -> Any:
        act, steps = self._acts[self.begun % len(self._acts)]
        self.begun += 1
        self.running += 1
        try:
            await self._pass(steps, stubborn=act == "refuse_to_end")
        finally:
            self.running -= 1
        if act == "fail":
            raise ValueError(act)
        if act == "flaky":
            raise ConnectionError(act)
        if act == "cancel":
            raise asyncio.CancelledError
        return None if act == "none" else act

    async def _pass(self, steps: int, *, stubborn: bool) -> None:
        for _ in range(steps):
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                if not stubborn:
                    raise


@st.composite
def settings_of_groups(draw: st.DrawFn) -> dict[str, Any]:
    size = draw(st.integers(1, 4))
    spawn = size + draw(st.integers(0, 2))
    policy = draw(st.sampled_from([None, all_ended(), first(size)]))
    return {
        "size": size,
        "spawn": spawn,
        "policy": policy,
        "need": draw(st.integers(0, size)),
        "on_fail": draw(st.sampled_from(["replace", "shrink", "drop"])),
        "max_replacements": draw(st.integers(0, 3)),
        "none_is": Reason.RETURNED_NONE,
        "retry": Retry(rules={ConnectionError: "infra"}, per_task=2, base_s=0.0),
    }


plans = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 6)), min_size=1, max_size=5)
groups_of_run = st.lists(st.tuples(settings_of_groups(), plans), min_size=1, max_size=4)


@given(groups_of_run, st.sampled_from([None, 1, 3]), st.integers(0, 30), st.booleans())
def test_every_group_ends_once_and_leaves_nothing(
    given_groups: list[tuple[dict[str, Any], list[tuple[str, int]]]],
    concurrency: int | None,
    cancel_after: int,
    cancels: bool,
) -> None:
    async def run() -> None:
        made: dict[int, tuple[Group, Plan]] = {}
        async with Runner(concurrency=concurrency, probe_s=None, breaker=None) as runner:
            for settings, acts in given_groups:
                plan = Plan(acts)
                group = runner.group(**settings)
                group.spawn_all(plan)
                made[group.id] = (group, plan)
            outcomes: list[Any] = []
            turns = 0
            while len(outcomes) < len(made):
                await asyncio.sleep(0)
                assert runner.ledger().adds_up()
                outcomes += runner.take_ready()
                turns += 1
                if cancels and turns == cancel_after:
                    runner.cancel(group=min(made))
            assert Counter(one.id for one in outcomes) == Counter(list(made))
            for outcome in outcomes:
                check(*made[outcome.id], outcome)
            ledger = runner.ledger()
            assert ledger.delivered == ledger.submitted == sum(one.weight for one in outcomes)
            assert not runner._kernel.groups

    asyncio.run(run())


def check(group: Group, plan: Plan, outcome: GroupOutcome) -> None:
    spec = group.spec
    assert plan.running == 0
    assert outcome.weight == len(outcome.members) == spec.spawn + len(outcome.replaced)
    started = [one for one in outcome.members if one.started_ns is not None]
    assert len(started) <= plan.begun <= sum(one.attempts for one in started)
    assert len(outcome.replaced) <= spec.max_replacements
    assert all(one.is_ok for one in outcome.kept)
    assert len(outcome.kept) <= (spec.policy.keeps or len(outcome.members))
    assert outcome.value == [one.value for one in outcome.kept]
    if outcome.is_ok:
        assert len(outcome.kept) >= spec.need
    elif spec.on_fail != "drop":
        assert len(outcome.kept) < spec.need
    if spec.on_fail != "replace":
        assert not outcome.replaced
    for one in outcome.cut:
        assert (one.status, one.reason) == (Status.CANCELLED, Reason.GROUP_SETTLED)
    assert not {one.id for one in outcome.cut} & {one.id for one in outcome.kept}
