"""A step in numbers: all its parts for one page, and the few that a list of steps shows."""

from collections.abc import Sequence
from typing import Final

import msgspec

from rollscope.analysis.idle import IdleSplit, idle_split
from rollscope.analysis.path import CriticalPath, SpansOf, critical_path
from rollscope.analysis.pools import sweep_pools
from rollscope.analysis.replicas import ReplicaSplit, replica_split
from rollscope.analysis.rows import SessionRow, StepFacts
from rollscope.analysis.staleness import LagHistogram, Versions, lag_histogram
from rollscope.analysis.sync import SyncSplit, sync_split
from rollscope.analysis.tail import TailSplit, tail_split
from rollscope.analysis.trainer import TrainerSplit, trainer_split
from rollscope.analysis.waste import Waste, waste
from rollscope.model.kinds import Status

__all__ = [
    "LOST",
    "NO_OUTCOME",
    "STILL_OPEN",
    "StepParts",
    "StepSummary",
    "analyse_step",
    "outline",
    "service_key",
    "summarise",
]

NO_OUTCOME: Final = "none"
"""Stands for sessions that have ended without an outcome, so far."""
LOST: Final = str(Status.LOST)
"""Stands for sessions that went with their process."""
STILL_OPEN: Final = "open"
"""Stands for sessions that have not ended."""


class StepParts(msgspec.Struct, kw_only=True):
    """Everything computed about one step, from one sweep."""

    idle: IdleSplit
    trainer: TrainerSplit
    tail: TailSplit
    path: CriticalPath
    sync: SyncSplit
    replicas: ReplicaSplit
    waste: Waste


class StepSummary(msgspec.Struct, kw_only=True):
    """One row of the list of steps, and what later steps are compared with."""

    step: int | None
    wall_ns: int
    is_open: bool = False
    sessions: int = 0
    outcomes: dict[str, int] = {}
    """How many sessions by outcome."""
    unconsumed: int = 0
    """Sessions that no step has consumed yet, where that is recorded; a later one may."""
    tail_wall_ns: int = 0
    bubble_ns: int = 0
    trainer_wait_ns: int = 0
    sync_ns: int = 0
    slot_ns: int = 0
    busy_ns: int = 0
    idle_ns: dict[str, int] = {}
    """By cause."""
    waste_ns: int = 0
    waste_share: float = 0.0
    """Of the slot time of the step's sessions that are over."""
    lag_p50: int | None = None
    """Versions between the start of a session and its consumption, where both are known."""
    lag_max: int | None = None
    tokens_per_s: float = 0.0
    mean_reward: float | None = None
    path_ns: dict[str, int] = {}
    """The critical path by name; adds up to the wall."""
    phase_shares: dict[str, float] = {}
    """Of all phase time, by name."""
    p95_ns: dict[str, int] = {}
    """By name and detail, as `service_key` writes them."""
    train_ns: int = 0

    @property
    def trainer_wait_share(self) -> float:
        """How much of the wall the trainer waited."""
        return self.trainer_wait_ns / self.wall_ns if self.wall_ns else 0.0


def analyse_step(facts: StepFacts, spans_of: SpansOf) -> StepParts:
    """Compute every part of a step.

    Args:
        facts: The step.
        spans_of: Gives the spans of a session.
    """
    sweeps = sweep_pools(facts)
    idle = idle_split(facts, sweeps)
    tail = tail_split(facts, sweeps)
    return StepParts(
        idle=idle,
        trainer=trainer_split(facts),
        tail=tail,
        path=critical_path(facts, spans_of, tail),
        sync=sync_split(facts, sweeps),
        replicas=replica_split(facts, idle),
        waste=waste(facts.sessions),
    )


def summarise(facts: StepFacts, spans_of: SpansOf, parts: StepParts | None = None) -> StepSummary:
    """Give the numbers of a step that a list of steps shows.

    Args:
        facts: The step.
        spans_of: Gives the spans of a session.
        parts: What `analyse_step` gave for the step, if at hand.
    """
    known = analyse_step(facts, spans_of) if parts is None else parts
    lags = _lags(facts)
    rewards = [session.reward for session in facts.sessions if session.reward is not None]
    return msgspec.structs.replace(
        outline(facts),
        sessions=len(facts.sessions),
        outcomes=_outcomes(facts.sessions),
        unconsumed=_unconsumed(facts.sessions, known.waste),
        tail_wall_ns=known.tail.tail_wall_ns,
        bubble_ns=known.tail.bubble_ns,
        trainer_wait_ns=known.trainer.waiting_ns,
        sync_ns=known.sync.total_ns,
        slot_ns=known.idle.total_ns,
        busy_ns=known.idle.busy_ns,
        idle_ns=known.idle.idle_ns,
        waste_ns=known.waste.slot_ns,
        waste_share=known.waste.share,
        lag_p50=lags.p50,
        lag_max=lags.max,
        tokens_per_s=sum(one.tokens_per_s for one in known.replicas.replicas),
        mean_reward=sum(rewards) / len(rewards) if rewards else None,
        path_ns=known.path.totals,
        train_ns=known.trainer.train_ns,
    )


def outline(facts: StepFacts) -> StepSummary:
    """Give what can be said of a step without its sessions, which is all that history needs."""
    phase_ns = sum(phase.total_ns for phase in facts.phases)
    return StepSummary(
        step=facts.span.step,
        wall_ns=facts.wall_ns,
        is_open=facts.span.end_ns is None,
        phase_shares={
            name: total / phase_ns for name, total in _by_phase(facts).items() if phase_ns
        },
        p95_ns={service_key(phase.name, phase.detail): phase.p95_ns for phase in facts.phases},
    )


def service_key(name: str, detail: str | None) -> str:
    """Name a phase of one tool, environment, reward function or model."""
    return name if detail is None else f"{name} {detail}"


def _outcomes(sessions: Sequence[SessionRow]) -> dict[str, int]:
    names = [_outcome(one) for one in sessions]
    return {name: names.count(name) for name in sorted(set(names))}


def _outcome(session: SessionRow) -> str:
    if session.outcome is not None:
        return str(session.outcome)
    if session.status is Status.LOST:
        return LOST
    return NO_OUTCOME if session.is_over else STILL_OPEN


def _unconsumed(sessions: Sequence[SessionRow], known: Waste) -> int:
    if not known.is_consumption_recorded:
        return 0
    return known.pending + sum(not session.is_over for session in sessions)


def _by_phase(facts: StepFacts) -> dict[str, int]:
    totals: dict[str, int] = {}
    for phase in facts.phases:
        totals[phase.name] = totals.get(phase.name, 0) + phase.total_ns
    return totals


def _lags(facts: StepFacts) -> LagHistogram:
    """Count, in versions, how old each consumed session was when it was consumed."""
    versions = Versions(facts.events)
    return lag_histogram(
        versions.lag(one.version_start, one.consumed_ns)
        for one in facts.sessions
        if versions and one.consumed_ns is not None and one.version_start is not None
    )
