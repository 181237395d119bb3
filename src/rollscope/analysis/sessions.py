"""Where one session's time went: by phase, as union, as sum, and as a share of the whole."""

from collections.abc import Hashable, Iterable
from typing import Protocol

import msgspec

from rollscope.analysis.intervals import Interval, divide, sum_ns, union_ns
from rollscope.model.kinds import Kind

__all__ = ["PhaseTimes", "SessionTimes", "Timed", "TimedSpan", "session_times"]


class Timed(Protocol):
    """Anything that starts and may end: a record or a row."""

    @property
    def span_id(self) -> Hashable:
        """Its name among spans."""

    @property
    def start_ns(self) -> int:
        """When it started."""

    @property
    def end_ns(self) -> int | None:
        """When it ended, if it did."""


class TimedSpan(Timed, Protocol):
    """A span with its place."""

    @property
    def parent_id(self) -> Hashable | None:
        """What it lies inside of."""

    @property
    def session_id(self) -> Hashable | None:
        """Whose it is."""

    @property
    def kind(self) -> Kind:
        """What it stands for."""

    @property
    def name(self) -> str:
        """Its name."""


class PhaseTimes(msgspec.Struct):
    """What all phases of one name took within a session."""

    count: int = 0
    union_ns: int = 0
    """Time during which at least one of them was open."""
    sum_ns: int = 0
    """Their lengths added up; more than the union if they overlap."""
    share_ns: int = 0
    """Their part of the session, such that the parts and the rest make the whole."""


class SessionTimes(msgspec.Struct):
    """Where one session's time went; the shares and `other_ns` add up to `total_ns` exactly."""

    total_ns: int
    phases: dict[str, PhaseTimes]
    other_ns: int
    """Time in which no phase was open."""


def session_times(
    session: Timed, spans: Iterable[TimedSpan], now_ns: int | None = None
) -> SessionTimes:
    """Split a session's time by phase.

    An instant in which several phases are open is divided among them; while a phase is open inside
    of another one, it is the inner one's. What reaches beyond the session is cut off.

    Args:
        session: The session.
        spans: The spans of the session, in any order; those that are no phases tell what lies
            inside of what. Spans of other sessions are left out.
        now_ns: Where open spans are cut off; the session's start if not given.
    """
    now = session.start_ns if now_ns is None else now_ns
    whole = _interval(session, now)
    own = [span for span in spans if span.session_id == session.span_id]
    inside_of = {span.span_id: span.parent_id for span in own if span.parent_id is not None}
    phases = [span for span in own if span.kind is Kind.PHASE]
    claims = {phase.span_id: _interval(phase, now) for phase in phases}
    shares, other_ns = divide(claims, whole, inside_of)
    by_name: dict[str, list[TimedSpan]] = {}
    for phase in phases:
        by_name.setdefault(phase.name, []).append(phase)
    return SessionTimes(
        total_ns=whole[1] - whole[0],
        phases={
            name: PhaseTimes(
                count=len(group),
                union_ns=union_ns(claims[phase.span_id] for phase in group),
                sum_ns=sum_ns(claims[phase.span_id] for phase in group),
                share_ns=sum(shares[phase.span_id] for phase in group),
            )
            for name, group in by_name.items()
        },
        other_ns=other_ns,
    )


def _interval(span: Timed, now_ns: int) -> Interval:
    end_ns = now_ns if span.end_ns is None else span.end_ns
    return span.start_ns, max(end_ns, span.start_ns)
