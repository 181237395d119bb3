"""What senders get from a real server: right requests, wrong ones, and those meant to harm."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from rollscope._version import __version__
from rollscope.server import bodyreading
from tests.builders import PROCESS, frame_of, make_batch, make_header, make_row, span_batch
from tests.integration.served import TOKEN, Answer, Site, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

FIRST = frame_of(make_batch(0, header=make_header(host="far", pid=1)))
SPANS = frame_of(span_batch(1, *(make_row(number) for number in range(1, 2_000))))
LAST = frame_of(make_batch(2, end="exit"))
ALL = FIRST + SPANS + LAST
HEADERS = {
    "Authorization": f"Bearer {TOKEN}",
    "Content-Type": "application/x-rollscope-frames",
    "Rollscope-Run": "sent",
    "Rollscope-Process": PROCESS.hex(),
}


async def post(site: Site, body: Any = ALL, **changes: str | None) -> Answer:
    """Send frames, with some headers changed or left out."""
    changed = {name.replace("_", "-"): value for name, value in changes.items()}
    headers = {**HEADERS, **changed}
    given = {name: value for name, value in headers.items() if value is not None}
    async with site.client.post(f"{site.url}/v1/ingest", data=body, headers=given) as response:
        return Answer(response.status, response.headers, await response.read())


def at(place: Path, visit: Callable[[Site], Awaitable[None]], **options: Any) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(60), served(place, **options) as site:
            await visit(site)

    asyncio.run(scenario())


def kept(place: Path) -> bytes:
    return (place / "sent" / "log" / "far-1-00000001.rsl").read_bytes()


def test_frames_become_a_run_that_can_be_looked_at_at_once(tmp_path: Path) -> None:
    async def visit(site: Site) -> None:
        assert (await site.api("runs")).json["runs"] == []
        first = await post(site, FIRST + SPANS, Rollscope_Tags="%7B%22model%22%3A%22%C3%A4%22%7D")
        assert first.status == 200
        assert first.json["received_ns"] <= first.json["sent_ns"]
        assert (first.json["frames"], first.json["doubled"]) == (2, 0)
        assert (await site.api("run/sent")).json["name"] == "sent"
        (listed,) = (await site.api("runs")).json["runs"]
        assert (listed["name"], listed["spans"]) == ("sent", 1_999)
        again = await post(site)
        assert (again.json["frames"], again.json["doubled"]) == (3, 2)

    at(tmp_path / "runs", visit)
    assert kept(tmp_path / "runs") == ALL
    tags = json.loads((tmp_path / "runs" / "sent" / "run.json").read_text())["tags"]
    assert tags == {"model": "ä"}


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("deflate", zlib.compress), ("gzip", gzip.compress), ("identity", bytes)],
)
def test_frames_may_come_packed(
    tmp_path: Path, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    async def visit(site: Site) -> None:
        assert (await post(site, pack(ALL), Content_Encoding=encoding)).status == 200

    at(tmp_path, visit)
    assert kept(tmp_path) == ALL


def test_requests_that_make_no_sense_are_told_so_and_harm_nobody(tmp_path: Path) -> None:
    packed = zlib.compress(ALL)
    bomb = zlib.compress(bytes(200 * 2**20), 9)
    cases: list[tuple[int, str, dict[str, Any]]] = [
        (400, "no whole frame", {"body": b"hello"}),
        (400, "no whole frame", {"body": ALL + b"x"}),
        (400, "damaged", {"body": ALL[:-1] + b"x"}),
        (400, "another process", {"Rollscope_Process": "0" * 16}),
        (400, "16 hexadecimal", {"Rollscope_Process": "../../etc"}),
        (400, "16 hexadecimal", {"Rollscope_Process": None}),
        (400, "allowed", {"Rollscope_Run": "../up"}),
        (400, "No run is named", {"Rollscope_Run": None}),
        (400, "one or five", {"Rollscope_Clock": "now"}),
        (400, "JSON object", {"Rollscope_Tags": "%7B"}),
        (400, "JSON object", {"Rollscope_Tags": "%5B1%5D"}),
        (400, "cannot be unpacked", {"Content_Encoding": "deflate"}),
        (400, "cannot be unpacked", {"Content_Encoding": "gzip", "body": packed}),
        (400, "too early", {"Content_Encoding": "deflate", "body": packed[:-9]}),
        (400, "follows", {"Content_Encoding": "deflate", "body": packed + b"x"}),
        (401, "token", {"Authorization": None}),
        (401, "token", {"Authorization": "Bearer wrong"}),
        (401, "token", {"Authorization": None, "Cookie": f"rollscope-1={TOKEN}"}),
        (413, "64 MiB", {"Content_Encoding": "deflate", "body": bomb}),
        (415, "frames only", {"Content_Type": "application/json"}),
        (415, "Content-Encoding", {"Content_Encoding": "br"}),
    ]

    async def visit(site: Site) -> None:
        for status, told, request in cases:
            answer = await post(site, **request)
            assert (answer.status, told in answer.json["error"]) == (status, True), answer
            assert answer.json["advice"]
        assert (await site.ask("/v1/ingest", "PUT")).status == 405
        assert os.listdir(tmp_path) == []
        assert (await post(site)).status == 200

    at(tmp_path, visit)
    assert kept(tmp_path) == ALL


def test_a_body_that_is_too_long_is_refused_before_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodyreading, "_DISCARD_S", 0.1)

    async def visit(site: Site) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        lines = [f"{name}: {value}" for name, value in HEADERS.items()]
        head = "\r\n".join(
            ["POST /v1/ingest HTTP/1.1", "Host: x", *lines, "Content-Length: 9" + "0" * 9]
        )
        writer.write(f"{head}\r\n\r\n".encode())
        assert (await reader.readline()).split()[1] == b"413"
        writer.close()

    at(tmp_path, visit)


def test_a_sender_who_falls_silent_or_leaves_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodyreading, "_SILENCE_S", 0.2)
    monkeypatch.setattr(bodyreading, "_DISCARD_S", 0.2)
    may_go = asyncio.Event()

    async def some() -> AsyncIterator[bytes]:
        yield ALL[:100]
        await may_go.wait()

    async def visit(site: Site) -> None:
        answer = await post(site, some())
        assert (answer.status, answer.headers["Connection"]) == (408, "close")
        may_go.set()
        _, writer = await asyncio.open_connection("127.0.0.1", site.port)
        lines = "\r\n".join(f"{name}: {value}" for name, value in HEADERS.items())
        writer.write(f"POST /v1/ingest HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode())
        writer.write(b"Content-Length: 1000\r\n\r\nRSF1")
        await writer.drain()
        writer.close()
        assert (await post(site)).status == 200

    at(tmp_path, visit)
    assert kept(tmp_path) == ALL


def test_what_does_not_fit_into_memory_waits_with_its_sender(tmp_path: Path) -> None:
    async def visit(site: Site) -> None:
        collector = site.collector
        with collector.reserve(256 * 2**20 - 100):
            answer = await post(site)
            assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
            assert (await site.api("runs")).status == 200
        assert collector.waiting_bytes == 0
        assert (await post(site)).status == 200

    at(tmp_path, visit)


def test_a_server_that_stops_says_so_on_connections_that_are_open(tmp_path: Path) -> None:
    async def visit(site: Site) -> None:
        site.collector.stop()
        answer = await post(site)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")

    at(tmp_path, visit)


def test_a_server_of_one_run_takes_no_other(tmp_path: Path) -> None:
    async def visit(site: Site) -> None:
        assert (await post(site)).status == 200
        other = await post(site, Rollscope_Run="other")
        assert (other.status, other.headers["Retry-After"]) == (409, "30")
        assert "'sent' only" in other.json["error"]
        asked = await site.ask("/v1/ingest")
        assert asked.json == {"rollscope": __version__, "run": "sent"}

    at(tmp_path / "sent", visit, is_single=True)
    assert kept(tmp_path) == ALL


def test_a_token_opens_the_door_whatever_name_a_sender_uses(tmp_path: Path) -> None:
    async def visit(site: Site) -> None:
        assert (await post(site, Host="head-node.cluster:7077")).status == 200
        assert (await site.ask("/v1/ingest")).json["run"] is None
        assert (await site.ask("/v1/ingest", bearer=None)).status == 401
        assert (await site.api("runs", Host="head-node.cluster:7077")).status == 403

    at(tmp_path, visit)


def test_without_a_token_other_sites_are_still_kept_out(tmp_path: Path) -> None:
    async def visit(site: Site) -> None:
        assert (await post(site, Authorization=None)).status == 200
        for harm in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
            assert (await post(site, Authorization=None, **harm)).status == 403

    at(tmp_path, visit, token=None)


def test_an_empty_request_reads_the_clock_and_makes_nothing(tmp_path: Path) -> None:
    async def visit(site: Site) -> None:
        answer = await post(site, b"", Rollscope_Clock="12345")
        assert (answer.status, answer.json["frames"]) == (200, 0)

    at(tmp_path, visit)
    assert os.listdir(tmp_path) == []


def test_many_senders_at_once_lose_nothing(tmp_path: Path) -> None:
    async def visit(site: Site) -> None:
        async def send(number: int) -> None:
            process = number.to_bytes(8, "big")
            header = make_header(host="far", pid=number)
            batches = [make_batch(0, process=process, header=header)]
            rows = [make_row(100 * number + at) for at in range(1, 6)]
            batches += [span_batch(at, row, process=process) for at, row in enumerate(rows, 1)]
            for frame in map(frame_of, batches):
                answer = await post(site, frame, Rollscope_Process=process.hex())
                assert answer.status == 200

        await asyncio.gather(*map(send, range(1, 21)))
        (listed,) = (await site.api("runs")).json["runs"]
        assert (await site.api("run/sent")).status == 200
        assert listed["name"] == "sent"
        (listed,) = (await site.api("runs")).json["runs"]
        assert listed["spans"] == 100

    at(tmp_path, visit)


def test_a_client_that_sends_garbage_instead_of_http_is_dropped(tmp_path: Path) -> None:
    async def visit(site: Site) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(os.urandom(200_000))
        assert b"400" in await reader.readline()
        writer.close()
        assert (await post(site)).status == 200

    at(tmp_path, visit)
