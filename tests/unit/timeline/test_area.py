from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollscope.analysis.intervals import clip, union_ns
from rollscope.analysis.ranks import nearest_rank
from rollscope.store.embedded import RunStore
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from rollscope.timeline import TimelineIndex

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TimelineIndex]:
    run = tmp_path_factory.mktemp("area") / "run"
    truth = generate_run(run, RunShape(steps=2, parallel_tools=2, nested_share=0.5))
    with RunStore(run, threads=1, now_ns=truth.end_ns) as store:
        yield TimelineIndex(store, "host")


def test_the_whole_run_adds_up_by_name(index: TimelineIndex) -> None:
    area = index.area(index.t0_ns, index.now_ns + 1, 0, len(index.lanes))
    spans = index.store.query("SELECT * FROM spans").to_pylist()
    assert area.count == len(spans)
    for row in area.by_name:
        own = [span for span in spans if span["name"] == row.key]
        ended = sorted(span["duration_ns"] for span in own if span["duration_ns"] is not None)
        assert (row.count, row.total_ns) == (len(own), sum(ended))
        assert row.p50_ns == (nearest_rank(ended, 50) if ended else None)
        assert row.p95_ns == (nearest_rank(ended, 95) if len(ended) >= 20 else None)
        assert row.max_ns == max(ended, default=None)


def test_self_time_is_what_children_do_not_cover(index: TimelineIndex) -> None:
    area = index.area(index.t0_ns, index.now_ns + 1, 0, len(index.lanes))
    spans = index.store.query("SELECT * FROM spans WHERE end_ns IS NOT NULL").to_pylist()
    children: dict[int, list[tuple[int, int]]] = {}
    for span in spans:
        if span["parent_id"] is not None:
            times = (span["start_ns"], span["end_ns"])
            children.setdefault(span["parent_id"], []).append(times)
    for name in ("generate", "toolcall", "trainer.update"):
        alone = 0
        for span in spans:
            if span["name"] == name:
                whole = (span["start_ns"], span["end_ns"])
                inside = clip(children.get(span["span_id"], []), whole)
                alone += span["duration_ns"] - union_ns(inside)
        (row,) = [row for row in area.by_name if row.key == name]
        assert row.self_ns == alone


def test_an_area_holds_only_its_lanes(index: TimelineIndex) -> None:
    group = index.lanes.group_ranges()[1]
    area = index.area(index.t0_ns, index.now_ns + 1, group.first_lane, group.lanes)
    assert [row.key for row in area.by_host] == [group.label]
    assert 0 < area.count < index.total_spans
    assert {row.key for row in area.by_outcome} >= {"accepted", "none"}


def test_an_area_without_spans_is_empty(index: TimelineIndex) -> None:
    area = index.area(index.t0_ns - 10, index.t0_ns - 5, 0, 5)
    assert (area.count, area.by_name, area.sessions) == (0, [], 0)
