from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections import Counter, defaultdict
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rollscope.analysis.intervals import Interval
from rollscope.model.kinds import Kind, Status
from rollscope.model.records import FactRecord, SpanRecord
from rollscope.store.embedded import RunStore
from rollscope.store.fold import Folded, fold
from rollscope.store.overlap import add_to, union_additions
from rollscope.store.paths import PathTable
from rollscope.store.rawrows import find_rows
from rollscope.store.run import RunFollower
from tests.builders import EPOCH, SECOND
from tests.property.histories import History, Traits, make_history

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NOW = EPOCH + 1_000_000 * SECOND
ROOTS = {Kind.STEP, Kind.TASK, Kind.SESSION, Kind.STATE}
FAST_DISK = "/dev/shm" if os.path.isdir("/dev/shm") else None

seeds = st.integers(0, 2**64 - 1).map(Random)
Row = dict[str, Any]


@contextmanager
def run_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=FAST_DISK) as folder:
        run = Path(folder, "run")
        (run / "log").mkdir(parents=True)
        yield run


def make_histories(source: Random, traits: Traits) -> list[History]:
    return [make_history(source, index, traits) for index in range(source.randint(1, 2))]


def write(run: Path, history: History, data: bytes) -> None:
    with (run / "log" / f"host-{history.process.hex()}.rsl").open("ab") as file:
        file.write(data)


def by_drain(source: Random, histories: list[History]) -> list[tuple[History, bytes]]:
    """Give the pieces in which logs grow if readers never look into the middle of a drain."""
    pieces = [(h, b"".join(drain)) for h in histories for drain in h.drains]
    return interleave(source, pieces)


def at_any_byte(source: Random, histories: list[History]) -> list[tuple[History, bytes]]:
    pieces = []
    for history in histories:
        data = history.data
        cuts = sorted(source.randint(0, len(data)) for _ in range(source.randint(0, 4)))
        ends = [*cuts, len(data)]
        pieces += [(history, data[a:b]) for a, b in zip([0, *cuts], ends, strict=True)]
    return interleave(source, pieces)


def interleave(source: Random, pieces: list[tuple[History, bytes]]) -> list[tuple[History, bytes]]:
    """Mix the logs, each staying in its order."""
    waiting: dict[int, list[tuple[History, bytes]]] = defaultdict(list)
    for piece in pieces:
        waiting[id(piece[0])].append(piece)
    order = [id(history) for history, _ in pieces]
    source.shuffle(order)
    return [waiting[which].pop(0) for which in order]


def follow(source: Random, run: Path, pieces: list[tuple[History, bytes]]) -> RunStore:
    """Let a reader look in on the growing run, seal, leave and come back, at any time."""
    store = RunStore(run, now_ns=NOW, threads=1)
    for history, data in pieces:
        write(run, history, data)
        if source.random() < 0.6:
            store.sealer.poll()
            if source.random() < 0.3:
                assert store.sealer.seal()
        if source.random() < 0.1:
            store.close()
            store = RunStore(run, now_ns=NOW, threads=1)
    store.refresh()
    return store


def folded(run: Path, *, with_facts: bool) -> Folded:
    records = RunFollower(run).poll(final=True)
    return fold(record for record in records if with_facts or not isinstance(record, FactRecord))


def number(text: str | None) -> int | None:
    return None if text is None else int(text, 16)


def comparable(span: SpanRecord) -> Row:
    return {
        "process": number(span.process),
        "trace_id": bytes.fromhex(span.trace_id),
        "span_id": number(span.span_id),
        "parent_id": number(span.parent_id),
        "kind": str(span.kind),
        "name": span.name,
        "category": span.category,
        "start_ns": span.start_ns,
        "end_ns": span.end_ns,
        "status": str(span.status),
        "reason": span.reason,
        "outcome": span.outcome,
        "step": span.step,
        "version_start": span.version_start,
        "version_end": span.version_end,
        "task_key": span.task_key,
        "sample": span.sample,
        "group_key": span.group,
        "lane": span.lane,
        "session_id": number(span.session_id),
        "attrs": span.attrs,
    }


def ask(store: RunStore, sql: str) -> list[Row]:
    rows: list[Row] = store.query(sql).to_pylist()
    for row in rows:
        for column in ("attrs", "facts", "labels", "buckets"):
            if column in row:
                row[column] = json.loads(row[column])
    return rows


def ordered(rows: Iterable[Row]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True, default=bytes.hex) for row in rows)


def check_like_folded(store: RunStore, run: Path) -> None:
    plain, late = folded(run, with_facts=False), folded(run, with_facts=True)
    expected = [comparable(span) for span in plain.spans.values()]
    columns = ", ".join(f'"{name}"' for name in expected[0]) if expected else "*"
    found = ask(store, f"SELECT {columns} FROM spans")  # noqa: S608  (columns of ours)
    assert ordered(found) == ordered(expected)
    check_sessions(store, late)
    events = [
        {"event_id": number(e.event_id), "time_ns": e.time_ns, "name": e.name, "attrs": e.attrs}
        for e in late.events
    ]
    found = ask(store, "SELECT event_id, time_ns, name, attrs FROM events")
    assert ordered(found) == ordered(events)
    metrics = [
        {"name": m.name, "time_ns": m.time_ns, "value": m.value, "count": m.count, "max": m.max}
        | {"labels": m.labels, "buckets": m.buckets}
        for m in late.metrics
    ]
    found = ask(store, "SELECT name, time_ns, value, count, max, labels, buckets FROM metrics")
    assert ordered(found) == ordered(metrics)
    stacks = [(number(s.span_id), s.time_ns, s.task) for s in late.stacks]
    found = ask(store, "SELECT span_id, time_ns, task FROM stacks")
    assert Counter(tuple(row.values()) for row in found) == Counter(stacks)
    assert store.problems == []


def check_sessions(store: RunStore, late: Folded) -> None:
    expected = [
        {
            "session_id": number(span.span_id),
            "status": str(span.status),
            "outcome": span.outcome,
            "reason": span.reason,
            "version_end": span.version_end,
            "reward": span.attrs.get("reward"),
            "consumed_step": span.attrs.get("consumed_step"),
        }
        for span in late.of_kind(Kind.SESSION)
    ]
    sql = "SELECT session_id, status, outcome, reason, version_end, reward, consumed_step"
    assert ordered(ask(store, f"{sql} FROM sessions")) == ordered(expected)


def check_facts(store: RunStore, run: Path) -> None:
    facts = [r for r in RunFollower(run).poll(final=True) if isinstance(r, FactRecord)]
    expected = [
        {"span_id": number(f.span_id), "time_ns": f.time_ns, "facts": f.facts} for f in facts
    ]
    found = ask(store, "SELECT span_id, time_ns, facts FROM facts")
    assert ordered(found) == ordered(expected)


@settings(max_examples=14)
@given(seeds)
def test_a_run_followed_in_any_pieces_and_sealed_at_any_time_is_what_folding_makes_of_it(
    source: Random,
) -> None:
    histories = make_histories(source, Traits())
    with run_folder() as run:
        store = follow(source, run, at_any_byte(source, histories))
        try:
            check_like_folded(store, run)
            check_facts(store, run)
        finally:
            store.close()


@settings(max_examples=14)
@given(seeds)
def test_frames_in_any_order_give_no_span_twice_and_no_end_up(source: Random) -> None:
    history = make_history(source, 0, Traits())
    frames = [frame for drain in history.drains for frame in drain]
    source.shuffle(frames)
    shuffled = History(history.process, [[frame] for frame in frames])
    with run_folder() as run:
        store = follow(source, run, by_drain(source, [shuffled]))
        try:
            found = {row["span_id"]: row for row in ask(store, "SELECT * FROM spans")}
            assert len(found) == ask(store, "SELECT count(*) AS rows FROM spans")[0]["rows"]
        finally:
            store.close()
        expected = folded(run, with_facts=False).spans.values()
    assert found.keys() <= {number(span.span_id) for span in expected}
    for span in expected:
        if span.status is Status.OK:
            row = found[number(span.span_id)]
            # A loss that was told before the end came stays; it cannot be taken back.
            assert row["status"] in ("ok", "lost")
            if row["status"] == "ok":
                assert (row["start_ns"], row["end_ns"]) == (span.start_ns, span.end_ns)


def everything(store: RunStore) -> dict[str, list[str]]:
    names = ("sessions", "events", "facts", "metrics", "stacks", "processes", "drops")
    rows = {name: ordered(ask(store, f"FROM {name}")) for name in names}
    rows["spans"] = ordered(ask(store, "SELECT * EXCLUDE (overlap_ns) FROM spans"))
    # Which one of two siblings counts as overlapping depends on when a reader looked.
    rows["overlaps"] = ordered(
        ask(store, "SELECT process, parent_id, sum(overlap_ns) FROM spans GROUP BY ALL")
    )
    return rows


@settings(max_examples=10)
@given(seeds)
def test_sealing_and_coming_back_changes_no_row(source: Random) -> None:
    histories = make_histories(source, Traits(changing_clock=False, dropped_starts=False))
    with run_folder() as run, run_folder() as other:
        pieces = by_drain(source, histories)
        store = follow(source, run, pieces)
        plain = RunStore(other, now_ns=NOW, threads=1)
        for history, data in pieces:
            write(other, history, data)
            plain.sealer.poll()
        plain.refresh()
        try:
            assert everything(store) == everything(plain)
            assert store.sealer.seal()
            store.refresh()
            assert everything(store) == everything(plain)
        finally:
            store.close()
            plain.close()
        with (
            RunStore(run, now_ns=NOW, threads=1) as again,
            RunStore(other, now_ns=NOW, threads=1) as plain,
        ):
            assert everything(again) == everything(plain)


# Self times and paths


def union_length(intervals: Iterable[Interval]) -> int:
    total, reached = 0, None
    for low, high in sorted(intervals):
        if high <= low:
            continue
        low = low if reached is None else max(low, reached)
        total += max(high - low, 0)
        reached = high if reached is None else max(high, reached)
    return total


def naive_self_times(rows: list[Row]) -> Counter[str]:
    children = defaultdict(list)
    for row in rows:
        children[row["process"], row["parent_id"]].append(row)
    times: Counter[str] = Counter()
    for row in rows:
        low, high = row["start_ns"], row["until"]
        below = [
            (max(child["start_ns"], low), min(child["until"], high))
            for child in children[row["process"], row["span_id"]]
        ]
        times[row["path"]] += high - low - union_length(below)
    return times


def stored_self_times(rows: list[Row]) -> Counter[str]:
    times: Counter[str] = Counter()
    paths = {row["path"] for row in rows}
    for row in rows:
        length = row["until"] - row["start_ns"]
        times[row["path"]] += length
        if row["parent_path"] in paths:
            times[row["parent_path"]] -= length - row["overlap_ns"]
    return times


def naive_path(row: Row, known: dict[tuple[int, int], Row]) -> str:
    parent = known.get((row["process"], row["parent_id"] or 0))
    if row["kind"] in ROOTS or parent is None:
        return str(row["name"])
    return joined(naive_path(parent, known), row["name"])


def joined(above: str, name: str) -> str:
    table = PathTable()
    return table.paths[table.below(table.code_of(above), name)]


@settings(max_examples=14)
@given(seeds)
def test_self_times_by_path_and_paths_are_those_of_a_naive_walk(source: Random) -> None:
    traits = Traits(changing_clock=False, dropped_starts=False, settled=True)
    histories = make_histories(source, traits)
    with run_folder() as run:
        store = follow(source, run, by_drain(source, histories))
        try:
            rows = ask(
                store,
                "SELECT process, span_id, parent_id, kind, name, start_ns, status, end_ns, "
                "path, parent_path, overlap_ns FROM spans",
            )
        finally:
            store.close()
    known = {(row["process"], row["span_id"]): row for row in rows}
    for row in rows:
        row["until"] = NOW if row["end_ns"] is None else row["end_ns"]
    for row in rows:
        assert row["path"] == naive_path(row, known), row
        parent = known.get((row["process"], row["parent_id"] or 0))
        assert row["parent_path"] == (naive_path(parent, known) if parent else ""), row
        assert 0 <= row["overlap_ns"] <= row["until"] - row["start_ns"]
    found, expected = stored_self_times(rows), naive_self_times(rows)
    for times in (found, expected):
        del times[""]  # the path of a span without a name, and of parents that are not known
    assert found == expected


intervals = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 20)), max_size=30
)


@given(intervals)
def test_what_siblings_add_sums_up_to_their_union(given: list[tuple[int, int, int]]) -> None:
    parents = np.array([p for p, _, _ in given], np.uint64)
    starts = np.array([s for _, s, _ in given], np.int64)
    ends = np.array([s + n for _, s, n in given], np.int64)
    added = union_additions(parents, starts, ends)
    for parent in set(parents.tolist()):
        own = [(s, s + n) for p, s, n in given if p == parent]
        assert added[parents == parent].sum() == union_length(own)
        covered: list[Interval] = []
        assert sum(add_to(covered, interval) for interval in own) == union_length(own)
        assert covered == sorted(covered)
        assert all(a[1] < b[0] for a, b in itertools.pairwise(covered))
    assert (added <= ends - starts).all()


ids = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 60), max_size=20)


@given(st.sets(st.integers(0, 2**64 - 1) | st.integers(0, 60), max_size=20), ids)
def test_rows_are_found_by_their_ids_wherever_those_lie(have: set[int], wanted: list[int]) -> None:
    order = list(have)
    found = find_rows(np.array(order, np.uint64), np.array([*wanted, *order], np.uint64))
    expected = [order.index(i) if i in have else -1 for i in [*wanted, *order]]
    assert found.tolist() == expected
