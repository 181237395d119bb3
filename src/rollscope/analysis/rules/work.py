"""Rules on work: services, the trainer, event loops, and phases that grew."""

from statistics import median as middle
from typing import Final

from rollscope.analysis.ranks import NEEDED_FOR_P95, median
from rollscope.analysis.roles import role_of
from rollscope.analysis.rows import PhaseTotal
from rollscope.analysis.rules.case import MOST_NAMED, Case, Evidence, Finding
from rollscope.analysis.statistics import MAD_SCALE, mad
from rollscope.analysis.steps import service_key
from rollscope.analysis.wording import say_ns, say_share, say_where

__all__ = ["find_loop", "find_service", "find_shift", "find_trainer"]

_MUCH: Final = 0.15
_SECOND: Final = 1_000_000_000
_NEEDED_FOR_SHIFT: Final = 5
_DEVIATIONS: Final = 4
_SERVICES: Final = frozenset({"tool", "env", "reward"})


def find_service(case: Case) -> Finding | None:
    """One tool, environment or reward function holds at least 15 % of the path or of slot time."""
    on_path: dict[tuple[str, str | None], int] = {}
    for segment in case.parts.path.segments:
        key = segment.within or segment.name, segment.detail
        on_path[key] = on_path.get(key, 0) + segment.length_ns
    totals = {(phase.name, phase.detail): phase for phase in case.facts.phases}
    slot_ns = case.parts.idle.total_ns
    shares: list[tuple[float, str, tuple[str, str | None]]] = []
    for name, detail in sorted({*on_path, *totals}, key=str):
        if role_of(name) not in _SERVICES:
            continue
        total = totals.get((name, detail))
        path_share = on_path.get((name, detail), 0) / case.wall_ns if case.wall_ns else 0.0
        slot_share = total.total_ns / slot_ns if total and slot_ns else 0.0
        if path_share >= _MUCH:
            shares.append((path_share, "the path", (name, detail)))
        elif slot_share >= _MUCH:
            shares.append((slot_share, "slot time", (name, detail)))
    if not shares:
        return None
    share, said, (name, detail) = max(shares, key=lambda one: one[0])
    phase = totals.get((name, detail))
    is_queueing = phase is not None and 2 * phase.queue_ns > phase.total_ns
    speed = "" if phase is None else f": {_speed(case, phase)}"
    queueing = ", mostly queueing" if is_queueing else ""
    return Finding(
        rule="service",
        stake_ns=case.stake(share, 1),
        sentence=f"{say_where(name, detail)} held {say_share(share)} of {said}{speed}{queueing}.",
        evidence=Evidence(phase=name, detail=detail),
        try_next="Give the service more workers." if is_queueing else "See its slowest calls.",
    )


def find_trainer(case: Case) -> Finding | None:
    """The trainer waited at least 10 % of the wall."""
    trainer = case.parts.trainer
    if not trainer.waiting_ns or 10 * trainer.waiting_ns < case.wall_ns:
        return None
    more_filling = trainer.filling_ns >= trainer.stragglers_ns
    return Finding(
        rule="trainer",
        stake_ns=trainer.waiting_ns,
        sentence=(
            f"The trainer waited {say_ns(trainer.waiting_ns)} for its batch: "
            f"{say_ns(trainer.filling_ns)} filling, {say_ns(trainer.stragglers_ns)} for stragglers."
        ),
        evidence=Evidence(sessions=[] if more_filling else case.parts.tail.holders[:MOST_NAMED]),
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


def _speed(case: Case, phase: PhaseTotal) -> str:
    word = "p95" if phase.count >= NEEDED_FOR_P95 else "longest"
    key = service_key(phase.name, phase.detail)
    before = [step.p95_ns[key] for step in case.history if key in step.p95_ns]
    usual = f" ({case.before()}: {say_ns(median(before))})" if before else ""
    return f"{word} {say_ns(phase.p95_ns)}{usual}"
