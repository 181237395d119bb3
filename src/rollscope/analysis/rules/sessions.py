"""Rules on sessions: those that were last, stuck, waiting or thrown away."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

from rollscope.analysis.intervals import clip, sum_ns
from rollscope.analysis.ranks import median
from rollscope.analysis.rows import SessionRow, open_interval
from rollscope.analysis.rules.case import MOST_NAMED, Case, Evidence, Finding
from rollscope.analysis.rules.pools import held_back
from rollscope.analysis.stuck import ALARMS
from rollscope.analysis.waste import WasteRow
from rollscope.analysis.wording import say_count, say_ns, say_share, say_where
from rollscope.model.kinds import Kind

__all__ = ["find_queue", "find_stuck", "find_tail", "find_waste"]

T = TypeVar("T")


def find_tail(case: Case) -> Finding | None:
    """At least 10 % of the wall passed after 95 % of the sessions had ended."""
    tail = case.parts.tail
    if tail.p95_end_ns is None or 10 * tail.tail_wall_ns < max(case.wall_ns, 1):
        return None
    by_id = {session.span_id: session for session in case.facts.sessions}
    held = [by_id[session_id] for session_id in tail.holders]
    sentence = (
        f"{say_ns(tail.tail_wall_ns)} ({say_share(tail.tail_wall_ns, case.wall_ns)}) "
        "passed after 95 % of the sessions had ended"
    )
    evidence = Evidence(sessions=tail.holders[:MOST_NAMED])
    if tail.is_broad:
        sentence += f"; a broad tail of {say_count(len(held), 'session')}"
    elif held:
        evidence, where = _held_where(case, held, tail.p95_end_ns)
        sentence += f"; {_holders(case, held)} held it{where}{_after_the_others(case, held)}"
    return Finding(
        rule="tail",
        stake_ns=tail.tail_wall_ns,
        sentence=f"{sentence}.",
        evidence=evidence,
        try_next="Start the longest tasks first."
        if tail.is_broad
        else "Give these tasks a deadline, or start them first.",
    )


def find_stuck(case: Case) -> Finding | None:
    """Sessions of a running step are stuck, overdue or silent."""
    if case.facts.span.end_ns is not None:
        return None
    own = {session.span_id for session in case.facts.sessions}
    rows = [row for row in case.stuck if row.band in ALARMS and row.session_id in own]
    if not rows:
        return None
    name, detail = _most((row.name, row.detail) for row in rows)
    there = [row for row in rows if (row.name, row.detail) == (name, detail)]
    oldest_ns = max(row.age_ns for row in there)
    where = say_where(name, detail)
    among = "" if len(there) == len(rows) else f"{say_count(len(rows), 'session')} are stuck; "
    ids = [row.session_id for row in there if row.session_id is not None]
    names, number = case.names(ids), say_count(len(there), "session")
    who = (names if len(there) == 1 else f"{number} ({names})") if names else number
    verb = "is" if len(there) == 1 else "are"
    span = f"for {say_ns(oldest_ns)}" if len(there) == 1 else f"for up to {say_ns(oldest_ns)}"
    them = "it" if len(rows) == 1 else "them"
    return Finding(
        rule="stuck",
        stake_ns=min(oldest_ns, case.wall_ns),
        sentence=(
            f"{among}{who} {verb} stuck in {where} {span}; the step cannot end without {them}."
        ),
        evidence=Evidence(sessions=ids[:MOST_NAMED], phase=name, detail=detail),
        try_next="Look at the line they await, and give that call a timeout.",
    )


def find_queue(case: Case) -> Finding | None:
    """The median wait for a slot is at least 20 % of the median session.

    Not where slots stood idle for half of their time, held back by something else: more of them
    would be held back too.
    """
    waited = [one.waited_ns for one in case.facts.sessions if one.waited_ns is not None]
    ran = [one.end_ns - one.start_ns for one in case.facts.sessions if one.end_ns is not None]
    if not waited or not ran:
        return None
    wait_ns = median(waited)
    if not wait_ns or 5 * wait_ns < median(ran):
        return None
    if 2 * sum(held_back(case).values()) > case.parts.idle.total_ns:
        return None
    return Finding(
        rule="queue",
        stake_ns=min(wait_ns, case.wall_ns),
        sentence=f"Sessions waited {say_ns(wait_ns)} for a slot (median).",
        evidence=Evidence(),
        try_next="See under `What if` what more slots would buy.",
    )


def find_waste(case: Case) -> Finding | None:
    """At least 10 % of the sessions' time went to sessions that were thrown away."""
    waste = case.parts.waste
    if not waste.slot_ns or waste.share < 0.1:
        return None
    worst = waste.rows[0]
    fate = f"{worst.outcome} as {worst.reason}" if worst.reason else worst.outcome
    share = waste.share
    mostly = fate if len(waste.rows) == 1 else f"{say_share(worst.share)} to those {fate}"
    return Finding(
        rule="waste",
        stake_ns=case.stake(share, 1),
        sentence=f"{say_share(share)} of slot time went to sessions later thrown away, {mostly}.",
        evidence=Evidence(sessions=_longest(case, worst)),
        try_next="See their reasons, and stop such sessions sooner.",
    )


def _longest(case: Case, row: WasteRow) -> list[int]:
    """Name the longest sessions that a row of waste is made of."""
    ended = [
        (session.start_ns - session.end_ns, session.span_id)
        for session in case.facts.sessions
        if session.end_ns is not None
        and session.reason == row.reason
        and row.outcome in (str(session.outcome), str(session.status))
    ]
    return [session_id for _, session_id in sorted(ended)[:MOST_NAMED]]


def _holders(case: Case, held: Sequence[SessionRow]) -> str:
    """Name who held a tail, or count them where their tasks are not known."""
    names = case.names(session.span_id for session in held)
    if len(held) == 1:
        return names or "1"
    return f"{len(held)} ({names})" if names else str(len(held))


def _after_the_others(case: Case, held: Sequence[SessionRow]) -> str:
    """Say how much later than all other sessions the last of them ended, if it has."""
    holders = {session.span_id for session in held}
    others = [one.end_ns for one in case.facts.sessions if one.span_id not in holders]
    ends = [one.end_ns for one in held if one.end_ns is not None]
    known = [end_ns for end_ns in others if end_ns is not None]
    if not known or len(known) < len(others) or len(ends) < len(held):
        return ""
    late_ns = max(ends) - max(known)
    return f", {'' if len(held) == 1 else 'the last '}{say_ns(late_ns)} after the others"


def _held_where(case: Case, held: Sequence[SessionRow], since_ns: int) -> tuple[Evidence, str]:
    """Say what the holders of a tail were doing meanwhile, and where, as far as most agree."""
    doing = {one.span_id: _longest_phase(case, one, since_ns) for one in held}
    phases = [phase for phase in doing.values() if phase is not None]
    ids = [session.span_id for session in held]
    if not phases:
        return Evidence(sessions=ids[:MOST_NAMED]), ""
    name, detail = _most(phases)
    there = [session for session in held if doing[session.span_id] == (name, detail)]
    host = _most(session.host for session in there)
    is_one_place = bool(host) and all(session.host == host for session in there)
    where = f"{say_where(name, detail)}{f' on {host}' if is_one_place else ''}"
    said = f" in {where}" if len(there) == len(held) else f", {len(there)} of them in {where}"
    evidence = Evidence(
        sessions=ids[:MOST_NAMED], phase=name, detail=detail, host=host if is_one_place else None
    )
    return evidence, said


def _longest_phase(case: Case, session: SessionRow, since_ns: int) -> tuple[str, str | None] | None:
    whole = since_ns, open_interval(session, case.facts.now_ns)[1]
    lengths: dict[tuple[str, str | None], int] = {}
    for row in case.spans_of(session.span_id):
        length = sum_ns(clip([open_interval(row, case.facts.now_ns)], whole))
        if row.kind is Kind.PHASE and length:
            key = row.name, row.detail
            lengths[key] = lengths.get(key, 0) + length
    return max(lengths, key=lambda key: lengths[key], default=None)


def _most(values: Iterable[T]) -> T:
    """Give what occurs most often; of equals, what comes first."""
    return Counter(values).most_common(1)[0][0]
