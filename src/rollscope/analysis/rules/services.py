"""The rule on services: a tool, an environment or a reward function that a step waited for."""

from typing import Final

from rollscope.analysis.ranks import NEEDED_FOR_P95, median
from rollscope.analysis.roles import role_of
from rollscope.analysis.rows import PhaseTotal, open_interval
from rollscope.analysis.rules.case import Case, Evidence, Finding
from rollscope.analysis.steps import service_key
from rollscope.analysis.wording import say_ns, say_share, say_where
from rollscope.model.kinds import Kind

__all__ = ["find_service"]

_MUCH: Final = 0.15
_ODD: Final = 3
"""How many times as long as p95 a single call has to be for it to be told instead."""
_SLOWER: Final = 1.25
"""From how many times its usual p95 on a service as a whole has become slower."""
_SERVICES: Final = frozenset({"tool", "env", "reward"})
_Key = tuple[str, str | None]


def find_service(case: Case) -> Finding | None:
    """One tool, environment or reward function holds at least 15 % of the path or of slot time."""
    totals = {(phase.name, phase.detail): phase for phase in case.facts.phases}
    found = _largest(case, totals)
    if found is None:
        return None
    share, of_what, (name, detail) = found
    phase = totals.get((name, detail))
    finding = Finding(
        rule="service",
        stake_ns=case.stake(share, 1),
        sentence=f"{say_where(name, detail)} held {say_share(share)} of {of_what}.",
        evidence=Evidence(phase=name, detail=detail),
        try_next="See its slowest calls.",
    )
    if phase is not None:
        _add_speed(case, finding, phase)
    return finding


def _largest(case: Case, totals: dict[_Key, PhaseTotal]) -> tuple[float, str, _Key] | None:
    """Give the service with the largest share, and of what that is."""
    on_path: dict[_Key, int] = {}
    for segment in case.parts.path.segments:
        key = segment.within or segment.name, segment.detail
        on_path[key] = on_path.get(key, 0) + segment.length_ns
    slot_ns = case.parts.idle.total_ns
    shares: list[tuple[float, str, _Key]] = []
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
    return max(shares, key=lambda one: one[0], default=None)


def _add_speed(case: Case, finding: Finding, phase: PhaseTotal) -> None:
    """Say how fast the service was, or which one call was slow where the others were not."""
    held = finding.sentence.removesuffix(".")
    key = service_key(phase.name, phase.detail)
    before = [step.p95_ns[key] for step in case.history if key in step.p95_ns]
    usual_ns = median(before) if before else None
    call = _odd_call(case, phase)
    if call is not None and (usual_ns is None or phase.p95_ns <= _SLOWER * usual_ns):
        session_id, length_ns = call
        who = case.names([session_id])
        finding.sentence = (
            f"{held}, by one call{f' of {who}' if who else ''} that took {say_ns(length_ns)} "
            f"(p95 {say_ns(phase.p95_ns)})."
        )
        finding.evidence.sessions = [session_id]
        finding.try_next = "Give the call a timeout."
        return
    word = "p95" if phase.count >= NEEDED_FOR_P95 else "longest"
    usual = "" if usual_ns is None else f" ({case.before()}: {say_ns(usual_ns)})"
    is_queueing = 2 * phase.queue_ns > phase.total_ns
    queueing = ", mostly queueing" if is_queueing else ""
    finding.sentence = f"{held}: {word} {say_ns(phase.p95_ns)}{usual}{queueing}."
    if is_queueing:
        finding.try_next = "Give the service more workers."


def _odd_call(case: Case, phase: PhaseTotal) -> tuple[int, int] | None:
    """Find the one call that most of a service's time on the path is of: its session and length.

    None where there is none, or where it took hardly longer than others.
    """
    if phase.count < NEEDED_FOR_P95:
        return None
    on_path: dict[int, int] = {}
    for segment in case.parts.path.segments:
        is_of_phase = (segment.within or segment.name, segment.detail) == (phase.name, phase.detail)
        if is_of_phase and segment.session_id is not None:
            on_path[segment.session_id] = on_path.get(segment.session_id, 0) + segment.length_ns
    if not on_path:
        return None
    session_id = max(on_path, key=lambda one: on_path[one])
    calls = [
        open_interval(row, case.facts.now_ns)
        for row in case.spans_of(session_id)
        if (row.kind, row.name, row.detail) == (Kind.PHASE, phase.name, phase.detail)
    ]
    length_ns = max((end_ns - start_ns for start_ns, end_ns in calls), default=0)
    is_most = 2 * min(length_ns, on_path[session_id]) > sum(on_path.values())
    return (session_id, length_ns) if is_most and length_ns > _ODD * phase.p95_ns else None
