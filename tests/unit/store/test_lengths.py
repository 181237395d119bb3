"""How long finished spans took: as a query over the views would say, whatever was read before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollscope.analysis.stuck import Reference
from rollscope.answers.stuck import stuck
from rollscope.model.kinds import Status
from rollscope.store import lengths as module
from rollscope.store.embedded import RunStore
from rollscope.store.upkeep.merging import merge_segments
from rollscope.testing import RunShape, generate_run
from tests.builders import EPOCH, SECOND, make_batch, make_header, make_row, span_batch, write_log

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rollscope.store.lengths import Measured

NAMES = ("generate", "session", "toolcall")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    path = tmp_path_factory.mktemp("lengths") / "run"
    shape = RunShape(steps=3, tasks_per_step=6, clock_offsets_s=(0.0, 0.5, -2.1))
    return path, generate_run(path, shape).end_ns


@pytest.fixture
def store(made: tuple[Path, int], tmp_path: Path) -> Iterator[RunStore]:
    """The run, of which every log comes in three parts that are sealed one by one."""
    run, end_ns = made
    logs = {log.name: log.read_bytes() for log in run.glob("log/*.rsl")}
    (tmp_path / "run" / "log").mkdir(parents=True)
    with RunStore(tmp_path / "run", now_ns=end_ns + SECOND, threads=1) as store:
        for part in (1, 2, 3):
            for name, data in logs.items():
                whole = data[: len(data) * part // 3]
                (tmp_path / "run" / "log" / name).write_bytes(whole)
            store.refresh()
            if part < 3:
                assert store.seal()
        yield store


def by_query(store: RunStore, names: Collection[str], since_ns: int) -> Measured:
    """Measure with a query over the view, twice."""
    found: Measured = {}
    for detail, keys in (("detail", "name, detail"), ("NULL", "name")):
        p99 = store.dialect.rank("duration_ns", 99)
        sql = f"""
            SELECT name, {detail} AS detail, count(*) AS count, {p99} AS p99,
                max(duration_ns) AS longest
            FROM spans WHERE name IN (SELECT unnest($names)) AND recorded_end_ns IS NOT NULL
                AND status <> 'lost' AND start_ns >= $since GROUP BY {keys}"""  # noqa: S608
        for row in store.query(sql, names=list(names), since=since_ns).to_pylist():
            key = row["name"], row["detail"]
            found[key] = Reference(row["count"], row["p99"], row["longest"])
    return found


def quarters(store: RunStore) -> list[int]:
    """Give times from all over the run, the middle first."""
    sql = "SELECT min(start_ns) AS low, max(start_ns) AS high FROM spans"
    (row,) = store.query(sql).to_pylist()
    low, high = row["low"], row["high"]
    return [low + (high - low) * part // 4 for part in (2, 3, 1, 0, 4)]


def remove_segments(store: RunStore) -> None:
    for path in Path(store.path).glob("segments/spans-*.parquet"):
        path.unlink()


def test_lengths_are_those_that_a_query_finds(store: RunStore) -> None:
    assert any(store.offsets.values())
    assert store.sealer.unsealed_rows
    for since_ns in quarters(store):
        for names in (NAMES[:1], NAMES, NAMES[1:]):
            expected = by_query(store, names, since_ns)
            assert store.lengths(names, since_ns) == expected
    details = {detail for name, detail in store.lengths(NAMES, 0) if name == "toolcall"}
    assert details == {None, "browser", "python", "search"}


def test_what_is_sealed_or_merged_later_counts_once(store: RunStore) -> None:
    since_ns = quarters(store)[0]
    expected = by_query(store, NAMES, since_ns)
    assert store.lengths(NAMES, since_ns) == expected
    assert store.seal()
    assert store.lengths(NAMES, since_ns) == expected
    assert merge_segments(store.sealer)
    store.refresh()
    assert store.lengths(NAMES, since_ns) == expected


def test_a_segment_is_read_once(store: RunStore) -> None:
    since_ns, later_ns, *_ = quarters(store)
    store.seal()
    expected = by_query(store, NAMES, since_ns), by_query(store, NAMES[:1], later_ns)
    assert store.lengths(NAMES, since_ns) == expected[0]
    remove_segments(store)
    assert store.lengths(NAMES, since_ns) == expected[0]
    assert store.lengths(NAMES[:1], later_ns) == expected[1]
    assert store.problems == []


def test_too_many_lengths_are_not_kept(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_KEPT", 10)
    monkeypatch.setattr(module, "_MOST_NAMES", 1)
    store.seal()
    for since_ns in quarters(store)[:2]:
        for names in (NAMES, NAMES[:1]):
            assert store.lengths(names, since_ns) == by_query(store, names, since_ns)


def test_segments_that_vanish_are_read_again_from_the_logs(store: RunStore) -> None:
    since_ns = quarters(store)[2]
    store.seal()
    measured = by_query(store, NAMES, since_ns)
    remove_segments(store)
    assert store.lengths(NAMES, since_ns) == measured
    assert any("is damaged" in problem for problem in store.problems)
    store.seal()
    remove_segments(store)
    with_damage, without = stuck(store), stuck(store)
    assert with_damage == without
    assert with_damage.rows


def test_rows_since_a_time_leave_out_what_ended_before(store: RunStore) -> None:
    store.seal()
    middle_ns = quarters(store)[1]
    segments = [s for s in store.sealer.manifest.segments if s.table == "spans"]
    rows = store.rows_since("spans", ("span_id", "end_ns"), middle_ns)
    assert {s.file for s in segments if s.file in rows} == {
        s.file for s in segments if s.high_ns >= middle_ns
    }
    assert not all(segment.file in rows for segment in segments)
    expected = "SELECT span_id FROM spans WHERE recorded_end_ns >= $since ORDER BY span_id"
    found = f"SELECT span_id FROM {rows} WHERE end_ns >= $since ORDER BY span_id"  # noqa: S608
    assert store.query(found, since=middle_ns) == store.query(expected, since=middle_ns)


def test_spans_that_are_lost_or_open_have_no_length(tmp_path: Path) -> None:
    batches = [
        make_batch(0, header=make_header()),
        span_batch(
            1,
            make_row(1, "a", end_ns=3 * SECOND),
            make_row(2, "a", end_ns=9 * SECOND, status=Status.ERROR),
            make_row(3, "a", status=Status.OPEN),
        ),
        make_batch(2, mono_ns=90 * SECOND, end="exit"),
    ]
    write_log(tmp_path / "run" / "log" / "a.rsl", batches)
    with RunStore(tmp_path / "run", now_ns=EPOCH + 100 * SECOND, threads=1) as store:
        assert store.lengths(["a"], 0) == {("a", None): Reference(2, 8 * SECOND, 8 * SECOND)}
        assert store.lengths(["b"], 0) == {}
