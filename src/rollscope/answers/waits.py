"""Who waits, trainer or slots, in the running and in past steps; and when the running one ends.

What is known of a step that is over is kept for as long as its run is open, and computed anew when
more is heard of its sessions.
"""

from collections.abc import Sequence
from typing import Final
from weakref import WeakKeyDictionary

import msgspec

from rollscope.analysis.eta import Eta, estimate_end
from rollscope.analysis.idle import idle_split
from rollscope.analysis.pools import sweep_pools
from rollscope.analysis.ranks import median
from rollscope.analysis.rows import SessionRow, StepFacts
from rollscope.analysis.staleness import LagHistogram, Versions, lag_histogram
from rollscope.analysis.sync import sync_split
from rollscope.analysis.trainer import TrainerSplit, trainer_split
from rollscope.answers.facts import gather_steps
from rollscope.answers.rows import most_moved
from rollscope.answers.source import Source
from rollscope.model.kinds import Outcome

__all__ = [
    "ETA_STEPS",
    "StepDigest",
    "StepState",
    "StepWaits",
    "digest_step",
    "past_digests",
    "step_eta",
    "step_states",
]

ETA_STEPS: Final = 5
"""How many steps before the running one tell how long sessions take."""
_KEPT_STEPS: Final = 32


class StepWaits(msgspec.Struct, kw_only=True):
    """Who waited in one step: the trainer for its batch, or slots for work."""

    step: int
    is_running: bool
    wall_ns: int
    trainer: TrainerSplit
    trainer_wait_share: float
    """How much of the wall the trainer waited."""
    slot_ns: int
    """Capacity times wall."""
    busy_ns: int
    idle_ns: dict[str, int]
    """By cause; with `busy_ns` it makes `slot_ns`."""
    idle_share: float
    """How much of the slot time was idle."""
    is_assumed: bool
    """Whether the capacity of any pool is assumed."""
    buffered: int | None
    """Sessions of the step that ended well and that nobody has consumed yet; None if consumption
    is not recorded."""
    lag_p50: int | None
    """Versions behind the newest: of a running step's sessions in flight, else when consumed."""
    lag_max: int | None


class StepDigest(msgspec.Struct, kw_only=True):
    """What later steps, and pages that are asked for often, need of a step."""

    waits: StepWaits
    sessions_count: int
    ends_ns: list[int]
    """When its sessions ended."""
    lengths_ns: list[int]
    """How long its measured sessions took."""
    after_ns: int
    """What training and sync took."""


StepState = tuple[int, int, int]
"""Facts that name the step as the consuming one, its sessions that ended, and how far clocks are
off."""
_known: WeakKeyDictionary[Source, dict[int, tuple[StepState, StepDigest]]] = WeakKeyDictionary()


def digest_step(facts: StepFacts) -> StepDigest:
    """Tell who waited in a step, and what a later one may expect."""
    sweeps = sweep_pools(facts)
    idle = idle_split(facts, sweeps)
    trainer = trainer_split(facts)
    is_running = facts.span.end_ns is None
    lags = _lags(facts)
    idle_ns = sum(idle.idle_ns.values())
    waits = StepWaits(
        step=facts.span.step or 0,
        is_running=is_running,
        wall_ns=facts.wall_ns,
        trainer=trainer,
        trainer_wait_share=trainer.waiting_ns / facts.wall_ns if facts.wall_ns else 0.0,
        slot_ns=idle.total_ns,
        busy_ns=idle.busy_ns,
        idle_ns=idle.idle_ns,
        idle_share=idle_ns / idle.total_ns if idle.total_ns else 0.0,
        is_assumed=idle.assumed,
        buffered=_buffered(facts.sessions),
        lag_p50=lags.p50,
        lag_max=lags.max,
    )
    return StepDigest(
        waits=waits,
        sessions_count=len(facts.sessions),
        ends_ns=[one.end_ns for one in facts.sessions if one.end_ns is not None],
        lengths_ns=[
            one.end_ns - one.start_ns
            for one in facts.sessions
            if one.is_measured and one.end_ns is not None
        ],
        after_ns=trainer.train_ns + sync_split(facts, sweeps).total_ns,
    )


def _buffered(sessions: Sequence[SessionRow]) -> int | None:
    if all(one.consumed_step is None for one in sessions):
        return None
    usable = (None, Outcome.ACCEPTED)
    return sum(
        one.is_measured and one.consumed_step is None and one.outcome in usable for one in sessions
    )


def _lags(facts: StepFacts) -> LagHistogram:
    versions = Versions(facts.events)
    is_running = facts.span.end_ns is None
    at = [
        (one.version_start, facts.now_ns if is_running else one.consumed_ns)
        for one in facts.sessions
        if versions and (one.end_ns is None or not is_running)
    ]
    return lag_histogram(
        versions.lag(version, time_ns)
        for version, time_ns in at
        if version is not None and time_ns is not None
    )


def past_digests(source: Source, numbers: Sequence[int]) -> list[StepDigest]:
    """Give the digests of earlier steps, in order.

    Args:
        source: The run.
        numbers: The steps, in order.
    """
    if not numbers:
        return []
    states = step_states(source, numbers)
    known = _known.setdefault(source, {})
    fresh = [one for one in numbers if one not in known or known[one][0] != states.get(one)]
    found = {}
    if fresh:
        gathered, _ = gather_steps(source, fresh[0], fresh[-1], is_light=True)
        for facts in gathered:
            number = facts.span.step or 0
            found[number] = digest_step(facts)
            if facts.span.end_ns is not None and number in states:
                known[number] = states[number], found[number]
    digests = {number: known[number][1] for number in numbers if number in known} | found
    for number in sorted(known)[:-_KEPT_STEPS]:
        del known[number]
    return [digests[number] for number in numbers if number in digests]


def step_states(source: Source, numbers: Sequence[int]) -> dict[int, StepState]:
    """Say of steps what changes when anything more is heard of them.

    Args:
        source: The run.
        numbers: The steps, in order; there is at least one.
    """
    sql = """
        SELECT step, sum(consumed) AS consumed, sum(ended) AS ended FROM (
            SELECT consumed_step AS step, count(*) AS consumed, 0 AS ended FROM facts
            WHERE consumed_step BETWEEN $first AND $last GROUP BY consumed_step
            UNION ALL
            SELECT step, 0 AS consumed, count(end_ns) AS ended FROM spans
            WHERE kind = 'session' AND step BETWEEN $first AND $last GROUP BY step
        ) AS counted GROUP BY step"""
    rows = source.query(sql, first=numbers[0], last=numbers[-1]).to_pylist()
    moved_ns = most_moved(source)
    return {row["step"]: (row["consumed"], row["ended"], moved_ns) for row in rows}


def step_eta(facts: StepFacts, history: Sequence[StepDigest]) -> tuple[Eta, int]:
    """Estimate when a running step ends, from the steps just before it.

    Args:
        facts: The step.
        history: The `ETA_STEPS` steps before it, or as many as there are.

    Returns:
        The estimate, and how many sessions the step will have.
    """
    own = len(facts.sessions)
    expected = median([one.sessions_count for one in history]) if history else own
    eta = estimate_end(
        facts,
        [length for one in history for length in one.lengths_ns],
        waiting=max(expected - own, 0),
        after_ns=median([one.after_ns for one in history]) if history else 0,
    )
    return eta, max(expected, own)
