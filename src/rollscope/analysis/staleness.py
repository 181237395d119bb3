"""How many versions behind sessions were: when they started, ended, and were consumed.

A session without a version is counted, not guessed.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rollscope.analysis.ranks import NEEDED_FOR_P95, median, nearest_rank
from rollscope.analysis.roles import PUBLISHED_EVENT
from rollscope.analysis.rows import EventRow, SessionRow, SpanRow

__all__ = [
    "STALE_AT",
    "LagHistogram",
    "PhaseSplit",
    "Staleness",
    "Versions",
    "lag_histogram",
    "last_lag",
    "staleness",
]

STALE_AT = 2
"""From which lag on a session's phases are held against those of the rest."""


class LagHistogram(msgspec.Struct, frozen=True):
    """How many sessions had which lag, in versions."""

    count: int
    bins: list[tuple[int, int]]
    """Lag and sessions, by lag; lags that no session had are left out."""
    total: int
    """All lags added up."""
    p50: int | None
    p95: int | None
    """None below 20 sessions."""
    max: int | None


class PhaseSplit(msgspec.Struct, frozen=True):
    """The time of one phase in the sessions that lag, and in the others.

    A session without the phase counts with zero.
    """

    name: str
    stale_p50_ns: int | None
    rest_p50_ns: int | None
    stale_total_ns: int
    rest_total_ns: int


class Staleness(msgspec.Struct, kw_only=True):
    """How stale some sessions were."""

    at_start: LagHistogram
    at_end: LagHistogram
    at_consume: LagHistogram
    in_flight: LagHistogram
    """What was added between start and end."""
    in_queue: LagHistogram
    """What was added between end and consumption."""
    without_version: int
    """Sessions that do not say which version made them."""
    is_published: bool
    """Whether any version was ever published; without that no lag can be told."""
    bound: int | None
    """The lag that the run allows, where it says so."""
    beyond_bound: int
    """Sessions consumed with more than that."""
    token_mean: float | None
    """The lag of the average consumed token; None unless versions are recorded by segment."""
    stale_count: int
    rest_count: int
    phases: list[PhaseSplit]
    """Sessions at a lag of two or more against the rest, the phase that differs most first."""


class Versions:
    """The newest version published, at any moment."""

    def __init__(self, events: Iterable[EventRow]) -> None:
        published = sorted(
            (event.time_ns, event.version)
            for event in events
            if event.name == PUBLISHED_EVENT and event.version is not None
        )
        self._times: list[int] = []
        self._newest: list[int] = []
        for time_ns, version in published:
            self._times.append(time_ns)
            self._newest.append(max(version, self._newest[-1] if self._newest else version))

    def __bool__(self) -> bool:
        return bool(self._times)

    def at(self, time_ns: int) -> int | None:
        """Give the newest version published by then; None before the first."""
        position = bisect_right(self._times, time_ns)
        return self._newest[position - 1] if position else None

    def lag(self, version: int, time_ns: int) -> int:
        """Say how far behind a version was at a moment at which it was in use.

        Whoever uses a version proves that it was out by then, so the lag is never negative: not
        before the first publication, nor where clocks disagree.
        """
        newest = self.at(time_ns)
        return 0 if newest is None else max(newest - version, 0)


class _Lags(msgspec.Struct):
    session_id: int
    start: int
    end: int | None
    consume: int | None

    @property
    def last(self) -> int:
        if self.consume is not None:
            return self.consume
        return self.start if self.end is None else self.end


def staleness(
    sessions: Iterable[SessionRow],
    events: Iterable[EventRow],
    phase_ns: Mapping[int, Mapping[str, int]] | None = None,
    *,
    bound: int | None = None,
    segments: Iterable[SpanRow] = (),
) -> Staleness:
    """Tell how stale sessions were, and where those that lag spent their time.

    Args:
        sessions: The sessions; those that were lost have no lag at their end.
        events: Published weights; other events are passed over.
        phase_ns: The union of each phase, by session and phase. Sessions that are not in it are
            left out of the comparison of phases.
        bound: The lag that the run allows.
        segments: Spans of these sessions with a version and a number of tokens.
    """
    versions = Versions(events)
    known, without_version = [], 0
    consumed_ns: dict[int, int] = {}
    for session in sessions:
        if session.version_start is None:
            without_version += 1
        elif versions:
            known.append(_lags(session, session.version_start, versions))
        if session.consumed_ns is not None:
            consumed_ns[session.span_id] = session.consumed_ns
    stale = {lags.session_id for lags in known if lags.last >= STALE_AT}
    rest = {lags.session_id for lags in known} - stale
    at_consume = lag_histogram(lags.consume for lags in known if lags.consume is not None)
    return Staleness(
        at_start=lag_histogram(lags.start for lags in known),
        at_end=lag_histogram(lags.end for lags in known if lags.end is not None),
        at_consume=at_consume,
        in_flight=lag_histogram(lags.end - lags.start for lags in known if lags.end is not None),
        in_queue=lag_histogram(
            lags.consume - lags.end
            for lags in known
            if lags.consume is not None and lags.end is not None
        ),
        without_version=without_version,
        is_published=bool(versions),
        bound=bound,
        beyond_bound=0 if bound is None else sum(n for lag, n in at_consume.bins if lag > bound),
        token_mean=_token_mean(segments, consumed_ns, versions) if versions else None,
        stale_count=len(stale),
        rest_count=len(rest),
        phases=_split_phases(stale, rest, phase_ns or {}),
    )


def lag_histogram(lags: Iterable[int]) -> LagHistogram:
    """Count lags."""
    ordered = sorted(lags)
    count = len(ordered)
    return LagHistogram(
        count=count,
        bins=sorted(Counter(ordered).items()),
        total=sum(ordered),
        p50=nearest_rank(ordered, 50) if count else None,
        p95=nearest_rank(ordered, 95) if count >= NEEDED_FOR_P95 else None,
        max=ordered[-1] if count else None,
    )


def last_lag(session: SessionRow, versions: Versions) -> int | None:
    """Say how far behind a session was when consumed, else at its end, else at its start."""
    if session.version_start is None or not versions:
        return None
    return _lags(session, session.version_start, versions).last


def _lags(session: SessionRow, version: int, versions: Versions) -> _Lags:
    def lag(time_ns: int | None) -> int | None:
        return None if time_ns is None else versions.lag(version, time_ns)

    return _Lags(
        session_id=session.span_id,
        start=versions.lag(version, session.start_ns),
        end=lag(session.end_ns) if session.is_measured else None,
        consume=lag(session.consumed_ns),
    )


def _token_mean(
    segments: Iterable[SpanRow], consumed_ns: Mapping[int, int], versions: Versions
) -> float | None:
    tokens = behind = 0
    for span in segments:
        when = None if span.session_id is None else consumed_ns.get(span.session_id)
        if when is not None and span.version is not None and span.tokens:
            tokens += span.tokens
            behind += span.tokens * versions.lag(span.version, when)
    return behind / tokens if tokens else None


def _split_phases(
    stale: set[int], rest: set[int], phase_ns: Mapping[int, Mapping[str, int]]
) -> list[PhaseSplit]:
    stale_times = [phase_ns[key] for key in stale if key in phase_ns]
    rest_times = [phase_ns[key] for key in rest if key in phase_ns]
    names = sorted({name for times in (*stale_times, *rest_times) for name in times})
    splits = []
    for name in names:
        stale_ns = [times.get(name, 0) for times in stale_times]
        rest_ns = [times.get(name, 0) for times in rest_times]
        splits.append(PhaseSplit(name, _p50(stale_ns), _p50(rest_ns), sum(stale_ns), sum(rest_ns)))
    return sorted(
        splits, key=lambda split: -abs((split.stale_p50_ns or 0) - (split.rest_p50_ns or 0))
    )


def _p50(values: Sequence[int]) -> int | None:
    return median(values) if values else None
