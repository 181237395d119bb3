"""The timeline against brute force: tiles, packed frames, and growing by any portions."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rollscope.store.embedded import RunStore
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from rollscope.timeline import GROUPINGS, DeltaTooOld, TileQuery, TimelineIndex, decode_frame
from rollscope.timeline.columns import MARKS
from rollscope.timeline.frame import encode_frame, encode_packed
from rollscope.timeline.framing import name_roles
from rollscope.timeline.tiles import cut_tile
from tests.property.histories import Traits
from tests.property.test_store import at_any_byte, make_histories, run_folder, write
from tests.unit.timeline.oracle import (
    Page,
    brute_cells,
    brute_exact,
    check_lines,
    contents,
    stored_spans,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

seeds = st.integers(0, 2**32).map(Random)
groupings = st.sampled_from(sorted(GROUPINGS))
NOW = 1_790_000_400_000_000_000


def random_shape(source: Random) -> RunShape:
    return RunShape(
        seed=source.randrange(1000),
        steps=source.randint(1, 2),
        tasks_per_step=source.randint(1, 4),
        group_size=source.randint(1, 3),
        rollout_processes=source.randint(1, 3),
        slots=source.randint(1, 4),
        max_turns=3,
        failure_share=0.2,
        retry_share=0.5,
        parallel_tools=source.randint(1, 3),
        nested_share=0.3,
        outliving_share=0.3,
        straggling_share=0.2,
        stuck_sessions=source.randint(0, 2),
        dying_process=source.random() < 0.5,
        replicas=source.randint(0, 2),
        gates=source.random() < 0.5,
        remote_rewards=source.random() < 0.5,
    )


@contextmanager
def generated_index(source: Random, by: str) -> Iterator[TimelineIndex]:
    with tempfile.TemporaryDirectory() as folder:
        truth = generate_run(Path(folder, "run"), random_shape(source))
        with RunStore(Path(folder, "run"), threads=1, now_ns=truth.end_ns) as store:
            yield TimelineIndex(store, by)


def random_query(source: Random, index: TimelineIndex) -> TileQuery:
    length = max(index.last_ns - index.t0_ns, 1)
    share = source.choice([1.0, 0.3, 0.01, 1e-5])
    t0_ns = index.t0_ns + int(length * source.uniform(-0.1, 1.0))
    return TileQuery(
        t0_ns=t0_ns,
        t1_ns=t0_ns + max(int(length * share), 1),
        width=source.choice([1, 7, 64, 1000]),
        first=source.randrange(len(index.lanes)),
        lanes=source.randint(1, 12),
    )


@given(seeds, groupings)
@settings(max_examples=8)
def test_tiles_agree_with_brute_force_and_hide_no_mark(source: Random, by: str) -> None:
    with generated_index(source, by) as index:
        roles = name_roles(index.names.words)
        for _ in range(6):
            query = random_query(source, index)
            tile = cut_tile(index, query)
            rows = tile.rows
            columns = (rows.start, rows.end, rows.lane, rows.row, rows.name, rows.flags)
            exact = list(zip(*(column.tolist() for column in columns), strict=True))
            expected = brute_exact(index, query)
            assert sorted(exact) == sorted(expected.elements())
            cells = tile.cells
            places = zip(
                tile.cell_lane.tolist(),
                tile.cell_row.tolist(),
                tile.cell_pixel.tolist(),
                strict=True,
            )
            values = (
                cells.name,
                cells.role,
                cells.covered,
                cells.count,
                cells.longest,
                cells.flags,
            )
            kept = zip(*(column.tolist() for column in values), strict=True)
            found = dict(zip(places, kept, strict=True))
            assert found == brute_cells(index, query, roles)
            assert marks_shown(index.tile(query)) == marks_in(exact, found)


Marks = dict[tuple[int, int], int]


def marks_in(exact: list[tuple[int, ...]], cells: dict[Any, tuple[int, ...]]) -> Marks:
    """Give the marks that each line has to show."""
    marks: Marks = {}
    for _, _, lane, row, _, flags in exact:
        marks[lane, row] = marks.get((lane, row), 0) | flags & MARKS
    for (lane, row, _), value in cells.items():
        marks[lane, row] = marks.get((lane, row), 0) | value[-1] & MARKS
    return marks


def marks_shown(tile: bytes) -> Marks:
    """Give the marks that a frame shows on each line."""
    columns = {name: column.tolist() for name, column in decode_frame(tile).columns.items()}
    marks: Marks = {}
    for prefix in ("", "cell_"):
        lines = zip(*(columns[prefix + name] for name in ("lane", "row", "flags")), strict=True)
        for lane, row, flags in lines:
            marks[lane, row] = marks.get((lane, row), 0) | flags & MARKS
    return marks


@given(seeds, groupings)
@settings(max_examples=8)
def test_an_index_holds_every_span_once_and_apart(source: Random, by: str) -> None:
    with generated_index(source, by) as index:
        check_lines(index)
        shown: Any = {}
        for (_, session, name, start, end, _), count in contents(index).items():
            key = (session, name, start, end)
            shown[key] = shown.get(key, 0) + count
        assert shown == stored_spans(index)
        order = index.lanes.order.tolist()
        assert sorted(order) == list(range(len(index.lanes)))


def grow(source: Random, run: Path, index: TimelineIndex, pieces: list[Any]) -> int:
    """Write a run piece by piece while a page follows; say how often it could go on by a delta."""
    page = Page(index.frame("raw"))
    followed = 0
    for history, data in pieces:
        write(run, history, data)
        if source.random() < 0.3:
            continue
        index.store.refresh()
        index.extend()
        check_lines(index)
        try:
            page.apply(index.delta(page.header["seq"]))
            followed += 1
        except DeltaTooOld:
            page = Page(index.frame("raw"))
        assert page.contents() == Page(index.frame("packed")).contents()
    return followed


@given(seeds, groupings)
@settings(max_examples=6)
def test_odd_histories_can_be_followed_as_they_are_written(source: Random, by: str) -> None:
    histories = make_histories(source, Traits())
    with run_folder() as run, RunStore(run, threads=1, now_ns=NOW) as store:
        index = TimelineIndex(store, by)
        grow(source, run, index, at_any_byte(source, histories))
        store.refresh()
        index.extend()
        whole = TimelineIndex(store, by)
        # What a session is known to be, and with it its group, changes while it is written.
        assert lengths(index, groups=False) == lengths(whole, groups=False)


def lengths(index: TimelineIndex, *, groups: bool) -> Counter[tuple[Any, ...]]:
    """Give spans by length: while a run grows, clocks may be off by some milliseconds."""
    spans: Counter[tuple[Any, ...]] = Counter()
    for (group, session, name, start, end, flags), count in contents(index).items():
        length = None if end is None else end - start
        spans[group if groups else None, session, name, length, flags] += count
    return spans


@given(seeds, groupings)
@settings(max_examples=5)
def test_a_run_that_grows_ends_like_one_that_was_read_whole(source: Random, by: str) -> None:
    with run_folder() as run:
        truth = generate_run(run.with_name("whole"), random_shape(source))
        logs = sorted(run.with_name("whole").glob("log/*"))
        with RunStore(run, threads=1, now_ns=truth.end_ns) as store:
            index = TimelineIndex(store, by)
            for part in range(1, 6):
                for log in logs:
                    data = log.read_bytes()
                    (run / "log" / log.name).write_bytes(data[: len(data) * part // 5])
                store.refresh()
                index.extend()
                check_lines(index)
            whole = TimelineIndex(store, by)
            assert lengths(index, groups=True) == lengths(whole, groups=True)


@given(seeds)
@settings(max_examples=40)
def test_packed_frames_give_back_what_was_packed(source: Random) -> None:
    columns = random_columns(source)
    packed = decode_frame(encode_packed({"kind": "packed"}, columns))
    raw = decode_frame(encode_frame({"kind": "raw"}, columns))
    assert packed.columns.keys() == columns.keys()
    for name, column in columns.items():
        assert packed.columns[name].dtype == raw.columns[name].dtype == column.dtype
        np.testing.assert_array_equal(packed.columns[name], column)
        np.testing.assert_array_equal(raw.columns[name], column)


def random_columns(source: Random) -> dict[str, Any]:
    rows = []
    for lane in sorted(source.sample(range(70_000), source.randint(0, 4))):
        for row in range(source.randint(1, 3)):
            at = source.choice([0, 0, 2**31])
            for _ in range(source.randint(1, 6)):
                at += source.choice([0, 0, 1, 300, 2**20])
                dur = source.choice([0, 1, 255, 256, 2**24])
                rows.append((at, dur, source.choice([0, 5, 2**32 - 1]), lane, 3, row, 9))
                at += dur
            if source.random() < 0.3:
                rows.append((at, 2**32 - 1, 1, lane, 65_535, row, 2))
    kinds = ("u4", "u4", "u4", "u4", "u2", "u2", "u1")
    names = ("start", "dur", "session", "lane", "name", "row", "flags")
    table = np.array(rows, np.int64).reshape(-1, 7)
    columns = {
        name: table[:, place].astype(kind)
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True))
    }
    ids = [source.getrandbits(64) for _ in range(source.randint(0, 5))]
    columns["session_ids"] = np.array(ids, np.uint64).view(np.uint32)
    columns["open_index"] = np.flatnonzero(columns["flags"] == 2).astype(np.uint32)
    return columns
