"""Checks of what a run is made of: logs, segments, and the disk that they are on."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rollscope.analysis.wording import say_count
from rollscope.answers.checks.diagnosis import Finding, Severity, name_some
from rollscope.store.embedded import RunStore
from rollscope.store.run import read_run_file
from rollscope.store.schema import SEGMENT_SCHEMA
from rollscope.store.sealer import SEGMENT_DIR
from rollscope.store.segments import Segment

__all__ = ["find_damage", "find_disk", "find_run_file", "find_segments", "find_upkeep"]

_LEAST_FREE_BYTES: Final = 5_000_000_000
_LEAST_FREE_SHARE: Final = 0.02
_MANY_SPANS: Final = 200_000


def find_segments(store: RunStore, damaged: list[Segment]) -> Iterator[Finding]:
    """Find segments that cannot be read."""
    sealer = store.sealer
    if damaged:
        rows = sum(segment.rows for segment in damaged if segment.table == "spans")
        is_whole = sealer.intake.covers(sealer.intake.to_state())
        yield Finding(
            Severity.PROBLEM,
            "segments",
            f"{say_count(len(damaged), 'segment')} with {say_count(rows, 'span')} cannot be read: "
            f"{name_some(segment.file for segment in damaged)}.",
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
            f"{name_some(path.name for path in aside)}.",
            "Check the disk and its cables or quota, then delete the files.",
        )


def find_damage(store: RunStore) -> Iterator[Finding]:
    """Find bytes of logs that cannot be read."""
    intake = store.sealer.intake
    damage = intake.damage()
    bad = {name: count for name, (count, _) in damage.items() if count}
    if bad:
        yield Finding(
            Severity.PROBLEM,
            "logs",
            f"{say_count(sum(bad.values()), 'byte')} of {name_some(bad)} cannot be read; the "
            "frames around them were.",
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
            f"{say_count(sum(torn[name] for name in gone), 'byte')} at the end of "
            f"{name_some(gone)} are a frame that its process did not live to finish.",
            "Nothing: what was recorded in its last moments, up to 200 ms, is lost.",
        )


def _may_go_on(store: RunStore, log: str) -> bool:
    intake = store.sealer.intake
    state = intake.to_state().logs.get(log)
    ledger = intake.ledgers.get((state.process if state else None) or b"")
    return ledger is None or intake.is_alive(ledger, store.now_ns)


def find_disk(run: Path) -> Iterator[Finding]:
    """Find a disk that is nearly full."""
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


def find_upkeep(store: RunStore) -> Iterator[Finding]:
    """Find what a reader could be spared."""
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


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def find_run_file(run: Path) -> Iterator[Finding]:
    """Find a run whose description is missing."""
    if run.is_dir() and read_run_file(run) is None:
        yield Finding(
            Severity.NOTE,
            "files",
            "run.json is missing or cannot be read, so when the run began is guessed.",
            "Nothing; no reader depends on it.",
        )
