from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from rollscope.errors import QueryError
from rollscope.model.refs import span_hex
from rollscope.store.embedded import RunStore
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from rollscope.timeline import DeltaTooOld, TileQuery, TimelineIndex, decode_frame
from rollscope.timeline.columns import ERROR, IS_SESSION, LOST, OPEN_FLAG, RETRIED, STUCK
from tests.unit.timeline.oracle import all_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

SHAPE = RunShape(
    steps=2,
    tasks_per_step=6,
    failure_share=0.2,
    retry_share=1.0,
    stuck_sessions=2,
    replicas=2,
    clock_offsets_s=(0.0, 0.25),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunStore]:
    run = tmp_path_factory.mktemp("timeline") / "run"
    truth = generate_run(run, SHAPE)
    with RunStore(run, threads=1, now_ns=truth.end_ns) as opened:
        yield opened


@pytest.fixture(scope="module")
def index(store: RunStore) -> TimelineIndex:
    return TimelineIndex(store, "host")


def whole_window(index: TimelineIndex, **changes: int) -> TileQuery:
    query = TileQuery(t0_ns=index.t0_ns, t1_ns=index.last_ns + 1, width=200, lanes=1024)
    return msgspec.structs.replace(query, **changes)


def test_lanes_are_grouped_by_host_with_sessions_below_the_rest(index: TimelineIndex) -> None:
    groups = index.lanes.group_ranges()
    assert [group.label for group in groups] == ["host-00", "host-01", "host-02", "host-03"]
    first = groups[1].first_lane
    labels = [index.lanes.label(lane) for lane in range(first, first + groups[1].lanes)]
    assert labels[:3] == ["rollout 0 · tasks", "rollout 0 · slot 1", "rollout 0 · slot 2"]


@pytest.mark.parametrize(
    ("by", "label"), [("replica", "replica"), ("rank", "rollout 2"), ("outcome", "accepted")]
)
def test_other_groupings_have_groups_of_their_own(store: RunStore, by: str, label: str) -> None:
    labels = [group.label for group in TimelineIndex(store, by).lanes.group_ranges()]
    assert any(label in one for one in labels)


def test_tasks_have_one_lane_for_each_session(store: RunStore) -> None:
    index = TimelineIndex(store, "task")
    sessions = store.query("SELECT count(*) AS n FROM sessions")["n"][0].as_py()
    assert int(index.lanes.has_sessions.sum()) == sessions


def test_an_unknown_grouping_is_told(store: RunStore) -> None:
    with pytest.raises(QueryError, match="choose one of host"):
        TimelineIndex(store, "colour")


def test_flags_say_what_the_store_says(index: TimelineIndex) -> None:
    rows = all_rows(index)

    def flagged(flag: int) -> int:
        return int(np.count_nonzero(rows.flags & flag))

    def stored(condition: str) -> int:
        sql = f"SELECT count(*) AS n FROM spans WHERE {condition}"  # noqa: S608
        count: int = index.store.query(sql)["n"][0].as_py()
        return count

    assert flagged(ERROR) == stored("status = 'error'") > 0
    assert flagged(LOST) == stored("status = 'lost'") > 0
    assert flagged(OPEN_FLAG) == stored("status = 'open'") > 0
    assert flagged(IS_SESSION) == stored("kind = 'session'")
    assert flagged(RETRIED) == stored("kind = 'session' AND attempt > 0") > 0


def test_stuck_spans_are_marked_and_cleared_by_deltas(store: RunStore) -> None:
    index = TimelineIndex(store, "host")
    (leaf,) = store.query("SELECT span_id FROM spans WHERE status = 'open' LIMIT 1").to_pylist()
    before = index.seq
    assert index.extend(stuck=[leaf["span_id"]]) == before + 1
    delta = decode_frame(index.delta(before))
    assert delta.columns["ended_flags"].tolist()[0] & STUCK
    assert delta.columns["ended_dur"].tolist() == [0xFFFFFFFF]
    index.extend(stuck=[])
    assert not np.any(all_rows(index).flags & STUCK)


def test_nothing_new_gives_no_new_number(store: RunStore) -> None:
    index = TimelineIndex(store, "host")
    before = index.seq
    assert index.extend() == before
    assert decode_frame(index.delta(before)).header["rows"] == 0


@pytest.mark.parametrize("since", [-1, 99])
def test_a_number_that_was_never_given_out_is_too_old(index: TimelineIndex, since: int) -> None:
    with pytest.raises(DeltaTooOld, match="load anew"):
        index.delta(since)


@pytest.mark.parametrize(
    "changes", [{"t1_ns": 0}, {"width": 0}, {"width": 10**6}, {"first": -1}, {"lanes": 0}]
)
def test_windows_that_make_no_sense_are_told(index: TimelineIndex, changes: dict[str, int]) -> None:
    with pytest.raises(QueryError):
        index.tile(whole_window(index, **changes))


def test_a_tile_of_chosen_sessions_shows_only_those(index: TimelineIndex) -> None:
    session = int(index.session_ids[3])
    query = msgspec.structs.replace(whole_window(index, width=8000), sessions=[session])
    frame = decode_frame(index.tile(query))
    low, high = frame.columns["session_ids"].tolist()
    assert low | high << 32 == session
    sql = "SELECT count(*) AS n FROM spans WHERE session_id = $id"
    spans = index.store.query(sql, id=session)["n"][0].as_py()
    assert frame.header["rows"] + int(frame.columns["cell_count"].sum()) == spans


def test_every_row_leads_to_its_exact_span(index: TimelineIndex) -> None:
    frame = decode_frame(index.frame("raw"))
    columns, t0_ns = frame.columns, int(frame.header["t0_ns"])
    halves = columns["session_ids"].tolist()
    for place in range(0, frame.header["rows"], 37):
        start_ns = t0_ns + int(columns["start"][place]) * frame.header["tick_ns"]
        span = index.span(int(columns["lane"][place]), int(columns["row"][place]), start_ns)
        assert span.name == frame.header["names"][columns["name"][place]]
        assert 0 <= span.start_ns - start_ns < frame.header["tick_ns"]
        number = int(columns["session"][place])
        if number != 0xFFFFFFFF:
            session = halves[2 * number] | halves[2 * number + 1] << 32
            assert span.session_id == span_hex(session)


def test_a_row_that_is_empty_leads_nowhere(index: TimelineIndex) -> None:
    with pytest.raises(QueryError, match="no span on row 999"):
        index.span(0, 999, index.t0_ns)


def test_the_overview_adds_up_to_the_time_of_sessions(index: TimelineIndex) -> None:
    whole = index.overview(50)
    rows = all_rows(index)
    is_session = (rows.flags & IS_SESSION) > 0
    covered = np.minimum(rows.end, whole.t1_ns)[is_session] - rows.start[is_session]
    shown = whole.roles.sum() / 1000 * (whole.t1_ns - whole.t0_ns) / 50
    assert shown == pytest.approx(covered.sum(), rel=0.15)
    assert np.bitwise_or.reduce(whole.flags) & ERROR


def test_silhouettes_add_up_to_the_time_of_sessions(index: TimelineIndex) -> None:
    groups = range(len(index.lanes.group_ranges()))
    t1_ns = index.now_ns
    found = index.silhouettes(groups, index.t0_ns, t1_ns, 64)
    rows = all_rows(index)
    code = index.lanes.groups.words.index(index.lanes.group_ranges()[1].label)
    mine = index.lanes.group[rows.lane] == code
    sessions = mine & ((rows.flags & IS_SESSION) > 0)
    tasks = mine & ~index.lanes.has_sessions[rows.lane]
    covered = np.minimum(rows.end, t1_ns) - rows.start
    shown = found[1].mean.sum() / 1000 * (t1_ns - index.t0_ns) / 64
    assert shown == pytest.approx(int(covered[sessions | tasks].sum()), rel=0.01)


def test_sessions_in_flight_add_up_to_their_time(index: TimelineIndex) -> None:
    query = TileQuery(t0_ns=index.t0_ns, t1_ns=index.now_ns, width=64, lanes=1, only=())
    tile = decode_frame(index.tile(query, silhouettes=True))
    rows = all_rows(index)
    sessions = rows.take(np.flatnonzero(rows.flags & IS_SESSION))
    covered = int((np.minimum(sessions.end, index.now_ns) - sessions.start).sum())
    shown = tile.columns["flight_mean"].sum() / 1000 * (query.t1_ns - query.t0_ns) / 64
    assert shown == pytest.approx(covered, rel=0.01)


def test_a_silhouette_tells_what_covers_most_of_each_pixel(index: TimelineIndex) -> None:
    width, (t0_ns, t1_ns) = 40, (index.t0_ns, index.now_ns)
    (found,) = index.silhouettes([1], t0_ns, t1_ns, width)
    rows = all_rows(index)
    code = index.lanes.groups.words.index(index.lanes.group_ranges()[1].label)
    rows = rows.take(np.flatnonzero(index.lanes.group[rows.lane] == code))
    holds = np.isin(index.names.words, ("session", "task", "step"))
    weight = np.where(holds[rows.name], 0.01, 1.0)
    edges = np.linspace(t0_ns, t1_ns, width + 1)
    for pixel in range(width):
        low, high = edges[pixel], edges[pixel + 1]
        inside = np.minimum(rows.end, high) - np.maximum(rows.start, low)
        covered = np.bincount(rows.name, np.maximum(inside, 0) * weight)
        assert covered[found.name[pixel]] == pytest.approx(covered.max(), rel=1e-6, abs=1e3)
