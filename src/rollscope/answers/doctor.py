"""What is wrong with a run, and what to do about it."""

import shutil

import msgspec

from rollscope.answers.checks import files, processes
from rollscope.answers.checks.diagnosis import Finding, Severity
from rollscope.answers.source import fetch
from rollscope.store.embedded import RunStore
from rollscope.store.sealer import Progress
from rollscope.store.segments import Segment, is_sound

__all__ = ["Checkup", "Finding", "Severity", "examine"]


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


def examine(store: RunStore, *, deep: bool = True, progress: Progress | None = None) -> Checkup:
    """Look at everything that can be wrong with a run.

    Args:
        store: The run.
        deep: Read every segment whole, instead of looking at its size and end only.
        progress: Told how many bytes of the segments have been read.
    """
    recording = processes.read_processes(store)
    dropped = fetch(store, processes.Drop, "SELECT * FROM drops ORDER BY process, what")
    segments = store.sealer.manifest.segments
    damaged = _damaged_segments(store, deep=deep, progress=progress)
    findings = [
        *files.find_segments(store, damaged),
        *files.find_damage(store),
        *processes.find_drops(dropped, recording),
        *processes.find_missing_frames(recording),
        *processes.find_dead(recording),
        *processes.find_silent(recording, store.now_ns),
        *processes.find_ranks(recording),
        *processes.find_restarts(store),
        *processes.find_lost_ends(recording),
        *processes.find_clocks(recording),
        *files.find_disk(store.path),
        *processes.find_versions(recording),
        *files.find_upkeep(store),
        *processes.find_none(recording),
        *files.find_run_file(store.path),
    ]
    order = list(Severity)
    return Checkup(
        run=str(store.path),
        processes=len(recording),
        alive=sum(process.status == "alive" for process in recording),
        imported=sum(process.status == "imported" for process in recording),
        spans=sum(process.spans for process in recording),
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
