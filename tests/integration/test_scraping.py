"""A real server that asks real programs for their metrics: good, dead and hostile ones."""

from __future__ import annotations

import asyncio
import json
import os
import time
from contextlib import ExitStack, suppress
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.collect.authored import AuthoredLog
from rollscope.collect.exposition import ExpositionReader
from rollscope.collect.scraping import ScrapeSettings
from rollscope.collect.targets import parse_named_target
from rollscope.server.listing import has_living_process
from tests.builders import make_header
from tests.integration.exposing import Exposer, exposing, ray_text, sglang_text, vllm_text
from tests.integration.served import TOKEN, Answer, Site, served

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.integration.exposing import Handler

EVERY_S = 0.2
JSON = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}


def recording(place: Path, run: str = "live") -> AuthoredLog:
    """Give the log of a process that records into a run."""
    now_ns = time.time_ns()
    header = make_header(host="far", pid=7, started_ns=now_ns, started_mono_ns=now_ns)
    log = AuthoredLog(place / run, os.urandom(8), header)
    log.write(heartbeat=True)
    log.release()
    return log


def end(log: AuthoredLog) -> None:
    log.write(end="exit")
    log.release()


def scraping(*named: str, file: Path | None = None, every_s: float = EVERY_S) -> ScrapeSettings:
    return ScrapeSettings(tuple(map(parse_named_target, named)), file, every_s)


def at(place: Path, visit: Callable[[Site], Awaitable[None]], **options: Any) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(60), served(place, **options) as site:
            await visit(site)

    asyncio.run(scenario())


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    """Look until there is something to see; the test's own limit ends it."""
    while True:
        if seen := await look():
            return seen
        await asyncio.sleep(0.02)


async def replica(site: Site, name: str, field: str = "kv_use") -> Any:
    """Give the line of a replica once it has something."""
    answer = await site.api("run/live/answer/hosts?by=replica")
    lines = answer.json.get("lines", ())
    return next((one for one in lines if one["name"] == name and one[field] is not None), None)


async def targets(site: Site, run: str = "live") -> list[dict[str, Any]]:
    return list((await site.api(f"run/{run}/targets")).json["targets"])


async def troubled(site: Site, what: str) -> bool:
    return any(what in one["trouble"] for one in await targets(site))


async def change(site: Site, method: str, path: str, body: Any = None) -> Answer:
    url = f"{site.url}/api/v1/run/{path}"
    async with site.client.request(method, url, json=body, headers=JSON) as response:
        return Answer(response.status, response.headers, await response.read())


def test_engines_of_both_kinds_show_beside_the_sessions(tmp_path: Path) -> None:
    with exposing() as vllm, exposing() as sglang:
        sglang.text = sglang_text()
        recording(tmp_path)

        async def visit(site: Site) -> None:
            first = await until(partial(replica, site, "r0"))
            assert (first["kv_use"], first["engine_running"], first["engine_waiting"]) == (
                0.25,
                17,
                3,
            )
            vllm.text = vllm_text(3_000, kv=0.5)
            later = await until(partial(replica, site, "r0", "prefix_hits"))
            assert later["kv_use"] == 0.5
            assert later["preempted"] == 4
            assert later["prefix_hits"] == 0.75
            assert later["tokens_per_s"] > 0
            other = await until(partial(replica, site, "r1"))
            assert (other["kv_use"], other["engine_running"], other["preempted"]) == (0.5, 21, 2)
            assert (other["prefix_hits"], other["tokens_per_s"]) == (0.125, 1800)
            assert len(vllm.peers) == 1  # one connection for all requests
            history = (await site.api("run/live/answer/engines?replica=r0")).json
            (line,) = history["lines"]
            assert line["replica"] == "r0"
            assert len(line["kv_use"]) == len(history["positions"])
            assert sum(one or 0 for one in line["preempted"]) == 4

        named = (f"r0={vllm.url}", f"r1={sglang.url}")
        at(tmp_path, visit, scrape=scraping(*named))


def test_an_engine_that_is_away_is_shown_as_down_told_once_and_asked_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with exposing() as exposer:
        port = int(exposer.address.rpartition(":")[2])
    recording(tmp_path)

    async def visit(site: Site) -> None:
        async def is_down() -> bool:
            line = await replica(site, "r0", "engines_down")
            return bool(line and line["engines_down"] == 1)

        await until(is_down)
        with exposing(port):
            assert (await until(partial(replica, site, "r0")))["engines_down"] == 0
        await until(is_down)
        assert (await replica(site, "r0", "engines_down"))["kv_use"] is None

    at(tmp_path, visit, scrape=scraping(f"r0=127.0.0.1:{port}"))
    told = [one.message for one in caplog.records if one.name == "rollscope.scraping"]
    assert "cannot be reached" in told[0]
    assert any("answers again" in one for one in told[1:])
    assert all(one != other for one, other in pairwise(told))  # each change once


def _endless(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    with suppress(OSError):
        while True:
            handler.wfile.write(b"vllm:num_requests_running 1\n" * 2_000)


def _dripping(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    with suppress(OSError):
        while True:
            handler.wfile.write(b"x")
            time.sleep(0.05)


def _elsewhere(other: Exposer, handler: Handler) -> None:
    handler.send_response(302)
    handler.send_header("Location", other.url)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def _gibberish(handler: Handler) -> None:
    handler.wfile.write(b"\x00\xff" * 100_000 + b"\r\n\r\n")
    handler.close_connection = True


def _long_head(handler: Handler) -> None:
    with suppress(OSError):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000)
    handler.close_connection = True


def _packed(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Encoding", "gzip")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def test_hostile_targets_are_cut_off_and_harm_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So little that it has come before the time is up, also on a busy machine.
    reader = partial(ExpositionReader, most_bytes=50_000)
    monkeypatch.setattr("rollscope.collect.watching.ExpositionReader", reader)
    with ExitStack() as stack:
        good, unasked, *bad = (stack.enter_context(exposing()) for _ in range(8))
        hostile: dict[str, Callable[[Handler], None]] = {
            "more than is read": _endless,
            "did not answer within": _dripping,
            "does not speak HTTP": _gibberish,
            "buffer too long": _long_head,
            "compressed": _packed,
            "answers 302": partial(_elsewhere, unasked),
        }
        for exposer, answer in zip(bad, hostile.values(), strict=True):
            exposer.answer = answer
        recording(tmp_path)

        async def visit(site: Site) -> None:
            for trouble in hostile:
                await until(partial(troubled, site, trouble))
            assert (await until(partial(replica, site, "r0")))["engines_down"] == 0
            before = good.asked

            async def is_asked_on() -> bool:
                return good.asked > before

            await until(is_asked_on)

        named = [f"bad{number}={one.url}" for number, one in enumerate(bad)]
        at(tmp_path, visit, scrape=scraping(f"r0={good.url}", *named, every_s=1.0))
        assert unasked.asked == 0  # no redirect is followed


def test_targets_are_added_listed_and_removed_by_request(tmp_path: Path) -> None:
    with exposing() as exposer:
        recording(tmp_path)

        async def visit(site: Site) -> None:
            target = {"url": exposer.url, "replica": "r7", "labels": {"rack": "3"}}
            added = await change(site, "POST", "live/targets", target)
            assert added.status == 200
            assert added.json["targets"][0]["labels"] == {"rack": "3"}
            assert await until(partial(replica, site, "r7"))
            assert await targets(site, "another") == []
            where = f"live/targets?url={exposer.url}"
            assert (await change(site, "DELETE", where)).status == 204
            assert (await change(site, "DELETE", where)).status == 404
            assert await targets(site) == []

        at(tmp_path, visit, scrape=scraping())


def test_a_bad_target_is_refused_with_a_sentence(tmp_path: Path) -> None:
    wrong: list[tuple[str, Any, int]] = [
        ("live/targets", {"url": "file:///etc/passwd"}, 400),
        ("live/targets", {"url": "http://h/", "odd": 1}, 400),
        ("live/targets", ["http://h/"], 400),
        ("live/targets", {"url": "http://h/", "labels": {"a": "x" * 300}}, 400),
        ("live/targets", {"url": "http://h/" + "x" * 100_000}, 413),
        ("bad%20name/targets", {"url": "http://h/"}, 400),
    ]

    async def visit(site: Site) -> None:
        for path, body, status in wrong:
            answer = await change(site, "POST", path, body)
            assert answer.status == status
            assert answer.json["error"].endswith(".")
        assert (await site.ask("/api/v1/run/live/targets", "POST", bearer="wrong")).status == 403
        assert await targets(site) == []

    at(tmp_path, visit)


def test_a_file_of_targets_is_read_again_when_it_changes(tmp_path: Path) -> None:
    listed = tmp_path / "targets.json"
    with exposing() as first, exposing() as second:
        second.text = ray_text()
        recording(tmp_path / "runs")
        listed.write_text(json.dumps([{"targets": [first.address], "labels": {"replica": "r0"}}]))

        async def visit(site: Site) -> None:
            assert await until(partial(replica, site, "r0"))
            listed.write_text("[")

            async def is_still_asked() -> bool:
                return [one["replica"] for one in await targets(site)] == ["r0"]

            assert await is_still_asked()
            # As Ray writes it: replicas are told apart by what they say.
            listed.write_text(json.dumps([{"labels": {"job": "ray"}, "targets": [second.address]}]))
            assert (await until(partial(replica, site, "replica-b")))["kv_use"] == 0.75
            assert not await is_still_asked()

        at(tmp_path / "runs", visit, scrape=scraping(file=listed))


def test_what_is_scraped_goes_to_the_run_that_is_recorded_and_ends_with_it(tmp_path: Path) -> None:
    with exposing() as exposer:
        end(recording(tmp_path, "over"))
        log = recording(tmp_path)

        async def visit(site: Site) -> None:
            assert await until(partial(replica, site, "r0"))
            end(log)

            async def has_ended() -> bool:
                return not await asyncio.to_thread(has_living_process, tmp_path / "live")

            await until(has_ended)
            asked = exposer.asked
            recording(tmp_path)  # another process of the run

            async def is_asked_again() -> bool:
                return exposer.asked > asked

            await until(is_asked_again)

        at(tmp_path, visit, scrape=scraping(f"r0={exposer.url}"))
        assert len(list((tmp_path / "over" / "log").iterdir())) == 1
        assert len(list((tmp_path / "live" / "log").iterdir())) == 4
