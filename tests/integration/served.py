"""A real server on a port of its own, and a client that talks to it."""

from __future__ import annotations

import gzip
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
from yarl import URL

from rollscope.server.access import Access
from rollscope.server.hub import Hub
from rollscope.server.library import Library
from rollscope.server.listening import Listening, bind
from rollscope.server.serving import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rollscope.collect.collector import Collector
    from rollscope.collect.scraping import ScrapeSettings

__all__ = ["TOKEN", "Answer", "Site", "next_event", "served"]

TOKEN = "a-token-that-only-tests-know"  # noqa: S105  (of servers that live for one test)


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Any
    body: bytes

    @property
    def text(self) -> str:
        is_packed = self.headers.get("Content-Encoding") == "gzip"
        return (gzip.decompress(self.body) if is_packed else self.body).decode()

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Site:
    """A running server as its callers see it."""

    def __init__(
        self, port: int, library: Library, collector: Collector, client: aiohttp.ClientSession
    ) -> None:
        self.port = port
        self.library = library
        self.collector = collector
        self.client = client
        self.url = f"http://127.0.0.1:{port}"

    async def ask(
        self, path: str, method: str = "GET", *, bearer: str | None = TOKEN, **headers: str
    ) -> Answer:
        """Send one request as it stands, encoded characters included."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if bearer is not None:
            sent["Authorization"] = f"Bearer {bearer}"
        url = URL(f"{self.url}{path}", encoded=True)
        async with self.client.request(
            method, url, headers=sent, allow_redirects=False
        ) as response:
            return Answer(response.status, response.headers, await response.read())

    async def api(self, path: str, **headers: str) -> Answer:
        return await self.ask(f"/api/v1/{path}", **headers)

    @asynccontextmanager
    async def events(self, query: str, **headers: str) -> AsyncIterator[aiohttp.StreamReader]:
        """Listen to the stream of events."""
        sent = {"Authorization": f"Bearer {TOKEN}"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.client.get(f"{self.url}/api/v1/events{query}", headers=sent) as response:
            assert response.status == 200
            assert response.headers["Content-Type"].startswith("text/event-stream")
            yield response.content


async def next_event(stream: aiohttp.StreamReader) -> dict[str, Any]:
    """Read on to the next event that says something."""
    event: dict[str, Any] = {}
    while True:
        line = (await stream.readline()).decode().rstrip("\n")
        if not line and "data" in event:
            return event
        name, _, value = line.partition(": ")
        if name == "data":
            event["data"] = json.loads(value)
        elif name:
            event[name] = value


@asynccontextmanager
async def served(
    place: Path,
    *,
    token: str | None = TOKEN,
    is_single: bool = False,
    hosts: tuple[str, ...] = (),
    scrape: ScrapeSettings | None = None,
    is_local: bool = False,
) -> AsyncIterator[Site]:
    """Serve a directory of runs, or a run, for the length of the block."""
    listening = bind("127.0.0.1", 0)
    port = listening.getsockname()[1]
    library = Library(place, Hub(), is_single=is_single, threads=1)
    access = Access(token=token, port=port, hosts=frozenset(hosts), is_local=is_local)
    timeout = aiohttp.ClientTimeout(total=60)
    async with (
        serving(library, access, Listening([listening]), scrape) as server,
        aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as client,
    ):
        yield Site(port, library, server.collector, client)
