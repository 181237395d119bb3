"""What pictures are made of: bins, samples, groups and await lines."""

import numpy as np
import pytest

from rollscope.analysis.awaits import waiting_line
from rollscope.analysis.bins import count_grid, count_lengths, even_edges, length_edges
from rollscope.analysis.groups import judge_groups
from rollscope.analysis.rows import SessionRow
from rollscope.analysis.sampling import sample_evenly

SECOND = 1_000_000_000


def test_few_points_are_all_kept() -> None:
    assert sample_evenly([False] * 5, 5) == [0, 1, 2, 3, 4]


def test_flagged_points_survive_thinning_and_the_rest_is_spread() -> None:
    flagged = [place in (3, 500, 999) for place in range(1000)]
    kept = sample_evenly(flagged, 100)
    assert {3, 500, 999} <= set(kept)
    assert len(kept) == 100
    assert kept == sorted(kept)
    gaps = np.diff([place for place in kept if not flagged[place]])
    assert gaps.max() <= 13


def test_too_many_flagged_points_are_thinned_too() -> None:
    assert len(sample_evenly([True] * 1000, 10)) == 10


def test_flagged_points_leave_room_for_the_others() -> None:
    flagged = [True] * 600 + [False] * 400
    kept = sample_evenly(flagged, 100)
    assert sum(flagged[place] for place in kept) == 50
    assert len(kept) == 100
    assert len(sample_evenly([True] * 600 + [False] * 20, 100)) == 100


@pytest.mark.parametrize("lengths", [[0], [1, 10**13], [5 * SECOND] * 3, [10**18]])
def test_every_length_has_a_bin(lengths: list[int]) -> None:
    values = np.array(lengths, dtype=np.int64)
    edges = length_edges(values)
    assert len(edges) >= 2
    assert sum(count_lengths(values, edges)) == len(lengths)


def test_lengths_of_nothing_have_no_bins() -> None:
    assert length_edges([]) == []


def test_bins_of_two_pictures_have_the_same_edges() -> None:
    few, many = length_edges([SECOND]), length_edges([1, 60 * SECOND])
    assert set(few) <= set(many)


def test_even_bins_cover_their_stretch() -> None:
    assert even_edges(10, 20, 5) == [10, 12, 14, 16, 18, 20]
    assert even_edges(10, 10, 5) == [10, 10]
    assert even_edges(10, 12, 5) == [10, 11, 12]


def test_a_grid_counts_by_length_and_start() -> None:
    starts, lengths = np.array([0, 5, 9]), np.array([1, 1, 100])
    assert count_grid(starts, lengths, [0, 5, 10], [0, 10, 1000]) == [[1, 1], [0, 1]]


def member(
    span_id: int,
    sample: int,
    ran_s: float,
    reward: float | None,
    *,
    step: int = 1,
    attempt: int = 0,
) -> SessionRow:
    return SessionRow(
        span_id=span_id,
        task_key="a/1",
        sample=sample,
        attempt=attempt,
        step=step,
        start_ns=0,
        end_ns=round(ran_s * SECOND),
        reward=reward,
    )


def test_a_group_of_equal_rewards_teaches_nothing() -> None:
    found = judge_groups([member(1, 0, 1, 0.5), member(2, 1, 4, 0.5), member(3, 2, 2, 0.5)], 0)
    (line,) = found.groups
    assert (line.is_equal, line.is_incomplete, found.equal_share) == (True, False, 1.0)
    assert (line.median_ns, line.slowest_ns, line.ratio, line.session_id) == (
        2 * SECOND,
        4 * SECOND,
        2.0,
        2,
    )


def test_a_group_without_all_rewards_is_incomplete_and_not_equal() -> None:
    (line,) = judge_groups([member(1, 0, 1, 0.5), member(2, 1, 1, None)], 0).groups
    assert (line.is_equal, line.is_incomplete, line.rewarded) == (False, True, 1)


def test_a_group_smaller_than_the_others_is_incomplete() -> None:
    usual = [member(10 * step + n, n, 1, n, step=step) for step in (1, 2) for n in range(4)]
    found = judge_groups([*usual, member(99, 0, 1, 1.0, step=3)], 0)
    assert found.usual_members == 4
    assert [line.step for line in found.groups if line.is_incomplete] == [3]


def test_only_the_last_try_of_a_sample_is_a_member() -> None:
    tries = [member(1, 0, 9, None), member(2, 0, 1, 1.0, attempt=1), member(3, 1, 1, 0.0)]
    (line,) = judge_groups(tries, 0).groups
    assert (line.members, line.tries, line.is_incomplete, line.slowest_ns) == (2, 3, False, SECOND)


def test_sessions_of_no_task_are_in_no_group() -> None:
    assert judge_groups([SessionRow(span_id=1, start_ns=0)], 0).groups == []


def test_the_line_that_waits_is_the_programs_own() -> None:
    own = "/app/roll.py:10 roll"
    queue = "/usr/lib/python3.11/asyncio/queues.py:158 Queue.get"
    client = "/venv/lib/python3.11/site-packages/aiohttp/client.py:7 get"
    assert waiting_line([own, queue]) == own
    assert waiting_line([own, client, queue]) == own
    assert waiting_line([client, queue]) == client
    assert waiting_line([queue]) == queue
    assert waiting_line([]) is None
