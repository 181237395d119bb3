"""Rules on work: the trainer, event loops, and phases that grew."""

from statistics import median as middle
from typing import Final

from rollscope.analysis.rules.case import MOST_NAMED, Case, Evidence, Finding
from rollscope.analysis.statistics import MAD_SCALE, mad
from rollscope.analysis.wording import say_ns, say_share

__all__ = ["find_loop", "find_shift", "find_trainer"]

_SECOND: Final = 1_000_000_000
_NEEDED_FOR_SHIFT: Final = 5
_DEVIATIONS: Final = 4


def find_trainer(case: Case) -> Finding | None:
    """The trainer waited at least 10 % of the wall."""
    trainer = case.parts.trainer
    if not trainer.waiting_ns or 10 * trainer.waiting_ns < case.wall_ns:
        return None
    more_filling = trainer.filling_ns >= trainer.stragglers_ns
    holders = [] if more_filling else case.parts.tail.holders
    names = "" if case.parts.tail.is_broad else case.names(holders)
    return Finding(
        rule="trainer",
        stake_ns=trainer.waiting_ns,
        sentence=(
            f"The trainer waited {say_ns(trainer.waiting_ns)} for its batch: "
            f"{say_ns(trainer.filling_ns)} filling, {say_ns(trainer.stragglers_ns)} for stragglers"
            f"{f' ({names})' if names else ''}."
        ),
        evidence=Evidence(sessions=holders[:MOST_NAMED]),
        try_next="Add rollout slots, or let rollouts run ahead of the trainer."
        if more_filling
        else "Ask for a few sessions more than the batch needs, and drop the last.",
    )


def find_loop(case: Case) -> Finding | None:
    """An event loop was blocked for 2 % of the wall, or once for a second."""
    blocked = [
        stall
        for stall in case.stalls
        if 50 * stall.total_ns >= case.wall_ns or stall.longest_ns >= _SECOND
    ]
    if not blocked:
        return None
    worst = max(blocked, key=lambda stall: stall.total_ns)
    where = f" in {worst.where}" if worst.where else ""
    return Finding(
        rule="loop",
        stake_ns=worst.total_ns,
        sentence=f"The event loop of pid {worst.pid} stalled {say_ns(worst.total_ns)}{where}.",
        evidence=Evidence(process=worst.process),
        try_next="Move the blocking call to a thread or a process.",
    )


def find_shift(case: Case) -> Finding | None:
    """A phase's share is more than four robust deviations above that of the steps before."""
    if len(case.history) < _NEEDED_FOR_SHIFT:
        return None
    total_ns = sum(phase.total_ns for phase in case.facts.phases)
    now: dict[str, float] = {}
    for phase in case.facts.phases:
        now[phase.name] = now.get(phase.name, 0.0) + phase.total_ns / max(total_ns, 1)
    shifts: list[tuple[float, str, float]] = []
    for name, share in now.items():
        before = [step.phase_shares.get(name, 0.0) for step in case.history]
        usual = middle(before)
        deviation = MAD_SCALE * mad(before)
        if share - usual > _DEVIATIONS * deviation:
            shifts.append((share - usual, name, usual))
    if not shifts:
        return None
    rise, name, usual = max(shifts)
    return Finding(
        rule="shift",
        stake_ns=case.stake(rise, 1),
        sentence=f"{name} went from {say_share(usual)} to {say_share(now[name])}.",
        evidence=Evidence(phase=name),
        try_next=f"Compare this step's {name} with that of a step before.",
    )
