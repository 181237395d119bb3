from __future__ import annotations

import pytest

from rollscope.runner.gates import AgePolicy, age_of, judge_age, oldest_useful_version


@pytest.mark.parametrize(
    ("now", "segments", "age"),
    [
        (5, [5], 0),
        (5, [3], 2),
        (7, [6, 4, 7], 3),  # the oldest segment counts, wherever it stands
        (7, [-1, 6], 1),  # tokens of a prompt have no version
        (7, [None, 6], 1),
        (7, [], None),
        (7, [None], None),
        (None, [6], None),
    ],
)
def test_age_is_that_of_the_oldest_segment(
    now: int | None, segments: list[int | None], age: int | None
) -> None:
    assert age_of(now, segments) == age


@pytest.mark.parametrize("policy", AgePolicy)
@pytest.mark.parametrize("age", [None, 0, 2])
def test_what_is_young_enough_is_accepted_under_every_policy(
    policy: AgePolicy, age: int | None
) -> None:
    assert judge_age(age, 2, policy) is AgePolicy.ACCEPT


@pytest.mark.parametrize("policy", AgePolicy)
def test_what_is_too_old_gets_the_policy(policy: AgePolicy) -> None:
    assert judge_age(3, 2, policy) is policy


def test_the_policy_is_to_accept_unless_told_otherwise() -> None:
    assert judge_age(99, 0) is AgePolicy.ACCEPT


def test_work_is_cut_that_would_be_too_old_after_the_update() -> None:
    oldest = oldest_useful_version(6, max_staleness=2)
    assert judge_age(age_of(6, [oldest]), 2, AgePolicy.DROP) is AgePolicy.ACCEPT
    assert judge_age(age_of(6, [oldest - 1]), 2, AgePolicy.DROP) is AgePolicy.DROP
