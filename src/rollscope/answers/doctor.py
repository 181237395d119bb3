"""What is wrong with a run, and what to do about it."""

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from rollscope._version import __version__
from rollscope.analysis.wording import say_count, say_names, say_ns
from rollscope.answers.restarts import repeated_steps
from rollscope.answers.source import fetch
from rollscope.store.embedded import RunStore
from rollscope.store.hostclocks import BY_ROUND_TRIPS
from rollscope.store.run import read_run_file
from rollscope.store.schema import SEGMENT_SCHEMA
from rollscope.store.sealer import SEGMENT_DIR, Progress
from rollscope.store.segments import Segment, is_sound

__all__ = ["Checkup", "Finding", "Severity", "examine"]

_CLOCK_OFF_NS: Final = 50_000_000
_DRIFT_PPM: Final = 0.5
"""From where on a drift is worth telling."""
_FINEST_NS: Final = 100_000
"""Nobody should rely on clocks of two hosts to agree better."""
_MANY_MS_NS: Final = 10_000_000
"""Below this, tenths of a millisecond are told."""
_LEAST_FREE_BYTES: Final = 5_000_000_000
_LEAST_FREE_SHARE: Final = 0.02
_SILENT_BEATS: Final = 3
_LEAST_SILENT_NS: Final = 15_000_000_000
_MANY_SPANS: Final = 200_000
_join: Final = partial(say_names, at_most=4)
"""Names processes or files; as many as a sentence bears."""


class Severity(StrEnum):
    """How bad a finding is."""

    PROBLEM = "problem"
    """Something was lost or will be."""
    WARNING = "warning"
    """Answers may be off, or something needs a look."""
    NOTE = "note"
    """Good to know."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that is not as it should be."""

    severity: Severity
    check: str
    """Which check found it."""
    sentence: str
    advice: str


class Checkup(msgspec.Struct, kw_only=True):
    """The state of a run."""

    run: str
    processes: int
    alive: int
    imported: int = 0
    """How many of the processes files of another tool tell of."""
    spans: int
    sealed_spans: int
    segments: int
    checked_bytes: int
    """Bytes of segments that were read whole."""
    free_bytes: int
    findings: list[Finding] = []

    @property
    def is_fine(self) -> bool:
        """Whether there is nothing but notes."""
        return all(finding.severity is Severity.NOTE for finding in self.findings)


class _Process(msgspec.Struct):
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
    spans: int
    open_spans: int
    lost_ends: int
    missing_frames: int
    silent_ns: int
    python: str
    version: str


class _Drop(msgspec.Struct):
    process: int
    what: str
    count: int


def examine(store: RunStore, *, deep: bool = True, progress: Progress | None = None) -> Checkup:
    """Look at everything that can be wrong with a run.

    Args:
        store: The run.
        deep: Read every segment whole, instead of looking at its size and end only.
        progress: Told how many bytes of the segments have been read.
    """
    processes = fetch(store, _Process, "SELECT * FROM processes ORDER BY started_ns, process")
    drops = fetch(store, _Drop, "SELECT * FROM drops ORDER BY process, what")
    segments = store.sealer.manifest.segments
    damaged = _damaged_segments(store, deep=deep, progress=progress)
    findings = [
        *_find_segments(store, damaged),
        *_find_damage(store),
        *_find_drops(drops, processes),
        *_find_missing_frames(processes),
        *_find_dead(processes),
        *_find_silent(processes, store.now_ns),
        *_find_ranks(processes),
        *_find_restarts(store),
        *_find_lost_ends(processes),
        *_find_clocks(processes),
        *_find_disk(store.path),
        *_find_versions(processes),
        *_find_upkeep(store),
        *_find_empty(store.path, processes),
    ]
    order = list(Severity)
    return Checkup(
        run=str(store.path),
        processes=len(processes),
        alive=sum(process.status == "alive" for process in processes),
        imported=sum(process.status == "imported" for process in processes),
        spans=sum(process.spans for process in processes),
        sealed_spans=sum(segment.rows for segment in segments if segment.table == "spans"),
        segments=len(segments),
        checked_bytes=sum(segment.size for segment in segments) if deep else 0,
        free_bytes=shutil.disk_usage(store.path).free,
        findings=sorted(findings, key=lambda finding: order.index(finding.severity)),
    )


def _damaged_segments(store: RunStore, *, deep: bool, progress: Progress | None) -> list[Segment]:
    shelf, segments = store.sealer.shelf, store.sealer.manifest.segments
    if shelf is None:
        return []
    total, done = sum(segment.size for segment in segments), 0
    damaged = []
    for segment in segments:
        if not is_sound(shelf.folder, segment, deep=deep):
            damaged.append(segment)
        done += segment.size
        if progress is not None:
            progress(done, total)
    return damaged


def _find_segments(store: RunStore, damaged: list[Segment]) -> Iterator[Finding]:
    sealer = store.sealer
    if damaged:
        rows = sum(segment.rows for segment in damaged if segment.table == "spans")
        is_whole = sealer.intake.covers(sealer.intake.to_state())
        yield Finding(
            Severity.PROBLEM,
            "segments",
            f"{say_count(len(damaged), 'segment')} with {say_count(rows, 'span')} cannot be read: "
            f"{_join(segment.file for segment in damaged)}.",
            "Run `rollscope compact` on it: the logs are all there and are read again."
            if is_whole
            else "The logs that they came from were removed. Restore the files from a backup; "
            "`rollscope compact` sets them aside so that the rest can be read.",
        )
    aside = [] if sealer.shelf is None else sorted(sealer.shelf.folder.glob("*.damaged"))
    if aside:
        yield Finding(
            Severity.WARNING,
            "segments",
            f"{say_count(len(aside), 'damaged segment')} was set aside earlier: "
            f"{_join(path.name for path in aside)}.",
            "Check the disk and its cables or quota, then delete the files.",
        )


def _find_damage(store: RunStore) -> Iterator[Finding]:
    intake = store.sealer.intake
    damage = intake.damage()
    bad = {name: count for name, (count, _) in damage.items() if count}
    if bad:
        yield Finding(
            Severity.PROBLEM,
            "logs",
            f"{say_count(sum(bad.values()), 'byte')} of {_join(bad)} cannot be read; the frames "
            "around them were.",
            "Check the disk, and that nothing but Rollscope writes into the run directory.",
        )
    known = tuple(f"{name} is damaged; whole frames" for name in bad)
    for problem in store.problems:
        if not any(part in problem for part in known):
            yield Finding(
                Severity.PROBLEM, "files", _sentence(problem), "See that the file can be read."
            )
    torn = {name: count for name, (_, count) in damage.items() if count}
    gone = [name for name in torn if not _may_go_on(store, name)]
    if gone:
        yield Finding(
            Severity.NOTE,
            "logs",
            f"{say_count(sum(torn[name] for name in gone), 'byte')} at the end of {_join(gone)} "
            "are a frame that its process did not live to finish.",
            "Nothing: what was recorded in its last moments, up to 200 ms, is lost.",
        )


def _may_go_on(store: RunStore, log: str) -> bool:
    intake = store.sealer.intake
    state = intake.to_state().logs.get(log)
    ledger = intake.ledgers.get((state.process if state else None) or b"")
    return ledger is None or intake.is_alive(ledger, store.now_ns)


def _find_drops(drops: list[_Drop], processes: list[_Process]) -> Iterator[Finding]:
    titles = {process.process: process.title for process in processes}
    by_what: dict[str, Counter[str]] = defaultdict(Counter)
    for drop in drops:
        by_what[drop.what][titles.get(drop.process, f"{drop.process:016x}")] += drop.count
    for what, counts in sorted(by_what.items()):
        places = _join(f"{title} ({count:,})" for title, count in counts.most_common())
        yield Finding(
            Severity.PROBLEM,
            "drops",
            f"{counts.total():,} dropped as `{what}`, by {places}.",
            "Record fewer or shorter spans there, raise ROLLSCOPE_BUFFER_MB, or write the run to a "
            "faster disk.",
        )


def _find_missing_frames(processes: list[_Process]) -> Iterator[Finding]:
    missing = {p.title: p.missing_frames for p in processes if p.missing_frames}
    if missing:
        yield Finding(
            Severity.PROBLEM,
            "frames",
            f"{say_count(sum(missing.values()), 'frame')} of {_join(missing)} never arrived.",
            "If logs were copied, copy them again, whole. Otherwise the disk was full or the sink "
            "was down: see the drops.",
        )


def _find_dead(processes: list[_Process]) -> Iterator[Finding]:
    dead = [process for process in processes if process.status == "dead"]
    if not dead:
        return
    lost = sum(process.open_spans for process in dead)
    took = f" and took {say_count(lost, 'open span')} with " if lost else ""
    them = ("it" if len(dead) == 1 else "them") if lost else ""
    yield Finding(
        Severity.WARNING,
        "processes",
        f"{_join(f'{p.title} (pid {p.pid} on {p.host})' for p in dead)} died without closing "
        f"{'its log' if len(dead) == 1 else 'their logs'}{took}{them}.",
        "Look for the OOM killer (dmesg), the scheduler's time limit, or a crash in the job's own "
        "log.",
    )


def _find_silent(processes: list[_Process], now_ns: int) -> Iterator[Finding]:
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
            f"{_join(process.title for process in silent)} should live but has written nothing for "
            f"{say_ns(longest)}.",
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


def _find_ranks(processes: list[_Process]) -> Iterator[Finding]:
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


def _find_restarts(store: RunStore) -> Iterator[Finding]:
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


def _find_lost_ends(processes: list[_Process]) -> Iterator[Finding]:
    lost = {p.title: p.lost_ends for p in processes if p.lost_ends}
    if lost:
        yield Finding(
            Severity.WARNING,
            "ends",
            f"{say_count(sum(lost.values()), 'span')} of {_join(lost)} began and never ended, "
            "though the process went on.",
            "Drops explain some. Otherwise spans were entered and never left: use `with`, and "
            "close generators.",
        )


def _find_clocks(processes: list[_Process]) -> Iterator[Finding]:
    hosts = {p.host: p for p in processes if abs(p.offset_ns) > _CLOCK_OFF_NS}
    for host, process in sorted(hosts.items()):
        yield Finding(
            Severity.WARNING,
            "clocks",
            f"The clock of {host} is {_say_clock(process)}",
            "Let the hosts keep time by NTP or chrony.",
        )


def _say_clock(process: _Process) -> str:
    side = "ahead" if process.offset_ns < 0 else "behind"
    off_by = f"{say_ns(abs(process.offset_ns))} {side}"
    if process.offset_source != BY_ROUND_TRIPS or process.offset_error_ns is None:
        return f"{off_by}; its times were moved."
    drift = abs(process.drift_ppm)
    drifts = f" and drifts {drift:.0f} ppm" if drift >= _DRIFT_PPM else ""
    within_ns = max(process.offset_error_ns, _FINEST_NS)
    within = say_ns(within_ns) if within_ns >= _MANY_MS_NS else f"{within_ns / 1e6:.1f} ms"
    return f"{off_by}{drifts}; its times were moved, right within {within}."


def _find_disk(run: Path) -> Iterator[Finding]:
    usage = shutil.disk_usage(run)
    if usage.free < min(_LEAST_FREE_BYTES, usage.total // 10) or (
        usage.free < _LEAST_FREE_SHARE * usage.total
    ):
        yield Finding(
            Severity.WARNING,
            "disk",
            f"{usage.free / 1e9:.1f} GB of {usage.total / 1e9:,.0f} GB are left where the run is.",
            "Make room: `rollscope compact --drop-logs`, or --max-gb for old runs. A full disk "
            "makes processes drop records.",
        )


def _find_versions(processes: list[_Process]) -> Iterator[Finding]:
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


def _find_upkeep(store: RunStore) -> Iterator[Finding]:
    sealer = store.sealer
    unsealed = sealer.unsealed_rows
    if unsealed >= _MANY_SPANS:
        yield Finding(
            Severity.NOTE,
            "sealing",
            f"{say_count(unsealed, 'span')} are not sealed, so each reader reads their logs anew.",
            "Run `rollscope compact` on it.",
        )
    if sealer.shelf is None or sealer.shelf.folder.name != SEGMENT_DIR:
        where = "nowhere" if sealer.shelf is None else str(sealer.shelf.folder)
        yield Finding(
            Severity.NOTE,
            "sealing",
            f"You may not write into the run, so its segments are kept in {where}.",
            "Nothing; or ask its owner to run `rollscope compact`, which all readers profit from.",
        )
    older = [s for s in sealer.manifest.segments if s.schema < SEGMENT_SCHEMA]
    if older:
        yield Finding(
            Severity.NOTE,
            "schema",
            f"{say_count(len(older), 'segment')} were written by an older version.",
            "Run `rollscope compact` on it, which rewrites them.",
        )
    if sealer.manifest.removed_rows:
        yield Finding(
            Severity.NOTE,
            "retention",
            f"{say_count(sealer.manifest.removed_rows, 'span')} were removed on request.",
            "Nothing; what is said of the time before is incomplete.",
        )


def _find_empty(run: Path, processes: list[_Process]) -> Iterator[Finding]:
    if not processes:
        yield Finding(
            Severity.WARNING,
            "processes",
            "No process has recorded anything yet.",
            "See that the program calls rollscope.init and that ROLLSCOPE is not off.",
        )
    if run.is_dir() and read_run_file(run) is None:
        yield Finding(
            Severity.NOTE,
            "files",
            "run.json is missing or cannot be read, so when the run began is guessed.",
            "Nothing; no reader depends on it.",
        )


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
