"""How each host or replica is doing right now."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from rollscope.analysis.lags import merge_buckets, rank_ns
from rollscope.analysis.rows import ProcessRow
from rollscope.answers.capacity import declarations
from rollscope.answers.engines import Engines, read_engines
from rollscope.answers.loops import LoopLag, loop_lags
from rollscope.answers.moment import Moment, moment_of
from rollscope.answers.moves import Moves, moves_of
from rollscope.answers.rows import process_rows
from rollscope.answers.source import Source
from rollscope.model.serverroles import SERVER_ROLES

__all__ = [
    "OTHER",
    "HostGrouping",
    "HostLine",
    "Hosts",
    "OpenSession",
    "hosts",
    "open_sessions",
]

OTHER: Final = "other"
"""Stands for the time between phases."""
_LAG_NS: Final = 60 * 1_000_000_000
HostGrouping = Literal["host", "replica"]


class HostLine(msgspec.Struct, kw_only=True):
    """One host, or one replica."""

    name: str
    host: str
    """Where the replica is; the same as the name for a host."""
    processes: int
    alive: int
    in_flight: int
    phases: dict[str, int]
    """Sessions in flight by the phase they are in; `other` between phases."""
    capacity: int | None
    """Declared slots, where there are any."""
    loop_lag_p99_ns: int | None
    """How late event loops ran what was due, over the last minute; within 5 %."""
    heartbeat_age_ns: int | None
    """How long ago the latest of its processes was heard of."""
    kv_use: float | None
    """Share of the key-value cache in use, where the engine's metrics are recorded."""
    engine_running: float | None
    """Requests that the engine works on."""
    engine_waiting: float | None
    """Requests that wait in the engine."""
    preempted: float | None
    """Requests that the engine put off, in the last half minute."""
    prefix_hits: float | None
    """Share of prompt tokens that the engine had cached, of those it looked up in that time."""
    tokens_per_s: float | None
    """Tokens that it generated, over that time."""
    engines_down: int
    """Engines that are asked for their metrics, and do not answer."""


class Hosts(msgspec.Struct, kw_only=True):
    """All of them, by name."""

    now_ns: int
    grouped_by: str
    lines: list[HostLine]


def hosts(source: Source, by: HostGrouping = "host") -> Hosts:
    """Tell how each host or replica is doing.

    Args:
        source: The run.
        by: What a line is. A replica is what sessions are pinned to, else their process.
    """
    moment = moment_of(source)
    processes = process_rows(source)
    lines: dict[str, _Place] = {}
    by_id = {process.process: process for process in processes}
    for process in processes:
        if process.role in SERVER_ROLES:
            continue
        name = process.host if by == "host" else process.title
        lines.setdefault(name, _Place(process.host)).add(process)
    for session in open_sessions(source, moves_of(source)):
        runs_it = by_id.get(session.process, ProcessRow(process=session.process))
        name = runs_it.host if by == "host" else session.replica or runs_it.title
        place = lines.setdefault(name, _Place(runs_it.host))
        place.add(runs_it)
        place.phases[session.phase] += 1
    slots: Counter[str] = Counter()
    for one in declarations(source):
        tells = by_id.get(one.process, ProcessRow(process=one.process))
        name = tells.host if by == "host" else one.pool
        lines.setdefault(name, _Place(tells.host)).add(tells)
        slots[name] += one.slots
    lags = loop_lags(source, moment.now_ns - _LAG_NS, moment.now_ns)
    engines = read_engines(source, moment.now_ns)
    if by == "replica":
        for name, instance in engines.replicas().items():
            lines.setdefault(name, _Place(instance))
    return Hosts(
        now_ns=moment.now_ns,
        grouped_by=by,
        lines=[
            _line(name, place, moment, slots.get(name), lags, engines)
            for name, place in sorted(lines.items())
        ],
    )


class _Place:
    def __init__(self, host: str) -> None:
        self.host = host
        self.processes: dict[int, ProcessRow] = {}
        self.phases: Counter[str] = Counter()

    def add(self, process: ProcessRow) -> None:
        self.processes[process.process] = process


class OpenSession(msgspec.Struct):
    """A session in flight."""

    session_id: int
    process: int
    replica: str | None
    start_ns: int
    phase: str
    """That it entered last; `other` between phases."""


def open_sessions(source: Source, moves: Moves) -> list[OpenSession]:
    """Give the sessions in flight.

    Args:
        source: The run.
        moves: By how much the times of processes are moved.
    """
    columns = ("kind", "start_ns", "span_id", "session_id", "process", "name", "replica")
    sql = f"""
        SELECT {", ".join(columns)} FROM {source.dialect.open_spans}
        WHERE status = 'open' AND (kind = 'session' OR kind = 'phase')"""
    table = source.query(sql)
    rows = zip(*(table[name].to_pylist() for name in columns), strict=True)
    sessions, phases = [], []
    for kind, start_ns, span_id, session_id, process, name, replica in rows:
        start_ns += moves.of(process, start_ns)
        if kind == "session":
            sessions.append((span_id, process, replica, start_ns))
        else:
            phases.append((start_ns, span_id, session_id, name))
    phase_of = {session_id: name for _, _, session_id, name in sorted(phases)}
    return [
        OpenSession(span_id, process, replica, start_ns, phase_of.get(span_id, OTHER))
        for span_id, process, replica, start_ns in sessions
    ]


def _line(
    name: str,
    place: _Place,
    moment: Moment,
    slots: int | None,
    lags: Mapping[int, LoopLag],
    engines: Engines,
) -> HostLine:
    ids = list(place.processes)
    here = place.processes.values()
    late = merge_buckets(lags[one].buckets for one in ids if one in lags)
    seen_ns = max((process.last_seen_ns for process in here), default=None)
    return HostLine(
        name=name,
        host=place.host,
        processes=len(ids),
        alive=sum(process.status == "alive" for process in here),
        in_flight=place.phases.total(),
        phases=dict(place.phases.most_common()),
        capacity=slots,
        loop_lag_p99_ns=rank_ns(late, 99),
        heartbeat_age_ns=None if seen_ns is None else max(moment.now_ns - seen_ns, 0),
        kv_use=engines.mean("kv_use", name, ids),
        engine_running=engines.total("running", name, ids),
        engine_waiting=engines.total("waiting", name, ids),
        preempted=engines.preempted(name, ids),
        prefix_hits=engines.hit_rate(name, ids),
        tokens_per_s=engines.tokens_per_s(name, ids),
        engines_down=engines.down(name, ids),
    )
