"""The instruments of the test under fire notice what they are there for."""

from __future__ import annotations

import time
from array import array
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import rollscope as rs
from rollscope.model.frames import scan_frames
from tests.chaos.checking import compare
from tests.chaos.stopwatch import Stopwatch
from tests.integration.support import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def busy() -> Iterator[None]:
    ends_at = time.clock_gettime_ns(time.CLOCK_THREAD_CPUTIME_ID) + 5_000_000
    while time.clock_gettime_ns(time.CLOCK_THREAD_CPUTIME_ID) < ends_at:
        pass
    yield


@contextmanager
def blocked() -> Iterator[None]:
    time.sleep(0.005)
    yield


@pytest.fixture
def watch() -> Iterator[Stopwatch]:
    watch = Stopwatch()
    watch.look_at_others()
    yield watch
    watch.close()


def test_a_call_that_sleeps_is_kept_waiting(watch: Stopwatch) -> None:
    def is_noticed() -> bool:
        watch.time(blocked)
        watch.look_at_others()
        return watch.calls.kept_waiting_ms > 4

    eventually(is_noticed, "the machine leaves one call alone")
    assert watch.calls.wall_ms >= watch.calls.blocked_ms >= watch.calls.kept_waiting_ms
    assert watch.calls.others_ran_ms < 4


def test_a_call_that_works_is_not_kept_waiting(watch: Stopwatch) -> None:
    watch.time(busy)
    watch.look_at_others()
    assert watch.calls.wall_ms >= 5
    assert watch.calls.kept_waiting_ms < 4


def test_a_call_whose_core_was_taken_away_is_not_kept_waiting(
    watch: Stopwatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if a host ran something else: time goes by in which the thread neither runs nor sleeps.
    monkeypatch.setattr(time, "thread_time_ns", lambda: 0)
    watch.time(busy)
    watch.look_at_others()
    assert watch.calls.taken_ms > 4
    assert watch.calls.taken_count == watch.calls.wall_count == 1
    assert watch.calls.blocked_ms == watch.calls.kept_waiting_ms == 0


@pytest.fixture
def ids(tmp_path: Path) -> array[int]:
    """Record ten spans under one, and give what a writer would have kept of them."""
    ids = array("Q")
    rs.init(run="run", dir=tmp_path)
    with rs.span("outer") as outer:
        for _ in range(10):
            with rs.span("inner") as inner:
                ids.extend((inner.id, inner.parent_id))
    ids.extend((outer.id, 0))
    rs.shutdown()
    return ids


def found(folder: Path, ids: array[int]) -> dict[str, int]:
    """Give what is wrong with the run."""
    file = folder / "ids"
    file.write_bytes(ids.tobytes())
    result = compare(folder / "run", [file])
    assert result.problems == []
    names = ("missing", "doubled", "strange", "misplaced", "missing_frames", "doubled_frames")
    return {name: number for name in names if (number := getattr(result, name))}


def test_a_whole_run_has_nothing_wrong(tmp_path: Path, ids: array[int]) -> None:
    assert found(tmp_path, ids) == {}


def test_a_span_that_is_not_there_is_missed(tmp_path: Path, ids: array[int]) -> None:
    ids.extend((7, 0))
    assert found(tmp_path, ids) == {"missing": 1}


def test_a_span_that_nobody_recorded_is_strange(tmp_path: Path, ids: array[int]) -> None:
    assert found(tmp_path, ids[2:]) == {"strange": 1}


def test_a_span_under_another_parent_is_misplaced(tmp_path: Path, ids: array[int]) -> None:
    ids[1] += 1
    assert found(tmp_path, ids) == {"misplaced": 1}


def test_a_frame_that_stands_in_a_log_twice_is_noticed(tmp_path: Path, ids: array[int]) -> None:
    (log,) = (tmp_path / "run" / "log").glob("*.rsl")
    data = log.read_bytes()
    first = scan_frames(data).bodies[0]
    log.write_bytes(data + data[: data.index(first) + len(first)])
    assert found(tmp_path, ids) == {"doubled_frames": 1}
