from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import rollscope as rs
from rollscope.server.routes import events
from rollscope.server.stacks import take_stacks
from tests.integration.served import Site, next_event, served


def record(place: Path, **settings: Any) -> rs.Tracer:
    return rs.Tracer(run="live", dir=place, drain_s=0.05, **settings)


async def heard(stream: Any, what: str) -> dict[str, Any]:
    """Listen until something is said to have changed."""
    while True:
        event = await asyncio.wait_for(next_event(stream), 30)
        if event["event"] == "seq" and what in event["data"]["changed"]:
            data: dict[str, Any] = event["data"]
            return data


def test_new_spans_raise_the_number_that_pages_are_told(tmp_path: Path) -> None:
    async def scenario(tracer: rs.Tracer) -> list[dict[str, Any]]:
        async with served(tmp_path) as site, site.events("?run=live") as stream:
            first = (await next_event(stream))["data"]
            with tracer.phase("generate"):
                began = await heard(stream, "open")
            ended = await heard(stream, "spans")
            with tracer.step(4):
                pass
            return [first, began, ended, await heard(stream, "steps")]

    with record(tmp_path) as tracer:
        tracer.flush()
        said = asyncio.run(scenario(tracer))
    numbers = [data["seq"] for data in said]
    assert numbers == sorted(set(numbers))
    assert all(data["run"] == "live" and data["is_alive"] for data in said)
    assert all(data["now_ns"] >= data["last_ns"] > 0 for data in said)


def test_who_cannot_have_the_stream_is_told_the_same_when_asking(tmp_path: Path) -> None:
    async def scenario(tracer: rs.Tracer) -> list[dict[str, Any]]:
        async with served(tmp_path) as site:
            first = (await site.api("run/live/progress")).json
            with tracer.phase("generate"):
                pass
            tracer.flush()
            later = first
            while later["seq"] == first["seq"]:  # as the page does, which nobody tells
                await asyncio.sleep(0.05)
                later = (await site.api("run/live/progress")).json
            async with site.events("?run=live") as stream:
                return [first, later, (await next_event(stream))["data"]]

    with record(tmp_path) as tracer:
        tracer.flush()
        first, later, streamed = asyncio.run(scenario(tracer))
    assert first["run"] == later["run"] == "live"
    assert first["seq"] < later["seq"] <= streamed["seq"]
    assert first.keys() == streamed.keys()


def test_the_end_of_a_run_is_told(tmp_path: Path) -> None:
    async def scenario(tracer: rs.Tracer) -> dict[str, Any]:
        async with served(tmp_path) as site, site.events("?run=live") as stream:
            await next_event(stream)
            tracer.shutdown()
            return await heard(stream, "life")

    tracer = record(tmp_path)
    tracer.flush()
    assert asyncio.run(scenario(tracer))["is_alive"] is False


def test_a_page_that_comes_back_is_told_only_what_it_does_not_know(tmp_path: Path) -> None:
    async def scenario(tracer: rs.Tracer) -> tuple[str, str]:
        async with served(tmp_path) as site:
            async with site.events("?run=live") as stream:
                seen = (await next_event(stream))["id"]
            async with site.events("?run=live", Last_Event_ID=seen) as stream:
                with tracer.phase("later"):
                    while (event := await next_event(stream))["id"] == seen:
                        assert event["data"]["changed"] == []  # heart-beats
            return seen, event["id"]

    with record(tmp_path) as tracer:
        tracer.flush()
        seen, new = asyncio.run(scenario(tracer))
    assert int(new) > int(seen)


def test_numbers_of_a_server_that_was_started_again_are_new_ones(tmp_path: Path) -> None:
    async def number() -> int:
        async with served(tmp_path) as site, site.events("?run=live") as stream:
            data = (await next_event(stream))["data"]
            return int(data["seq"])

    with record(tmp_path) as tracer:
        tracer.flush()
        before = asyncio.run(number())
        for _ in range(3):
            with tracer.span("more"):
                pass
        tracer.flush()
        assert asyncio.run(number()) > before + 1000


def test_a_quiet_stream_is_kept_alive(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(events, "KEEP_ALIVE_S", 0.05)

    async def scenario() -> bytes:
        async with served(tmp_path) as site, site.events("?run=live") as stream:
            while await stream.readline() != b"event: alive\n":
                pass
            return await stream.readline()

    with record(tmp_path):
        pass
    assert asyncio.run(scenario()) == b"data: still here\n"


def test_the_list_of_runs_is_told_when_one_is_added(tmp_path: Path) -> None:
    async def scenario() -> list[list[str]]:
        async with served(tmp_path) as site, site.events("") as stream:
            empty = await next_event(stream)
            with record(tmp_path) as tracer:
                tracer.flush()
                added = await asyncio.wait_for(next_event(stream), 30)
            return [event["data"]["runs"] for event in (empty, added)]

    assert asyncio.run(scenario()) == [[], ["live"]]


def test_a_run_that_nobody_looks_at_is_closed_and_opened_again(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("rollscope.server.library._SWEEP_EVERY_S", 0.01)

    def close_after(idle_s: float) -> None:
        monkeypatch.setattr("rollscope.server.library._IDLE_S", idle_s)

    async def scenario() -> tuple[int, int, int]:
        async with served(tmp_path) as site:
            first = (await site.api("run/live/answer/stuck")).status
            close_after(0.0)
            while site.library.opened():  # noqa: ASYNC110  (the sweeper tells nobody)
                await asyncio.sleep(0.01)
            close_after(60.0)
            again = (await site.api("run/live/answer/stuck")).status
            async with site.events("?run=live") as stream:
                await next_event(stream)
                close_after(0.0)
                await asyncio.sleep(0.1)
                return first, again, len(site.library.opened())

    with record(tmp_path):
        pass
    assert asyncio.run(scenario()) == (200, 200, 1)


async def hang(tracer: rs.Tracer, number: int) -> None:
    async with tracer.task(f"task/{number}"), tracer.session(sample=0):
        with tracer.phase("toolcall"):
            await asyncio.Event().wait()


def test_a_running_process_says_at_once_where_it_hangs(tmp_path: Path) -> None:
    async def scenario(tracer: rs.Tracer) -> tuple[Any, Any]:
        tasks = [asyncio.create_task(hang(tracer, number)) for number in range(20)]
        await asyncio.sleep(0)
        await asyncio.to_thread(tracer.flush)
        async with served(tmp_path) as site:
            everything = (await site.ask("/api/v1/run/live/stack", "POST")).json
            rows = (await site.api("run/live/answer/stuck")).json["rows"]
            session = rows[0]["session_id"]
            one = (await site.ask(f"/api/v1/run/live/stack?session={session}", "POST")).json
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return everything, one

    with record(tmp_path, stack_after_s=0) as tracer:
        everything, one = asyncio.run(scenario(tracer))
    assert (everything["is_fresh"], everything["asked"], everything["note"]) == (True, 1, "")
    assert everything["lines"][0]["count"] == 20
    assert "wait" in everything["lines"][0]["line"]
    assert one["is_fresh"]
    assert len(one["stacks"]) == 1
    assert any("hang" in frame for frame in one["stacks"][0]["frames"])


def test_a_process_that_cannot_answer_leaves_what_it_recorded(tmp_path: Path) -> None:
    async def scenario(site: Site) -> Any:
        run = await site.library.open("live")
        return await take_stacks(run, None)

    async def serve() -> Any:
        async with served(tmp_path) as site:
            return await scenario(site)

    with record(tmp_path) as tracer, tracer.span("done"):
        pass
    answer = asyncio.run(serve())
    assert (answer.is_fresh, answer.note) == (False, "Nothing is open.")
