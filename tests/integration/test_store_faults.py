"""Damage to what the store keeps: nothing is lost while the logs are there, and it is told."""

from __future__ import annotations

import os
import random
import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest

from rollscope.store import sealer as sealing
from rollscope.store.embedded import RunStore
from rollscope.testing import RunShape, generate_run
from tests.builders import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHAPE = RunShape(steps=4, tasks_per_step=16, clock_offsets_s=())


class Sealed(NamedTuple):
    """A run of several segments, and all that is in it."""

    run: Path
    now_ns: int
    rows: dict[str, list[tuple[object, ...]]]

    def open(self) -> RunStore:
        return RunStore(self.run, now_ns=self.now_ns, threads=1)

    @property
    def shelf(self) -> Path:
        return self.run / "segments"

    def newest(self, suffix: str) -> Path:
        return max(self.shelf.glob(f"*{suffix}"), key=lambda path: path.name)

    def segments(self) -> list[Path]:
        return sorted(self.shelf.glob("spans-*.parquet"))


def rows_of(store: RunStore) -> dict[str, list[tuple[object, ...]]]:
    columns = {
        "spans": "span_id, status, start_ns, end_ns, attrs, path",
        "sessions": "session_id, status, outcome, reward",
        "events": "event_id, time_ns, attrs",
        "facts": "span_id, time_ns, facts",
    }
    found = {}
    for table, names in columns.items():
        sql = f"SELECT {names} FROM {table} ORDER BY ALL"  # noqa: S608  (tables of ours)
        rows = store.query(sql).to_pylist()
        found[table] = [tuple(row.values()) for row in rows]
    return found


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Sealed:
    run = tmp_path_factory.mktemp("original") / "run"
    truth = generate_run(run, SHAPE)
    now_ns = truth.end_ns + 100 * SECOND
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealing, "SEAL_ROWS", 700)
        patch.setattr("rollscope.store.intake._CHUNK_BYTES", 20_000)
        with RunStore(run, now_ns=now_ns, threads=1) as store:
            assert store.seal()
            assert store.problems == []
            rows = rows_of(store)
    assert len(rows["spans"]) == truth.total_spans
    sealed = Sealed(run, now_ns, rows)
    assert len(sealed.segments()) > 2
    return sealed


@pytest.fixture
def sealed(original: Sealed, tmp_path: Path) -> Sealed:
    run = tmp_path / "run"
    shutil.copytree(original.run, run)
    return original._replace(run=run)


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _overwrite(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))


def _spoil_middle(path: Path) -> None:
    """Overwrite most of a file, but leave its ends as they are."""
    data = bytearray(path.read_bytes())
    edge = len(data) // 8
    data[edge:-edge] = random.Random(2).randbytes(len(data) - 2 * edge)
    path.write_bytes(data)


def _delete(path: Path) -> None:
    path.unlink()


FAULTS = [_truncate, _empty, _overwrite, _spoil_middle, _delete]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("suffix", ["spans", "manifest", "state"])
def test_damage_to_what_was_sealed_costs_nothing_while_the_logs_are_there(
    sealed: Sealed, fault: Callable[[Path], None], suffix: str
) -> None:
    victim = {
        "spans": sealed.segments()[1],
        "manifest": sealed.newest(".json"),
        "state": sealed.newest(".state"),
    }[suffix]
    fault(victim)

    with sealed.open() as store:
        assert rows_of(store) == sealed.rows
        told = store.problems
        assert store.seal()
        assert rows_of(store) == sealed.rows
    if not (suffix == "manifest" and fault is _delete):  # the one before it is simply the newest
        assert told
        assert all("\n" not in problem for problem in told)
    with sealed.open() as store:
        assert rows_of(store) == sealed.rows
        assert store.problems == []


def test_a_flipped_bit_is_found_by_a_thorough_look(sealed: Sealed) -> None:
    source = random.Random(4)
    for _ in range(4):
        with sealed.open() as store:
            used = source.choice(store.sealer.manifest.segments)
            victim = sealed.shelf / used.file
            spoiled = bytearray(victim.read_bytes())
            spoiled[source.randrange(4, len(spoiled) - 4)] ^= 1 << source.randrange(8)
            victim.write_bytes(spoiled)
            store.sealer.give_up_damaged()
            store.refresh()
            assert rows_of(store) == sealed.rows
            assert any(used.file in problem for problem in store.problems)
            store.seal()


def test_every_manifest_damaged_is_a_run_that_was_never_sealed(sealed: Sealed) -> None:
    for manifest in sealed.shelf.glob("manifest-*.json"):
        _overwrite(manifest)

    with sealed.open() as store:
        assert rows_of(store) == sealed.rows
        assert any("cannot be used" in problem for problem in store.problems)


def test_damage_while_a_reader_is_there_is_found_when_it_asks(sealed: Sealed) -> None:
    with sealed.open() as store:
        for segment in sealed.segments():
            _spoil_middle(segment)
        assert rows_of(store) == sealed.rows
        assert any("is damaged" in problem for problem in store.problems)


def test_without_its_logs_a_damaged_segment_is_told_and_the_others_are_kept(
    sealed: Sealed,
) -> None:
    shutil.rmtree(sealed.run / "log")
    with sealed.open() as store:
        assert rows_of(store) == sealed.rows
        assert store.problems == []

    _truncate(sealed.segments()[0])
    with sealed.open() as store:
        left = rows_of(store)["spans"]
        assert 0 < len(left) < len(sealed.rows["spans"])
        assert set(left) < set(sealed.rows["spans"])
        assert any("gone" in problem for problem in store.problems)


# What happens to logs after they were sealed


def _logs(sealed: Sealed) -> list[Path]:
    return sorted((sealed.run / "log").glob("*.rsl"))


@pytest.mark.parametrize("fault", [_truncate, _empty, _delete])
def test_a_log_that_shrinks_or_goes_after_sealing_costs_nothing(
    sealed: Sealed, fault: Callable[[Path], None]
) -> None:
    victim = _logs(sealed)[1]
    fault(victim)

    with sealed.open() as store:
        assert rows_of(store) == sealed.rows
        assert any(str(victim) in problem for problem in store.problems) == (fault is not _delete)


@pytest.mark.parametrize("size", ["shorter", "as long", "longer"])
def test_a_log_that_is_replaced_by_garbage_after_sealing_costs_nothing(
    sealed: Sealed, size: str
) -> None:
    victim = _logs(sealed)[1]
    was = victim.stat().st_size
    length = {"shorter": was // 2, "as long": was, "longer": was * 2}[size]
    victim.write_bytes(random.Random(3).randbytes(length))

    with sealed.open() as store:
        assert rows_of(store) == sealed.rows
        assert any(str(victim) in problem for problem in store.problems)


@pytest.mark.parametrize("repeat", [1, 40])
def test_a_log_that_is_replaced_by_another_ones_adds_what_is_in_that(
    sealed: Sealed, tmp_path: Path, repeat: int
) -> None:
    victim = _logs(sealed)[1]
    shape = RunShape(seed=5, steps=repeat, tasks_per_step=8, clock_offsets_s=())
    generate_run(tmp_path / "other", shape)
    # The processes of the other run are other processes.
    other = next((tmp_path / "other" / "log").glob("*.rsl")).read_bytes()
    victim.write_bytes(_renamed(other))

    with sealed.open() as store:
        spans = rows_of(store)["spans"]
        assert set(sealed.rows["spans"]) < set(spans)
        assert any("replaced" in problem for problem in store.problems)
        assert store.seal()
        assert rows_of(store)["spans"] == spans
    with sealed.open() as store:
        assert rows_of(store)["spans"] == spans


def _renamed(data: bytes) -> bytes:
    """Let the frames of a log be another process's."""
    from rollscope.model.batch import decode_batch, encode_batch
    from rollscope.model.frames import pack_frame, scan_frames

    batches = [decode_batch(body) for body in scan_frames(data).bodies]
    for batch in batches:
        batch.process = b"\xff" + batch.process[1:]
    return b"".join(pack_frame(encode_batch(batch)) for batch in batches)
