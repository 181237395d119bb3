"""Whether a run holds what its writers recorded: each span once, in its place, in whole logs."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from rollscope.collect.frameheads import FrameHead
from rollscope.model.frames import scan_frames
from rollscope.store.embedded import RunStore

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["Found", "compare"]

_head_of = msgspec.msgpack.Decoder(FrameHead).decode


class Found(msgspec.Struct, kw_only=True):
    """What is wrong with a run, in numbers; all of them should be 0, but `spans`."""

    spans: int
    missing: int
    """Spans that were recorded and are not there."""
    doubled: int
    strange: int
    """Spans that nobody recorded."""
    misplaced: int
    """Spans under another parent than the one they were recorded under."""
    not_ended: int
    dropped: int
    missing_frames: int
    doubled_frames: int
    damaged_bytes: int
    """Of logs."""
    problems: list[str]
    """What the store has to say about the files."""


def compare(run: Path, recorded: list[Path]) -> Found:
    """Hold a run against the lists of its writers.

    Args:
        run: The run's directory.
        recorded: Files with the id of each span and of its parent.
    """
    wanted = _read_lists(recorded)
    with RunStore(run) as store:
        store.refresh()
        spans = store.query("SELECT span_id, coalesce(parent_id, 0) AS parent, end_ns FROM spans")
        counts = store.query(
            "SELECT sum(dropped) AS dropped, sum(missing_frames) AS missing FROM processes"
        ).to_pylist()[0]
        problems = store.problems
    found = np.column_stack((_numbers(spans, "span_id"), _numbers(spans, "parent")))
    known = np.intersect1d(found[:, 0], wanted[:, 0])
    missing_frames, doubled_frames, damaged = _look_at_logs(run)
    return Found(
        spans=len(found),
        missing=len(wanted) - len(known),
        doubled=len(found) - len(np.unique(found[:, 0])),
        strange=len(np.unique(found[:, 0])) - len(known),
        misplaced=_count_misplaced(found, wanted),
        not_ended=spans["end_ns"].null_count,
        dropped=counts["dropped"],
        missing_frames=max(counts["missing"], missing_frames),
        doubled_frames=doubled_frames,
        damaged_bytes=damaged,
        problems=problems,
    )


def _read_lists(files: list[Path]) -> NDArray[np.uint64]:
    """Give pairs of span and parent; no id may come twice in what was recorded."""
    numbers = array("Q")
    for file in files:
        numbers.frombytes(file.read_bytes())
    pairs = np.array(numbers, dtype=np.uint64).reshape(-1, 2)
    assert len(np.unique(pairs[:, 0])) == len(pairs)
    return pairs


def _numbers(table: pa.Table, column: str) -> NDArray[np.uint64]:
    values: NDArray[np.uint64] = table[column].to_numpy()
    return values


def _count_misplaced(found: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> int:
    """Count the spans that both know, and of which they say different things."""
    found = found[np.argsort(found[:, 0])]
    wanted = wanted[np.argsort(wanted[:, 0])]
    _, ours, theirs = np.intersect1d(found[:, 0], wanted[:, 0], return_indices=True)
    return int((found[ours, 1] != wanted[theirs, 1]).sum())


def _look_at_logs(run: Path) -> tuple[int, int, int]:
    """Count the numbers that logs lack, those that they have twice, and bytes of no frame."""
    missing = doubled = damaged = 0
    for log in run.glob("log/*.rsl"):
        scan = scan_frames(log.read_bytes(), final=True)
        numbers = [_head_of(body).number for body in scan.bodies]
        unique = set(numbers)
        missing += max(numbers) + 1 - len(unique)
        doubled += len(numbers) - len(unique)
        damaged += scan.damaged
    return missing, doubled, damaged
