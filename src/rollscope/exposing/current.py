"""What a run does right now, as the page says it too: in flight, stuck, tail, loops, processes."""

import time
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from rollscope.analysis.roles import role_of
from rollscope.analysis.tail import tail_split
from rollscope.answers.engines import engine_labels, replica_of
from rollscope.answers.facts import gather_steps
from rollscope.answers.hosts import OpenSession, open_sessions
from rollscope.answers.loops import loop_lags
from rollscope.answers.moment import Moment
from rollscope.answers.moves import moves_of
from rollscope.answers.rows import MAYBE_CHARGED, session_rows
from rollscope.answers.source import Source, fetch
from rollscope.answers.stuck import stuck
from rollscope.exposing.columns import NOTHING, times
from rollscope.exposing.samples import Samples
from rollscope.exposing.sums import Sums
from rollscope.store.embedded import RunStore

__all__ = [
    "BOUND_GAUGE",
    "Flight",
    "Judged",
    "LastStep",
    "Member",
    "find_members",
    "lag_by_member",
    "last_bound",
    "targets_up",
    "tokens_per_s",
]

BOUND_GAUGE: Final = "rollscope.staleness_bound"
"""The gauge by which an executor tells how old sessions may be."""
_UP_GAUGE: Final = "rollscope.engine.up"
_SECOND: Final = 1_000_000_000
_MINUTE_NS: Final = 60 * _SECOND
_RECENT_NS: Final = 5 * _MINUTE_NS
_LEAST_PAUSE_S: Final = 5.0
_PAUSE: Final = 50
"""What takes long is done again after at least so many times as long as it took."""


class Member(msgspec.Struct, kw_only=True):
    """A process of the run."""

    process: int
    role: str
    rank: int | None
    status: str
    version: str
    last_seen_ns: int

    @property
    def rank_label(self) -> str:
        """The rank as text; empty if it has none."""
        return "" if self.rank is None else str(self.rank)


def find_members(source: Source) -> list[Member]:
    """Give the processes of a run."""
    sql = "SELECT process, role, rank, status, version, last_seen_ns FROM processes"
    return fetch(source, Member, sql)


class Flight(NamedTuple):
    """The open sessions, by the phase they are in."""

    phases: Counter[str]
    """How many there are."""
    queued: int
    oldest_ns: dict[str, int]
    """How long the oldest has been running."""
    stuck: Counter[str]


class Judged:
    """The open sessions, and which of them are stuck.

    To judge thousands takes longer than all the rest, so that is done anew only after a pause that
    is longer the longer it takes; a session that goes on meanwhile is no longer counted.
    """

    def __init__(self) -> None:
        self._alarms: frozenset[int] = frozenset()
        self._next_s = 0.0

    def look(self, source: Source, moment: Moment) -> Flight:
        """Look at the open sessions."""
        sessions = open_sessions(source, moves_of(source))
        if sessions and time.monotonic() >= self._next_s:
            self._judge(source)
        return Flight(
            phases=Counter(one.phase for one in sessions),
            queued=sum(role_of(one.phase) == "waiting" for one in sessions),
            oldest_ns=_oldest(sessions, moment.now_ns),
            stuck=Counter(one.phase for one in sessions if one.session_id in self._alarms),
        )

    def _judge(self, source: Source) -> None:
        began_s = time.monotonic()
        alarms = (one.session_id for one in stuck(source).rows if one.is_alarm)
        self._alarms = frozenset(one for one in alarms if one is not None)
        self._next_s = time.monotonic() + _PAUSE * (time.monotonic() - began_s)


def _oldest(sessions: Iterable[OpenSession], now_ns: int) -> dict[str, int]:
    oldest: dict[str, int] = {}
    for one in sessions:
        age_ns = max(now_ns - one.start_ns, 0)
        oldest[one.phase] = max(oldest.get(one.phase, 0), age_ns)
    return oldest


def tokens_per_s(store: RunStore, sums: Sums, moment: Moment) -> float | None:
    """Give the output tokens of the last minute by second; None if nobody ever told of any.

    Phases tell of theirs when they end; where none does, sessions do.
    """
    kinds = [kind for kind in ("phase", "session") if sums.spans.tokens[kind, "out"]]
    if not kinds:
        return None
    low_ns = moment.now_ns - _MINUTE_NS
    least_ns = moves_of(store).recorded(low_ns)
    rows = store.rows_since("spans", ("kind", "process", "end_ns", "tokens_out"), least_ns)
    sql = f"""
        SELECT process, end_ns, tokens_out FROM {rows} AS r
        WHERE kind = $kind AND tokens_out IS NOT NULL AND end_ns >= $since"""  # noqa: S608  (our own pieces)
    found = store.query(sql, kind=kinds[0], since=least_ns)
    ends = times(found, "end_ns", store.clocks.corrections)
    inside = (ends > low_ns) & (ends <= moment.now_ns)
    tokens = int(found["tokens_out"].to_numpy()[inside].sum())
    return tokens / min(60.0, max(moment.age_ns / _SECOND, 1.0))


def lag_by_member(
    source: Source, members: Iterable[Member], moment: Moment
) -> dict[tuple[str, str], int]:
    """Give the longest that event loops were blocked in the last minute, by role and rank."""
    lags = loop_lags(source, moment.now_ns - _MINUTE_NS, moment.now_ns)
    longest: dict[tuple[str, str], int] = {}
    for member in members:
        if member.process in lags:
            key = member.role, member.rank_label
            longest[key] = max(longest.get(key, 0), lags[member.process].longest_ns)
    return longest


def targets_up(samples: Samples, now_ns: int) -> dict[str, bool]:
    """Say which replicas answer, of those that were asked lately."""
    up: dict[str, bool] = {}
    for (_, series), reading in samples.gauges.items():
        if series.name == _UP_GAUGE and now_ns - reading.at_ns <= _RECENT_NS:
            replica = replica_of(engine_labels(series.labels)[0])
            up[replica] = up.get(replica, True) and bool(reading.value)
    return up


def last_bound(samples: Samples) -> float | None:
    """Give how many versions behind sessions may be, where an executor says so."""
    told = [one for (_, series), one in samples.gauges.items() if series.name == BOUND_GAUGE]
    return max(told).value if told else None


class LastStep:
    """The last step that ended: its tail, and what its sessions earned.

    Both take longer than all the rest, so they are worked out when the step changes, and anew now
    and then while more is heard of its sessions.
    """

    def __init__(self) -> None:
        self.tail: float | None = None
        self.rewards: dict[str, float] = {}
        """The mean by family."""
        self._state: tuple[int, ...] = ()
        self._step: int | None = None
        self._next_s = 0.0

    def look(self, source: Source, sums: Sums) -> None:
        """Bring it up to date."""
        steps = sums.spans.steps
        ended = [number for number, one in steps.items() if one.length_ns != NOTHING]
        if not ended:
            return
        step = max(ended)
        state = (sums.consumption.count, sums.verdicts.finished.total(), sums.spans.started.total())
        is_same = step == self._step
        if is_same and (state == self._state or time.monotonic() < self._next_s):
            return
        began_s = time.monotonic()
        gathered, _ = gather_steps(source, step, step, is_light=True)
        self.tail = tail_split(gathered[-1]).share if gathered else None
        self.rewards = _rewards(source, step)
        self._step, self._state = step, state
        took_s = time.monotonic() - began_s
        self._next_s = time.monotonic() + max(_LEAST_PAUSE_S, _PAUSE * took_s)


def _rewards(source: Source, step: int) -> dict[str, float]:
    rows = session_rows(
        source,
        "charged_step = $first AND reward IS NOT NULL",
        "session_id AS span_id, start_ns, family, reward",
        among=MAYBE_CHARGED,
        first=step,
        last=step,
    )
    by_family: dict[str, list[float]] = {}
    for row in rows:
        if row.reward is not None:
            by_family.setdefault(row.family or "", []).append(row.reward)
    return {family: sum(rewards) / len(rewards) for family, rewards in by_family.items()}
