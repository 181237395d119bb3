"""Values that share the label `other` are joined as their family means it."""

from __future__ import annotations

import math

import pytest

from rollscope.exposing import catalogue as ours
from rollscope.exposing.current import LastStep
from rollscope.exposing.labels import OTHER, Caps
from rollscope.exposing.points import Pointer

MANY = 203
"""Three more than a label may have values."""


@pytest.fixture
def caps() -> Caps:
    return Caps()


@pytest.fixture
def pointer(caps: Caps) -> Pointer:
    return Pointer("run", caps)


def test_the_longest_lag_stands_for_all_ranks_beyond_the_bound(pointer: Pointer) -> None:
    shown = pointer.lags({("actor", str(rank)): 10**9 for rank in range(MANY)})
    values = {point.labels[2]: point.value for point in shown.points}
    assert (len(values), values[OTHER]) == (201, 1.0)


def test_targets_beyond_the_bound_are_up_if_all_of_them_are(pointer: Pointer) -> None:
    names = [f"r{number}" for number in range(MANY)]
    values = {
        point.labels[1]: point.value for point in pointer.targets(dict.fromkeys(names, True)).points
    }
    assert values[OTHER] == 1
    values = {
        point.labels[1]: point.value
        for point in pointer.targets({name: name != names[-1] for name in names}).points
    }
    assert values[OTHER] == 0


def test_rewards_beyond_the_bound_are_averaged_and_refused_one_by_one(
    pointer: Pointer, caps: Caps
) -> None:
    last = LastStep()
    last.rewards = {f"f{number}": -4.0 for number in range(MANY)}
    rewards, _ = pointer.last_step(last)
    assert {point.labels[1]: point.value for point in rewards.points}[OTHER] == -4.0
    assert caps.refused_total == 3


def test_a_reward_that_is_no_number_keeps_nothing_from_being_shown(pointer: Pointer) -> None:
    last = LastStep()
    last.rewards = {f"f{number}": math.nan for number in range(MANY)}
    rewards, _ = pointer.last_step(last)
    assert rewards.family is ours.REWARD
    assert len(rewards.points) == 201


def test_what_is_counted_is_added_up_and_refused_by_its_count(pointer: Pointer, caps: Caps) -> None:
    shown = pointer.count(ours.SESSIONS_STARTED, {(f"f{number}",): 5 for number in range(MANY)})
    assert {point.labels[1]: point.value for point in shown.points}[OTHER] == 15
    assert caps.refused_total == 15
