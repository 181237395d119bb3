"""Rules on pools: silent, held back, syncing, or uneven."""

from rollscope.analysis.pools import BUFFER_FULL, DOWN, PAUSED
from rollscope.analysis.roles import GATE_PREFIX, is_sync
from rollscope.analysis.rows import ProcessRow, SessionRow
from rollscope.analysis.rules.case import MOST_NAMED, Case, Evidence, Finding
from rollscope.analysis.wording import say_ns, say_share
from rollscope.model.kinds import Status

__all__ = ["find_dead", "find_gate", "find_replica", "find_sync", "held_back"]


def find_dead(case: Case) -> Finding | None:
    """A process fell silent inside of the step, or its pool stood still for it."""
    down = {pool.pool for pool in case.parts.idle.pools if pool.idle_ns[DOWN]}
    found: list[tuple[int, str, ProcessRow, list[SessionRow]]] = []
    for process in case.facts.processes:
        own = [one for one in case.facts.around if one.process == process.process]
        pools = sorted({session.pool for session in own} | ({process.title} & down))
        silent_ns = case.facts.end_ns - max(process.last_seen_ns, case.facts.start_ns)
        began_here = case.facts.start_ns <= process.last_seen_ns
        if process.status not in ("dead", "silent") or silent_ns <= 0:
            continue
        if began_here or down & set(pools):
            title = pools[0] if len(pools) == 1 and pools[0] else process.title
            lost = [one for one in own if one.status is Status.LOST or one.end_ns is None]
            found.append((silent_ns, title, process, lost))
    if not found:
        return None
    silent_ns, title, process, lost = max(found, key=lambda one: one[0])
    count = sum(len(sessions) for _, _, _, sessions in found)
    # Of other processes there may be some, so it is not said that there were none.
    whom = "1 session was" if count == 1 else f"{count:,} sessions were"
    lost_too = f"; {whom} lost or retried" if count else ""
    for_so_long = f"was silent for {say_ns(silent_ns)}"
    if len(found) > 1:
        for_so_long = f"and {len(found) - 1} more were silent for up to {say_ns(silent_ns)}"
    return Finding(
        rule="dead",
        stake_ns=silent_ns,
        sentence=f"{title} {for_so_long}{lost_too}.",
        evidence=Evidence(
            sessions=[one.span_id for one in lost][:MOST_NAMED],
            pool=title if title != process.title else None,
            process=process.process,
            host=process.host or None,
        ),
        try_next="Read the end of its log; the kernel's too, for memory.",
    )


def held_back(case: Case) -> dict[str, int]:
    """Give the slot time that stood idle for a gate, a pause or a full buffer, by which."""
    return {
        cause: ns
        for cause, ns in case.parts.idle.idle_ns.items()
        if cause in (PAUSED, BUFFER_FULL) or cause.startswith(GATE_PREFIX)
    }


def find_gate(case: Case) -> Finding | None:
    """Slots stood idle at least 10 % for a gate, a pause or a full buffer."""
    idle = case.parts.idle
    causes = held_back(case)
    cause = max(causes, key=lambda cause: causes[cause])
    held_ns = causes[cause]
    if not held_ns or 10 * held_ns < idle.total_ns:
        return None
    share = say_share(held_ns, idle.total_ns)
    if cause == PAUSED:
        where, advice = "while they were paused", "Shorten the pause, or sync pool by pool."
    elif cause == BUFFER_FULL:
        where, advice = "while the buffer was full", "Fetch results sooner; the consumer is slow."
    else:
        gate = cause.removeprefix(GATE_PREFIX)
        where, advice = f"at the {gate} gate", f"Loosen the {gate} bound if training allows it."
    pool = max(idle.pools, key=lambda pool: pool.idle_ns.get(cause, 0)).pool
    return Finding(
        rule="gate",
        stake_ns=case.stake(held_ns, idle.total_ns),
        sentence=f"Slots stood idle {share} {where}.",
        evidence=Evidence(pool=pool),
        try_next=advice,
    )


def find_sync(case: Case) -> Finding | None:
    """Weight sync is at least 10 % of the path."""
    on_path = sum(
        segment.length_ns
        for segment in case.parts.path.segments
        if is_sync(segment.name) or is_sync(segment.within or "")
    )
    if not on_path or 10 * on_path < case.wall_ns:
        return None
    sync = case.parts.sync
    parts = (("pause", sync.pause_ns), ("transfer", sync.transfer_ns), ("resume", sync.resume_ns))
    said = ", ".join(f"{part} {say_ns(ns)}" for part, ns in parts if ns)
    slowest = "" if sync.slowest is None else f"; slowest {sync.slowest}"
    return Finding(
        rule="sync",
        stake_ns=on_path,
        sentence=f"Weight sync took {say_ns(sync.total_ns)}{': ' if said else ''}{said}{slowest}.",
        evidence=Evidence(pool=sync.slowest),
        try_next="Overlap the transfer with generation, or send it to the replicas side by side.",
    )


def find_replica(case: Case) -> Finding | None:
    """The busiest replica was at least 1.5 times as busy as the mean."""
    split = case.parts.replicas
    if len(split.replicas) < 2 or split.imbalance < 1.5:
        return None
    ordered = sorted(split.replicas, key=lambda replica: replica.busy_share)
    busiest, middle = ordered[-1], ordered[(len(ordered) - 1) // 2]
    return Finding(
        rule="replica",
        stake_ns=case.stake(busiest.busy_share - middle.busy_share, 1),
        sentence=(
            f"{busiest.pool} was busy {say_share(busiest.busy_share)}, "
            f"the median replica {say_share(middle.busy_share)}."
        ),
        evidence=Evidence(pool=busiest.pool),
        try_next="Send new sessions to the replica with the fewest in flight.",
    )
