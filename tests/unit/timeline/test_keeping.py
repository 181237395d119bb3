"""Timelines that were kept: the same as those that are built, or not used at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from rollscope.instrument.tracer import Tracer
from rollscope.store.embedded import RunStore
from rollscope.store.upkeep.retention import Removal, remove_segments
from rollscope.testing import FakeClock, RunShape, generate_run
from rollscope.timeline import TimelineIndex, keeping
from rollscope.timeline.keeping import has_kept
from tests.unit.timeline.oracle import check_lines, contents
from tests.unit.timeline.test_following import roll_out

NOW_NS = 4_000_000_000_000_000_000
SHAPE = RunShape(steps=2, tasks_per_step=8, group_size=2, rollout_processes=2, slots=8)


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a run that is over and sealed, with spans that never ended."""
    path = tmp_path_factory.mktemp("sealed") / "run"
    generate_run(path, SHAPE)
    with RunStore(path, threads=1) as store:
        assert store.seal()
        assert store.sealer.intake.open_rows().num_rows
    return path


@pytest.fixture
def run(sealed: Path, tmp_path: Path) -> Path:
    """Give a copy that may be changed."""
    return Path(shutil.copytree(sealed, tmp_path / "run"))


def look(run: Path, by: str = "host", *, keep: bool = False) -> tuple[bytes, bool]:
    """Give the frame of a run, and whether its timeline had to be built."""
    with RunStore(run, threads=1, now_ns=NOW_NS) as store:
        index = TimelineIndex(store, by)
        keepsake = index.take_keepsake()
        assert index.take_keepsake() is None
        if keep and keepsake is not None:
            assert keepsake.write()
        return index.frame(), keepsake is not None


def kept_file(run: Path) -> Path:
    (found,) = (run / "segments").glob("*.index")
    return found


@pytest.mark.parametrize("by", ["host", "replica", "rank", "task"])
def test_a_kept_timeline_gives_the_frame_that_a_built_one_gives(run: Path, by: str) -> None:
    built, was_built = look(run, by, keep=True)
    again, was_built_again = look(run, by)
    assert (was_built, was_built_again) == (True, False)
    assert again == built


def test_a_timeline_that_follows_verdicts_is_not_kept(run: Path) -> None:
    with RunStore(run, threads=1) as store:
        assert TimelineIndex(store, "outcome").take_keepsake() is None


def test_what_has_come_since_is_added_to_what_was_kept(tmp_path: Path) -> None:
    clock = FakeClock()
    tracer = Tracer(run="run", dir=str(tmp_path), clock=clock)
    with tracer.session(sample=999), tracer.phase("generate"):
        roll_out(tracer, clock, 300)
        tracer.flush()
        with RunStore(tmp_path / "run", threads=1) as store:
            assert store.seal()
            roll_out(tracer, clock, 3)
            tracer.flush()
            store.refresh()
            keepsake = TimelineIndex(store, "host").take_keepsake()
            assert keepsake is not None
            assert len(keepsake.unsealed) == 6
            assert keepsake.write()
        roll_out(tracer, clock, 4)
        with tracer.span("new"):
            clock.advance(0.5)
    roll_out(tracer, clock, 2)
    tracer.shutdown()
    with RunStore(tmp_path / "run", threads=1) as store:
        index = TimelineIndex(store, "host")
        assert index.take_keepsake() is None
        check_lines(index)
        kept_file(tmp_path / "run").unlink()
        built = TimelineIndex(store, "host")
        assert built.take_keepsake() is not None
        assert contents(index) == contents(built)
        assert index.total_spans == 2 * 310 + 1


def test_where_much_has_come_since_the_timeline_is_built(tmp_path: Path) -> None:
    clock = FakeClock()
    tracer = Tracer(run="run", dir=str(tmp_path), clock=clock)
    roll_out(tracer, clock, 50)
    tracer.flush()
    with RunStore(tmp_path / "run", threads=1) as store:
        assert store.seal()
    look(tmp_path / "run", keep=True)
    roll_out(tracer, clock, 50)
    tracer.shutdown()
    assert look(tmp_path / "run")[1]


@pytest.mark.parametrize("harm", ["torn", "damaged", "foreign", "empty"])
def test_a_file_that_is_not_whole_is_passed_over(run: Path, harm: str) -> None:
    built, _ = look(run, keep=True)
    path = kept_file(run)
    data = path.read_bytes()
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 4
    harmed: dict[str, bytes] = {
        "torn": data[:-7],
        "damaged": bytes(flipped),
        "foreign": b"PAR1" + data[4:],
        "empty": b"",
    }
    path.write_bytes(harmed[harm])
    assert look(run, keep=True) == (built, True)
    assert look(run) == (built, False)  # written anew


def test_a_file_of_another_version_is_passed_over(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(run, keep=True)
    monkeypatch.setattr(keeping, "_FORMAT", keeping._FORMAT + 1)
    assert look(run)[1]


def test_where_nothing_can_be_written_nothing_is_kept(run: Path, tmp_path: Path) -> None:
    with RunStore(run, threads=1) as store:
        keepsake = TimelineIndex(store).take_keepsake()
        assert keepsake is not None
        keepsake.path = tmp_path / "nowhere" / keepsake.path.name
        assert not keepsake.write()
        assert not has_kept(store, "host")


def test_other_segments_make_a_kept_timeline_useless_and_it_goes(run: Path) -> None:
    look(run, keep=True)
    path = kept_file(run)
    tracer = Tracer(run="run", dir=str(run.parent))
    with tracer.session():
        pass
    tracer.shutdown()
    with RunStore(run, threads=1) as store:
        assert has_kept(store, "host")
        assert store.seal()
        assert not has_kept(store, "host")
        assert path.exists()  # for a moment: a reader of the segments before may be starting
        os.utime(path, (0, 0))
        assert store.sealer.shelf is not None
        store.sealer.shelf.sweep()
        assert not path.exists()


def test_retention_takes_kept_timelines_at_once(run: Path) -> None:
    look(run, keep=True)
    with RunStore(run, threads=1) as store:
        segments = store.sealer.manifest.segments
        spans = [segment for segment in segments if segment.table == "spans"]
        assert remove_segments(store.sealer, Removal(segments=spans)).spans
    assert not list((run / "segments").glob("*.index"))
