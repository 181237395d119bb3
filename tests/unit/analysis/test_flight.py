"""Sessions in flight by phase, against looking at every session at every tick."""

from random import Random

import numpy as np
import pytest

from rollscope.analysis.flight import (
    FOREVER,
    Grid,
    PhaseColumns,
    SessionColumns,
    count_phases,
    count_sessions,
)
from rollscope.analysis.leaves import add_up, leaf_stretches

Row = tuple[int, int, int, int]
"""Session, start, end and name."""


def random_run(seed: int, overlaps: bool) -> tuple[list[tuple[int, int, int]], list[Row]]:
    random = Random(seed)
    sessions, phases = [], []
    for session in random.sample(range(1, 1000), 25):
        start = random.randrange(0, 900)
        end = FOREVER if random.random() < 0.2 else start + random.randrange(1, 400)
        sessions.append((session, start, end))
        at = start - random.randrange(0, 20)
        for _ in range(random.randrange(0, 8)):
            length = random.randrange(0, 120)
            phases.append((session, at, at + length, random.randrange(3)))
            at += random.randrange(1, 60) if overlaps else length + random.randrange(0, 9)
    phases.append((5000, 0, 900, 1))  # of a session that nobody knows
    random.shuffle(phases)
    return sessions, phases


def columns(
    sessions: list[tuple[int, int, int]], phases: list[Row]
) -> tuple[SessionColumns, PhaseColumns]:
    by_session = [np.array(column, np.int64) for column in zip(*sessions, strict=True)]
    by_phase = [np.array(column, np.int64) for column in zip(*phases, strict=True)]
    ids = np.arange(len(phases), dtype=np.uint64)
    return (
        SessionColumns(by_session[0].astype(np.uint64), by_session[1], by_session[2]),
        PhaseColumns(by_phase[0].astype(np.uint64), by_phase[1], by_phase[2], by_phase[3], ids),
    )


def leaf_by_hand(
    session: tuple[int, int, int], phases: list[Row], time: int
) -> tuple[bool, int | None]:
    """Say whether a session is open at a time, and the name of the phase that it entered last."""
    if not session[1] <= time < session[2]:
        return False, None
    numbered = enumerate(phases)
    inside = [
        (start, number, name)
        for number, (owner, start, end, name) in numbered
        if owner == session[0] and start <= time < end
    ]
    return True, max(inside)[2] if inside else None


@pytest.mark.parametrize("overlaps", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_each_session_counts_once_for_the_phase_it_entered_last(seed: int, overlaps: bool) -> None:
    sessions, phases = random_run(seed, overlaps)
    grid = Grid(end_ns=1_000, step_ns=17, ticks=60)
    session_columns, phase_columns = columns(sessions, phases)

    by_name = count_phases(session_columns, phase_columns, 3, grid)
    in_flight = count_sessions(session_columns, grid)

    for tick in range(grid.ticks):
        time = grid.start_ns + tick * grid.step_ns
        leaves = [leaf_by_hand(session, phases, time) for session in sessions]
        names = [name for is_open, name in leaves if is_open]
        assert in_flight[tick] == len(names)
        assert [counts[tick] for counts in by_name] == [names.count(name) for name in range(3)]


@pytest.mark.parametrize("overlaps", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_every_instant_of_a_session_belongs_to_one_phase_at_most(seed: int, overlaps: bool) -> None:
    sessions, phases = random_run(seed, overlaps)
    session_columns, phase_columns = columns(sessions, phases)
    stretches = leaf_stretches(session_columns, phase_columns)
    whole = (200, 700)

    by_hand = [0, 0, 0, 0]
    for time in range(*whole):
        for session in sessions:
            is_open, name = leaf_by_hand(session, phases, time)
            if is_open:
                by_hand[3 if name is None else name] += 1

    by_name = stretches.add_up(whole, 3)
    in_all = add_up(session_columns.starts, session_columns.ends, whole)
    assert [*by_name, in_all - sum(by_name)] == by_hand


def test_sessions_with_phases_side_by_side_are_counted_in_batches() -> None:
    many = 5_000  # more than are looked at together
    sessions = [(number, 0, 100) for number in range(many)]
    phases = [(number, 0, 90, 0) for number in range(many)]
    phases += [(number, 10, 50, 1) for number in range(many)]
    grid = Grid(end_ns=95, step_ns=5, ticks=20)

    outer, inner = count_phases(*columns(sessions, phases), 2, grid)

    assert inner.tolist() == [0, 0] + [many] * 8 + [0] * 10
    assert outer.tolist() == [many] * 2 + [0] * 8 + [many] * 8 + [0] * 2


def test_nothing_in_flight_gives_zeros() -> None:
    nothing = SessionColumns(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    _, phases = columns([(1, 0, 1)], [(1, 0, 1, 0)])
    grid = Grid(end_ns=10, step_ns=1, ticks=3)
    assert count_sessions(nothing, grid).tolist() == [0, 0, 0]
    assert [one.tolist() for one in count_phases(nothing, phases, 1, grid)] == [[0, 0, 0]]
    assert leaf_stretches(nothing, phases).add_up((0, 10), 1) == [0]
