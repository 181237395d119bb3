from __future__ import annotations

from typing import Any

import openai
import pytest

from rollscope.rollout.client.limits import given, token_limit


@pytest.mark.parametrize(
    ("prompt", "limits", "tokens"),
    [
        (10, {}, 512),
        (10, {"max_tokens": 7}, 7),
        (10, {"max_completion_tokens": 7}, 7),
        (10, {"max_total_tokens": 100}, 90),
        (10, {"engine_max_tokens": 100}, 90),
        (10, {"max_total_tokens": 100, "engine_max_tokens": 50}, 40),
        (10, {"max_total_tokens": 50, "engine_max_tokens": 100}, 40),
        (10, {"max_tokens": 7, "max_total_tokens": 100}, 7),
        (10, {"max_tokens": 95, "max_total_tokens": 100}, 90),
        (99, {"max_total_tokens": 100}, 1),
        (5000, {}, 512),
        (5000, {"max_tokens": 1_000_000}, 1_000_000),
    ],
)
def test_the_smallest_limit_that_is_set_counts(
    prompt: int, limits: dict[str, Any], tokens: int
) -> None:
    limit = token_limit(prompt, **limits)
    assert limit.tokens == tokens
    assert limit.is_default == (not limits)


@pytest.mark.parametrize("marker", [None, openai.NOT_GIVEN, openai.omit])
def test_markers_of_the_sdk_mean_not_set(marker: Any) -> None:
    assert given(marker) is None
    assert token_limit(10, max_tokens=marker, max_completion_tokens=3).tokens == 3
    assert token_limit(10, max_total_tokens=marker, engine_max_tokens=marker).is_default


@pytest.mark.parametrize(
    "name",
    [
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "max_total_tokens",
        "engine_max_tokens",
    ],
)
@pytest.mark.parametrize(
    ("value", "error"),
    [
        (True, TypeError),
        (False, TypeError),
        (3.0, TypeError),
        ("3", TypeError),
        ([3], TypeError),
        (0, ValueError),
        (-1, ValueError),
    ],
)
def test_a_limit_is_an_int_above_zero(name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=name):
        token_limit(10**9, **{"max_total_tokens": 5, name: value})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("max_tokens", "max_completion_tokens"),
        ("max_tokens", "max_output_tokens"),
        ("max_completion_tokens", "max_output_tokens"),
    ],
)
def test_two_names_of_one_limit_are_refused_even_if_they_agree(one: str, other: str) -> None:
    with pytest.raises(ValueError, match=f"{one} and {other} mean the same"):
        token_limit(1, **{one: 5, other: 5})


@pytest.mark.parametrize("prompt", [100, 101])
def test_a_prompt_that_leaves_no_room_is_refused(prompt: int) -> None:
    text = f"len of prompt tokens {prompt} exceeds max_total_tokens 100"
    with pytest.raises(ValueError, match=text):
        token_limit(prompt, max_total_tokens=200, engine_max_tokens=100, max_tokens=1)
