"""Can I trust this: what was dropped, whose clock is off, who is silent, how much room is left."""

import shutil
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from rollscope._version import __version__
from rollscope.answers.checks.processes import Process, read_processes
from rollscope.answers.doctor import Finding, examine
from rollscope.answers.loops import LoopLine, judge_loops
from rollscope.answers.moment import Moment, moment_of
from rollscope.store.embedded import RunStore
from rollscope.store.schema import SEGMENT_SCHEMA
from rollscope.store.upkeep.sizes import sizes_of

__all__ = [
    "BUFFER_GAUGE",
    "ClockLine",
    "DiskUse",
    "DropLine",
    "Health",
    "IngestLine",
    "IngestTotal",
    "health",
]

BUFFER_GAUGE: Final = "rollscope.buffer_fill"
"""The gauge by which a process tells how full its buffer is, from 0 to 1."""
_MINUTE_NS: Final = 60 * 1_000_000_000


class IngestTotal(msgspec.Struct, kw_only=True):
    """How fast records come in, and how late."""

    spans_per_s: float
    """Spans that ended in the last minute, by second."""
    lag_ns: int | None
    """How long ago the latest record that was read was written; None if nobody writes."""
    unread_bytes: int
    """What has been written to the logs and not been taken in."""
    unsealed_spans: int
    """Spans that are not sealed yet."""


class IngestLine(msgspec.Struct, kw_only=True):
    """What one process recorded, and whether all of it arrived."""

    process: int
    title: str
    host: str
    status: str
    spans: int
    open_spans: int
    unmatched_starts: int
    """Spans that began and never ended, though the process went on."""
    dropped: int
    missing_frames: int
    heartbeat_age_ns: int
    heartbeat_ns: int
    """How often it beats."""
    silent_ns: int
    """How long it was silent in all, though it lived."""


class DropLine(msgspec.Struct, kw_only=True):
    """What one process had to drop for one reason."""

    process: int
    title: str
    kind: str
    """Which records, such as `span` or `payload`."""
    reason: str
    """Why, such as `overload`."""
    count: int


class ClockLine(msgspec.Struct, kw_only=True):
    """The clock of one host, as compared with the receiver's or else with the first one."""

    host: str
    offset_ns: int
    """How far its times are moved now."""
    error_ns: int | None
    """Half the width of the range that the correction may lie in; None if only one end is
    known."""
    drift_ppm: float
    """How fast it falls behind, in millionths; less than 0 if it runs ahead."""
    readings: int
    """How often the clocks of its processes were read against the receiver's."""
    source: str
    """How the correction was found: by `round trips`, by the `order of records`, or not at all."""


class DiskUse(msgspec.Struct, kw_only=True):
    """What the run takes, and what is left."""

    run_bytes: int
    log_bytes: int
    segment_bytes: int
    payload_bytes: int
    free_bytes: int
    total_bytes: int
    segments: int
    oldest_ns: int | None
    """Since when spans are kept; older ones were retired."""


class Health(msgspec.Struct, kw_only=True):
    """Whether the run can be trusted."""

    now_ns: int
    is_alive: bool
    ingest: IngestTotal
    processes: list[IngestLine]
    drops: list[DropLine]
    buffer_fill: dict[str, float]
    """How full each process's buffer was when it last said so, by title."""
    clocks: list[ClockLine]
    clock_spread_ns: int
    torn_logs: dict[str, int]
    """Bytes at the end of logs that are no whole frame."""
    damaged_logs: dict[str, int]
    """Bytes of logs that cannot be read."""
    loops: list[LoopLine]
    disk: DiskUse
    findings: list[Finding]
    """What a check-up finds, the worst first."""
    schema: int
    """Of the segments that this Rollscope writes."""
    version: str
    """Of the Rollscope that reads."""
    recorded_with: list[str]
    pythons: list[str]


def health(source: RunStore) -> Health:
    """Tell whether a run can be trusted."""
    moment = moment_of(source)
    processes = read_processes(source)
    titles = {one.process: one.title for one in processes}
    damage = source.sealer.intake.damage()
    clocks = _clocks(processes)
    offsets = [clock.offset_ns for clock in clocks] or [0]
    return Health(
        now_ns=moment.now_ns,
        is_alive=moment.is_alive,
        ingest=_ingest(source, moment),
        processes=[_line(one, moment) for one in processes],
        drops=_drops(source, titles),
        buffer_fill=_buffer_fill(source, titles),
        clocks=clocks,
        clock_spread_ns=max(offsets) - min(offsets),
        torn_logs={name: torn for name, (_, torn) in sorted(damage.items()) if torn},
        damaged_logs={name: bad for name, (bad, _) in sorted(damage.items()) if bad},
        loops=judge_loops(source, moment),
        disk=_disk(source),
        findings=examine(source, deep=False).findings,
        schema=SEGMENT_SCHEMA,
        version=__version__,
        recorded_with=sorted({one.version for one in processes if one.version}),
        pythons=sorted({one.python for one in processes if one.python}),
    )


def _ingest(source: RunStore, moment: Moment) -> IngestTotal:
    since_ns = moment.now_ns - _MINUTE_NS
    sql = """
        SELECT count(*) AS n FROM spans
        WHERE end_ns >= $since AND end_ns <= $now AND recorded_end_ns >= $files_since"""
    values = {"since": since_ns, "now": moment.now_ns, "files_since": since_ns - moment.moved_ns}
    ended = source.query(sql, **values)["n"][0].as_py()
    done, total = source.sealer.intake.total_bytes()
    return IngestTotal(
        spans_per_s=ended / 60,
        lag_ns=max(source.now_ns - moment.last_ns, 0) if moment.is_alive else None,
        unread_bytes=max(total - done, 0),
        unsealed_spans=source.sealer.unsealed_rows,
    )


def _line(process: Process, moment: Moment) -> IngestLine:
    return IngestLine(
        process=process.process,
        title=process.title,
        host=process.host,
        status=process.status,
        spans=process.spans,
        open_spans=process.open_spans,
        unmatched_starts=process.lost_ends,
        dropped=process.dropped,
        missing_frames=process.missing_frames,
        heartbeat_age_ns=max(moment.now_ns - process.last_seen_ns, 0),
        heartbeat_ns=process.heartbeat_ns,
        silent_ns=process.silent_ns,
    )


def _drops(source: RunStore, titles: Mapping[int, str]) -> list[DropLine]:
    rows = source.query("SELECT * FROM drops ORDER BY count DESC, process, what").to_pylist()
    lines = []
    for row in rows:
        kind, _, reason = row["what"].partition(".")
        title = titles.get(row["process"], "")
        line = DropLine(
            process=row["process"], title=title, kind=kind, reason=reason, count=row["count"]
        )
        lines.append(line)
    return lines


def _buffer_fill(source: RunStore, titles: Mapping[int, str]) -> dict[str, float]:
    latest = source.dialect.arg_max("value", "time_ns")
    sql = f"SELECT process, {latest} AS fill FROM metrics WHERE name = $name GROUP BY process"
    rows = source.query(sql, name=BUFFER_GAUGE).to_pylist()
    return {titles.get(row["process"], ""): row["fill"] for row in rows if row["fill"] is not None}


def _clocks(processes: Sequence[Process]) -> list[ClockLine]:
    hosts: dict[str, list[Process]] = {}
    for one in processes:
        if one.host:
            hosts.setdefault(one.host, []).append(one)
    return [_clock(host, members) for host, members in sorted(hosts.items())]


def _clock(host: str, processes: Sequence[Process]) -> ClockLine:
    """Tell of a host what is known of the process that was heard of last."""
    latest = max(processes, key=lambda one: (one.offset_source != "", one.last_seen_ns))
    return ClockLine(
        host=host,
        offset_ns=latest.offset_ns,
        error_ns=latest.offset_error_ns,
        drift_ppm=latest.drift_ppm,
        readings=sum(one.clock_readings for one in processes),
        source=latest.offset_source,
    )


def _disk(source: RunStore) -> DiskUse:
    sizes = sizes_of(source.sealer)
    usage = shutil.disk_usage(source.path)
    oldest = source.query("SELECT min(start_ns) AS oldest FROM spans")["oldest"][0].as_py()
    return DiskUse(
        run_bytes=sizes.total_bytes,
        log_bytes=sizes.log_bytes,
        segment_bytes=sizes.segment_bytes,
        payload_bytes=sizes.payload_bytes,
        free_bytes=usage.free,
        total_bytes=usage.total,
        segments=sizes.segments,
        oldest_ns=oldest,
    )
