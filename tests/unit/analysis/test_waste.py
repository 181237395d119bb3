"""Work that was thrown away, and whether the choice is biased."""

import pytest

from rollscope.analysis.rows import SessionRow
from rollscope.analysis.waste import Decile, kolmogorov_distance, selection, waste
from rollscope.model.kinds import Outcome, Status


def _session(
    span_id: int,
    length: int = 10,
    outcome: Outcome | None = Outcome.ACCEPTED,
    consumed_step: int | None = None,
    tokens: int | None = 5,
) -> SessionRow:
    return SessionRow(
        span_id=span_id,
        start_ns=100,
        end_ns=100 + length,
        outcome=outcome,
        consumed_step=consumed_step,
        tokens_out=tokens,
    )


def test_sessions_never_consumed_add_up_by_outcome_and_reason() -> None:
    stale = [_session(n, 30, Outcome.DROPPED) for n in (1, 2)]
    for session in stale:
        session.reason = "stale"
    failed = _session(3, 20, Outcome.FAILED, tokens=None)
    used = _session(4, 20, consumed_step=7)
    failed_but_used = _session(5, 100, Outcome.FAILED, consumed_step=7)

    found = waste([*stale, failed, used, failed_but_used])

    rows = [(r.outcome, r.reason, r.count, r.tokens, r.slot_ns, r.share) for r in found.rows]
    assert rows == [("dropped", "stale", 2, 10, 60, 0.3), ("failed", None, 1, 0, 20, 0.1)]
    assert (found.count, found.slot_ns, found.share) == (3, 80, 0.4)
    assert (found.all_count, found.all_slot_ns) == (5, 200)


def test_what_was_accepted_may_still_be_consumed_until_the_end() -> None:
    sessions = [_session(1), _session(2, outcome=None), _session(3, consumed_step=1)]

    so_far, at_last = waste(sessions), waste(sessions, is_final=True)

    assert (so_far.count, so_far.pending) == (0, 2)
    assert (at_last.count, at_last.pending) == (2, 0)
    assert {row.outcome for row in at_last.rows} == {"accepted", "none"}


def test_where_consumption_is_not_recorded_accepted_sessions_are_no_waste() -> None:
    found = waste([_session(1), _session(2, outcome=Outcome.FAILED)], is_final=True)

    assert not found.is_consumption_recorded
    assert (found.count, found.pending) == (1, 1)


def test_earlier_attempts_stand_apart() -> None:
    tries = [_session(n, outcome=Outcome.TIMEOUT) for n in (1, 2)]
    for attempt, session in enumerate(tries):
        session.task_key, session.sample, session.attempt = "math/1", 0, attempt
    other_epoch = _session(3, outcome=Outcome.TIMEOUT)
    other_epoch.task_key, other_epoch.sample, other_epoch.step = "math/1", 0, 9

    found = waste([*tries, other_epoch])

    assert {(row.is_earlier_attempt, row.count) for row in found.rows} == {(True, 1), (False, 2)}


def test_open_sessions_are_left_out_and_lost_ones_are_waste() -> None:
    still_open, lost = _session(1), _session(2, outcome=None)
    still_open.end_ns = None
    lost.status = Status.LOST

    found = waste([still_open, lost])

    assert [(row.outcome, row.count) for row in found.rows] == [("lost", 1)]
    assert found.selection[0].discarded == 0  # its length is no measurement


def test_no_session_is_no_waste() -> None:
    found = waste([])

    assert (found.rows, found.share) == ([], 0.0)
    assert [part.distance for part in found.selection] == [None, None]


def test_training_on_the_fast_half_is_flagged() -> None:
    found = selection("duration", consumed=range(20), discarded=range(20, 40))

    assert found.distance == 1.0
    assert found.is_flagged
    assert [decile.share for decile in found.deciles] == [1.0] * 5 + [0.0] * 5
    assert found.deciles[0] == Decile(upto=3, consumed=4, discarded=0, share=1.0)


def test_an_even_choice_is_not_flagged() -> None:
    found = selection("duration", consumed=range(0, 40, 2), discarded=range(1, 40, 2))

    assert found.distance == pytest.approx(0.05)
    assert found.limit == pytest.approx(1.36 * (40 / 400) ** 0.5)
    assert not found.is_flagged


def test_equal_values_stay_in_one_decile() -> None:
    found = selection("length", consumed=[3] * 5, discarded=[3] * 5)

    assert [decile.share for decile in found.deciles] == [0.5] + [None] * 9
    assert kolmogorov_distance([3], [3]) == 0.0
