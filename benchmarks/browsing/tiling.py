"""Tiles of a run that is too large for a page: how long the server takes for each."""

from __future__ import annotations

import http.client
import random
import statistics
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

if TYPE_CHECKING:
    from browsing.harness import Served

__all__ = ["measure_tiles"]

_SHARES: Final = (1.0, 0.5, 0.1, 0.01, 0.0001)
_LANES: Final = 64
_WIDTH: Final = 1_200


def measure_tiles(served: Served, run: str, windows: int) -> dict[str, Any]:
    """Ask for tiles of random windows, one after the other, over one connection."""
    address = urlsplit(served.url)
    server = http.client.HTTPConnection(address.hostname or "", address.port, timeout=180)
    base = f"/api/v1/run/{quote(run, safe='')}"
    overview = msgspec.json.decode(_fetch(server, f"{base}/answer/overview"))
    first_ns, last_ns = overview["first_ns"], overview["last_ns"]
    _fetch(server, f"{base}/tile?{urlencode({'lanes': 1, 'width': 100})}")  # builds the index
    source = random.Random(3)
    times, sizes = [], []
    for number in range(windows):
        share = _SHARES[number % len(_SHARES)]
        t0 = first_ns + int(source.random() * (1 - share) * (last_ns - first_ns))
        window = {
            "t0": t0,
            "t1": t0 + max(int(share * (last_ns - first_ns)), 1),
            "width": _WIDTH,
            "first": source.randrange(512),
            "lanes": _LANES,
        }
        began = time.perf_counter()
        body = _fetch(server, f"{base}/tile?{urlencode(window)}")
        times.append((time.perf_counter() - began) * 1e3)
        sizes.append(len(body))
    server.close()
    times.sort()
    return {
        "spans": overview["spans"],
        "p50_ms": statistics.median(times),
        "p95_ms": times[int(0.95 * (len(times) - 1))],
        "max_kb": max(sizes) / 1e3,
    }


def _fetch(server: http.client.HTTPConnection, path: str) -> bytes:
    server.request("GET", path, headers={"Accept-Encoding": "gzip"})
    answer = server.getresponse()
    body = answer.read()
    if answer.status != http.client.OK:
        raise RuntimeError(f"{path}: {answer.status} {body[:200]!r}")
    if answer.headers.get("Content-Encoding") == "gzip" and "/tile" not in path:
        import gzip

        return gzip.decompress(body)
    return body
