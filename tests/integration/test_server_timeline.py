from __future__ import annotations

import asyncio
import gzip
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pytest

import rollscope as rs
from rollscope.errors import StoreError
from rollscope.server import timelines
from rollscope.server.routes import timeline
from rollscope.store.embedded import RunStore
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from rollscope.timeline import TimelineIndex, ViewFrame, decode_frame
from tests.integration.served import Answer, Site, next_event, served

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    generate_run(place / "first", RunShape.sized(1500))
    return place


def at(place: Path, visit: Callable[[Site], Awaitable[T]]) -> T:
    async def scenario() -> T:
        async with served(place) as site:
            return await visit(site)

    return asyncio.run(scenario())


def read(answer: Answer) -> ViewFrame:
    assert answer.status == 200, answer.body
    is_packed = answer.headers.get("Content-Encoding") == "gzip"
    return decode_frame(gzip.decompress(answer.body) if is_packed else answer.body)


def test_raw_and_packed_frames_hold_the_whole_run(runs: Path) -> None:
    async def visit(site: Site) -> tuple[Answer, Answer, Any]:
        raw = await site.api("run/first/frame?mode=raw")
        packed = await site.api("run/first/frame?mode=packed", Accept_Encoding="gzip")
        rows = await site.api("run/first/export?what=spans&format=json")
        return raw, packed, rows.json

    raw, packed, rows = at(runs, visit)
    assert "Content-Encoding" not in packed.headers  # it is packed already
    assert len(packed.body) < len(raw.body) / 2
    assert read(raw).header["rows"] == read(packed).header["rows"] == len(rows)


def test_tiles_cover_the_window_and_follow_the_filter(runs: Path) -> None:
    async def visit(site: Site) -> list[Answer]:
        paths = (
            "tile",
            "tile?by=task&width=300&lanes=500&overview=100&silhouettes=1",
            "tile?lanes=1024&f=outcome:accepted",
            "tile?lanes=1024",
        )
        return [await site.api(f"run/first/{path}", Accept_Encoding="gzip") for path in paths]

    whole, by_task, accepted, everything = map(read, at(runs, visit))
    assert whole.header["kind"] == "tile"
    assert by_task.header["by"] == "task"
    assert any(name.startswith("mini_") for name in by_task.columns)
    assert 0 < shown(accepted) < shown(everything)


def test_a_tile_names_all_lanes_and_fills_those_that_are_wanted(runs: Path) -> None:
    async def visit(site: Site) -> list[Answer]:
        paths = ("tile?lanes=1024", "tile?lanes=1024&only=1-3,5-6", "tile?lanes=1024&only=")
        return [await site.api(f"run/first/{path}", Accept_Encoding="gzip") for path in paths]

    everything, some, none = map(read, at(runs, visit))
    assert everything.header["lanes"] == some.header["lanes"] == none.header["lanes"]
    for column in ("lane", "cell_lane"):
        lanes = everything.columns[column]
        wanted = lanes[np.isin(lanes, (1, 2, 5))]
        assert some.columns[column].tolist() == wanted.tolist()
    assert shown(none) == 0 < shown(some) < shown(everything)


def shown(frame: ViewFrame) -> int:
    return int(frame.header["rows"]) + int(frame.columns["cell_count"].sum())


def test_an_area_is_summed_and_a_span_is_found_by_its_place(runs: Path) -> None:
    async def visit(site: Site) -> tuple[Any, Any, Any]:
        tile = read(await site.api("run/first/tile?width=8000&lanes=4"))
        start_ns = (
            int(tile.header["t0_ns"]) + int(tile.columns["start"][0]) * tile.header["tick_ns"]
        )
        lane = tile.header["lanes"][int(tile.columns["lane"][0])]["id"]
        row = int(tile.columns["row"][0])
        span = await site.api(f"run/first/span?lane={lane}&row={row}&start={start_ns}")
        area = await site.api("run/first/area?lanes=4")
        return span.json, start_ns, area.json

    span, start_ns, area = at(runs, visit)
    assert abs(span["start_ns"] - start_ns) <= 1_000_000
    assert len(span["span_id"]) == 16
    assert area["count"] == sum(row["count"] for row in area["by_name"]) > 0


def test_windows_that_make_no_sense_are_refused(runs: Path) -> None:
    wrong = {
        "tile?by=mood": 400,
        "tile?t0=5&t1=4": 400,
        "tile?width=0": 400,
        "tile?width=100000": 400,
        "tile?lanes=1000000": 400,
        "tile?f=ran%3E%3E": 400,
        "tile?only=1-2-3": 400,
        "tile?only=all": 400,
        "tile?t0=1e9": 400,
        "frame?mode=zip": 400,
        "delta": 400,
        "delta?since=-1": 400,
        "span?lane=1": 400,
        "span?lane=99999&row=0&start=0": 404,
        "span?lane=0&row=999&start=0": 404,
    }

    async def visit(site: Site) -> list[Answer]:
        return [await site.api(f"run/first/{path}") for path in wrong]

    for (path, status), answer in zip(wrong.items(), at(runs, visit), strict=True):
        assert answer.status == status, (path, answer.body)
        assert answer.json["error"]


def test_answers_do_not_wait_for_a_timeline_that_is_being_built(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_build = threading.Event()
    built: list[TimelineIndex] = []

    def build(*args: Any, **options: Any) -> TimelineIndex:
        assert may_build.wait(30)
        built.append(TimelineIndex(*args, **options))
        return built[-1]

    monkeypatch.setattr(timelines, "TimelineIndex", build)

    async def visit(site: Site) -> tuple[list[Answer], Answer]:
        overview = await site.api("run/first")
        tile = asyncio.create_task(site.api("run/first/tile"))
        steps = await site.api("run/first/answer/steps")
        assert not tile.done()
        may_build.set()
        return [overview, steps], await tile

    answers, tile = at(runs, visit)
    assert [answer.status for answer in answers] == [200, 200]
    assert read(tile).header["kind"] == "tile"
    assert len(built) == 1  # the one that was begun with the overview


def test_a_timeline_that_cannot_be_built_is_tried_again(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = [True]

    def build(*args: Any, **options: Any) -> TimelineIndex:
        if fails.pop() if fails else False:
            raise StoreError("the segment is gone")
        return TimelineIndex(*args, **options)

    monkeypatch.setattr(timelines, "TimelineIndex", build)

    async def visit(site: Site) -> list[int]:
        return [(await site.api("run/first/tile")).status for _ in range(2)]

    first, second = at(runs, visit)
    assert first >= 400
    assert second == 200


def test_a_run_with_too_many_spans_is_drawn_from_tiles(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "MOST_SPANS", 100)

    answer = at(runs, lambda site: site.api("run/first/frame"))
    assert answer.status == 413
    assert "tiles" in answer.json["advice"]


def test_a_page_follows_a_run_by_what_has_changed(tmp_path: Path) -> None:
    async def scenario(tracer: rs.Tracer) -> list[ViewFrame]:
        async with served(tmp_path) as site, site.events("?run=live") as stream:
            frame = read(await site.api("run/live/frame"))
            frames = [frame]
            with tracer.phase("generate"):
                frames.append(await next_delta(site, stream, frame))
            frames.append(await next_delta(site, stream, frames[-1]))
            return frames

    with rs.Tracer(run="live", dir=tmp_path, drain_s=0.05) as tracer:
        with tracer.span("before"):
            pass
        tracer.flush()
        whole, began, ended = asyncio.run(scenario(tracer))
    assert whole.header["rows"] == 1
    assert began.header["rows"] == 1
    assert list(ended.columns["ended_handle"]) == list(began.columns["open_handle"])
    assert whole.header["seq"] < began.header["seq"] < ended.header["seq"]


async def next_delta(site: Site, stream: Any, last: ViewFrame) -> ViewFrame:
    """Ask for what changed whenever there is news, until something has."""
    since = last.header["seq"]
    while True:
        await asyncio.wait_for(next_event(stream), 30)
        frame = read(await site.api(f"run/live/delta?since={since}"))
        if frame.header["seq"] > since:
            return frame


def test_numbers_of_another_server_are_too_old(runs: Path) -> None:
    async def visit(site: Site) -> int:
        return int(read(await site.api("run/first/tile")).header["seq"])

    before = at(runs, visit)

    async def again(site: Site) -> tuple[int, Answer]:
        seq = await visit(site)
        return seq, await site.api(f"run/first/delta?since={before}")

    after, answer = at(runs, again)
    assert after > before
    assert answer.status == 410
    assert answer.json["advice"]


def test_the_next_server_starts_from_the_timeline_that_the_last_one_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timelines, "_LEAST_KEPT", 1)
    generate_run(tmp_path / "first", RunShape.sized(1500))
    with RunStore(tmp_path / "first", threads=1) as store:
        assert store.seal()

    async def visit(site: Site) -> dict[str, Any]:
        return read(await site.api("run/first/frame?mode=raw")).columns

    built = at(tmp_path, visit)
    for thread in threading.enumerate():
        if thread.name.startswith("rollscope-timeline"):
            thread.join(30)
    assert list((tmp_path / "first" / "segments").glob("timeline-host-*.index"))

    def refuse(*_: object) -> None:
        raise AssertionError("built although it was kept")

    monkeypatch.setattr("rollscope.timeline.spanindex.build_layout", refuse)
    again = at(tmp_path, visit)
    assert {name: column.tolist() for name, column in again.items()} == {
        name: column.tolist() for name, column in built.items()
    }


def test_timelines_of_other_groupings_leave_when_they_are_too_large(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def visit(site: Site) -> list[str]:
        for by in ("host", "task", "rank"):
            assert (await site.api(f"run/first/tile?by={by}")).status == 200
        run = await site.library.open("first")
        return [key[1] for key in run.extras if isinstance(key, tuple)]

    assert at(runs, visit) == ["host", "task", "rank"]
    monkeypatch.setattr("rollscope.server.timelines._MOST_SPANS", 2000)
    assert at(runs, visit) == ["task", "rank"]
