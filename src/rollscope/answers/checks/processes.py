"""Checks of those who record: whether they live, and whether all they wrote arrived."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

import msgspec

from rollscope._version import __version__
from rollscope.analysis.wording import say_count, say_names, say_ns
from rollscope.answers.checks.diagnosis import Finding, Severity, name_some
from rollscope.answers.restarts import repeated_steps
from rollscope.answers.source import fetch
from rollscope.store.embedded import RunStore
from rollscope.store.hostclocks import BY_ROUND_TRIPS

__all__ = [
    "Drop",
    "Process",
    "find_clocks",
    "find_dead",
    "find_drops",
    "find_lost_ends",
    "find_missing_frames",
    "find_none",
    "find_ranks",
    "find_restarts",
    "find_silent",
    "find_versions",
    "read_processes",
]

_CLOCK_OFF_NS: Final = 50_000_000
_DRIFT_PPM: Final = 0.5
"""From where on a drift is worth telling."""
_FINEST_NS: Final = 100_000
"""Nobody should rely on clocks of two hosts to agree better."""
_SILENT_BEATS: Final = 3
_LEAST_SILENT_NS: Final = 15_000_000_000
_USUAL_DROP_ADVICE: Final = (
    "Record fewer or shorter spans there, raise ROLLSCOPE_BUFFER_MB, or write the run to a faster "
    "disk."
)
_OWN_FAULT: Final = "A fault of Rollscope's own: please report what the program's log says of it."
_DROP_ADVICE: Final = {
    "amount": "Count by finite amounts, 0 or more, and observe finite values; the program's log "
    "names the metric.",
    "fault": _OWN_FAULT,
    "labels": "Give a metric 16 labels at most; the program's log names it.",
    "name": "Give metrics names of 1 to 200 characters; the program's log shows the first.",
    "no_memory": "Give the program more memory, or let it use less: there was none left to record "
    "with.",
    "no_number": "Give metrics plain numbers, of a tensor its item(); the program's log names the "
    "metric.",
    "not_encodable": _OWN_FAULT,
    "redact": "See in the program's log how the redact function fails, or that it hangs, and try "
    "it on such a payload.",
    "series": "Put ids on spans instead of labels, or raise ROLLSCOPE_METRIC_SERIES; the program's "
    "log names the metric.",
    "too_large": "Give shorter values there, or lower ROLLSCOPE_ATTR_MAX_BYTES and "
    "ROLLSCOPE_PAYLOAD_MAX_BYTES.",
}
"""What to do, by the reason; for all others it is too much that was recorded."""


class Process(msgspec.Struct):
    """A row of `processes`."""

    process: int
    host: str
    pid: int
    role: str
    rank: int | None
    title: str
    status: str
    last_seen_ns: int
    heartbeat_ns: int
    offset_ns: int
    offset_error_ns: int | None
    offset_source: str
    drift_ppm: float
    clock_readings: int
    spans: int
    open_spans: int
    lost_ends: int
    dropped: int
    missing_frames: int
    silent_ns: int
    python: str
    version: str


class Drop(msgspec.Struct):
    """A row of `drops`."""

    process: int
    what: str
    count: int


def read_processes(store: RunStore) -> list[Process]:
    """Give who records, or has, in order of their start."""
    return fetch(store, Process, "SELECT * FROM processes ORDER BY started_ns, process")


def find_none(processes: list[Process]) -> Iterator[Finding]:
    """Find a run that nobody has recorded into."""
    if not processes:
        yield Finding(
            Severity.WARNING,
            "processes",
            "No process has recorded anything yet.",
            "See that the program calls rollscope.init and that ROLLSCOPE is not off.",
        )


def find_drops(drops: list[Drop], processes: list[Process]) -> Iterator[Finding]:
    """Find what was dropped by whom."""
    titles = {process.process: process.title for process in processes}
    by_what: dict[str, Counter[str]] = defaultdict(Counter)
    for drop in drops:
        by_what[drop.what][titles.get(drop.process, f"{drop.process:016x}")] += drop.count
    for what, counts in sorted(by_what.items()):
        places = name_some(f"{title} ({count:,})" for title, count in counts.most_common())
        yield Finding(
            Severity.PROBLEM,
            "drops",
            f"{counts.total():,} dropped as `{what}`, by {places}.",
            _DROP_ADVICE.get(what.rpartition(".")[2], _USUAL_DROP_ADVICE),
        )


def find_missing_frames(processes: list[Process]) -> Iterator[Finding]:
    """Find frames that never arrived."""
    missing = {p.title: p.missing_frames for p in processes if p.missing_frames}
    if missing:
        yield Finding(
            Severity.PROBLEM,
            "frames",
            f"{say_count(sum(missing.values()), 'frame')} of {name_some(missing)} never arrived.",
            "If logs were copied, copy them again, whole. Otherwise the disk was full or the sink "
            "was down: see the drops.",
        )


def find_dead(processes: list[Process]) -> Iterator[Finding]:
    """Find processes that died."""
    dead = [process for process in processes if process.status == "dead"]
    if not dead:
        return
    lost = sum(process.open_spans for process in dead)
    took = f" and took {say_count(lost, 'open span')} with " if lost else ""
    them = ("it" if len(dead) == 1 else "them") if lost else ""
    yield Finding(
        Severity.WARNING,
        "processes",
        f"{name_some(f'{p.title} (pid {p.pid} on {p.host})' for p in dead)} died without closing "
        f"{'its log' if len(dead) == 1 else 'their logs'}{took}{them}.",
        "Look for the OOM killer (dmesg), the scheduler's time limit, or a crash in the job's own "
        "log.",
    )


def find_silent(processes: list[Process], now_ns: int) -> Iterator[Finding]:
    """Find processes that write nothing, or did not for a while."""
    silent = [
        process
        for process in processes
        if process.status == "alive"
        and now_ns - process.last_seen_ns
        > max(_SILENT_BEATS * process.heartbeat_ns, _LEAST_SILENT_NS)
    ]
    if silent:
        longest = max(now_ns - process.last_seen_ns for process in silent)
        yield Finding(
            Severity.WARNING,
            "processes",
            f"{name_some(process.title for process in silent)} should live but has written "
            f"nothing for {say_ns(longest)}.",
            "See whether it is stopped, swaps, or waits for the file system (py-spy dump --pid).",
        )
    paused = [p for p in processes if p.silent_ns and p not in silent]
    if paused:
        worst = max(paused, key=lambda process: process.silent_ns)
        yield Finding(
            Severity.NOTE,
            "processes",
            f"{say_count(len(paused), 'process')} fell silent for a while, {worst.title} longest: "
            f"{say_ns(worst.silent_ns)} in all.",
            "Look for long garbage collections, a held GIL, swapping or a slow file system then.",
        )


def find_ranks(processes: list[Process]) -> Iterator[Finding]:
    """Find ranks that recorded nothing."""
    by_role: dict[str, set[int]] = defaultdict(set)
    for process in processes:
        if process.rank is not None:
            by_role[process.role].add(process.rank)
    everyone = set().union(*by_role.values())
    for role, ranks in sorted(by_role.items()):
        # Where all roles share one numbering, what is below the first rank belongs to others.
        gaps = [
            rank
            for rank in range(max(ranks))
            if rank not in ranks and (rank > min(ranks) or rank not in everyone)
        ]
        if gaps:
            yield Finding(
                Severity.WARNING,
                "ranks",
                f"{role} has ranks up to {max(ranks)}, but {say_names(map(str, gaps), 8)} "
                "recorded nothing.",
                "Import their files too, if there are any."
                if all(process.status == "imported" for process in processes)
                else "See whether they call rollscope.init, with the same run and a directory that "
                "is the same for all hosts.",
            )


def find_restarts(store: RunStore) -> Iterator[Finding]:
    """Find steps that were recorded by two starts of a program."""
    repeated = repeated_steps(store)
    if repeated is not None:
        several = repeated.first < repeated.last
        which = (
            f"Steps {repeated.first} to {repeated.last}" if several else f"Step {repeated.first}"
        )
        times = "twice" if repeated.starts == 2 else f"{repeated.starts} times"
        yield Finding(
            Severity.WARNING,
            "restarts",
            f"{which} {'were' if several else 'was'} recorded {times}: the program was started "
            "again with the same run name, and its sessions are counted together.",
            "Give each start a name of its own, or none; a job that resumes should go on with the "
            "step after the last.",
        )


def find_lost_ends(processes: list[Process]) -> Iterator[Finding]:
    """Find spans that never ended."""
    lost = {p.title: p.lost_ends for p in processes if p.lost_ends}
    if lost:
        yield Finding(
            Severity.WARNING,
            "ends",
            f"{say_count(sum(lost.values()), 'span')} of {name_some(lost)} began and never ended, "
            "though the process went on.",
            "Drops explain some. Otherwise spans were entered and never left: use `with`, and "
            "close generators.",
        )


def find_clocks(processes: list[Process]) -> Iterator[Finding]:
    """Find hosts whose clocks are wrong."""
    hosts = {p.host: p for p in processes if abs(p.offset_ns) > _CLOCK_OFF_NS}
    for host, process in sorted(hosts.items()):
        yield Finding(
            Severity.WARNING,
            "clocks",
            f"The clock of {host} is {_say_clock(process)}",
            "Let the hosts keep time by NTP or chrony.",
        )


def _say_clock(process: Process) -> str:
    side = "ahead" if process.offset_ns < 0 else "behind"
    off_by = f"{say_ns(abs(process.offset_ns))} {side}"
    if process.offset_source != BY_ROUND_TRIPS or process.offset_error_ns is None:
        return f"{off_by}; its times were moved."
    drift = abs(process.drift_ppm)
    drifts = f" and drifts {drift:.0f} ppm" if drift >= _DRIFT_PPM else ""
    within_ns = max(process.offset_error_ns, _FINEST_NS)
    return f"{off_by}{drifts}; its times were moved, right within {say_ns(within_ns)}."


def find_versions(processes: list[Process]) -> Iterator[Finding]:
    """Find processes that differ in what they run on."""
    versions = sorted({process.version for process in processes if process.version})
    pythons = sorted({process.python for process in processes if process.python})
    if len(versions) > 1:
        yield Finding(
            Severity.WARNING,
            "versions",
            f"Processes recorded with different versions of Rollscope: {', '.join(versions)}.",
            f"Install one version everywhere; you read with {__version__}.",
        )
    if len(pythons) > 1:
        yield Finding(
            Severity.NOTE,
            "versions",
            f"Processes ran on different versions of Python: {', '.join(pythons)}.",
            "Nothing, if that is meant.",
        )
