"""What is measured of receivers: how much they take, and how soon a page shows it."""

from __future__ import annotations

import json
import struct
import time
from typing import TYPE_CHECKING, Any, Final

from ingesting.bodies import Native, make_otlp
from ingesting.receivers import Receiver, rotel
from ingesting.senders import native_requests, otlp_requests, send_all

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["measure_native", "measure_otlp", "measure_page"]

_PATIENCE_S: Final = 60.0
_LOOK_S: Final = 0.05
_OTLP_SPANS: Final = 60_000
"""Of one round: enough for seconds of the limit."""


def measure_native(server: Receiver, native: Native, run: str, times: int) -> dict[str, float]:
    """Send a run, several times over under different names, as fast as it is taken."""
    requests = [
        request
        for number in range(times)
        for request in native_requests(f"{run}-{number}", native.bodies)
    ]
    cpu_s = server.cpu_s()
    took_s = send_all(server.port, requests)
    cpu_s = server.cpu_s() - cpu_s
    spans = times * native.spans
    return {
        "spans_per_s": spans / took_s,
        "spans_per_cpu_s": spans / cpu_s,
        "mb_per_s": times * native.size / took_s / 2**20,
        "cpu_share": cpu_s / took_s,
    }


def measure_page(server: Receiver, native: Native, run: str, rate: int) -> dict[str, float]:
    """Send a burst at a rate with the page open; say how long after it the page has all of it."""
    requests = native_requests(run, native.bodies)
    first, rest = requests[:1], requests[1:]
    send_all(server.port, first)
    # The page is open from the first frame on.
    _wait_until(lambda: server.overview(run) is not None, "the run is known")
    _total_of_tile(server, run)
    cpu_s = server.cpu_s()
    took_s = send_all(server.port, rest, bytes_per_s=native.size / native.spans * rate)
    overview_s, tile_s = _wait_for_page(server, run, native.spans)
    return {
        "burst_s": took_s,
        "spans_per_s": native.spans / took_s,
        "overview_s": overview_s,
        "tile_s": tile_s,
        "cpu_s": server.cpu_s() - cpu_s,
    }


def _wait_for_page(server: Receiver, run: str, spans: int) -> tuple[float, float]:
    """Give after how long the overview, and the timeline, know of so many spans."""
    began_s = time.perf_counter()
    known: dict[str, float] = {}

    def is_known() -> bool:
        for name, total in (("overview", _total_of_overview), ("tile", _total_of_tile)):
            if name not in known and total(server, run) >= spans:
                known[name] = time.perf_counter() - began_s
        return len(known) == 2

    _wait_until(is_known, "the page has all of it")
    return known["overview"], known["tile"]


def _total_of_overview(server: Receiver, run: str) -> int:
    overview = server.overview(run)
    return 0 if overview is None else int(overview["spans"])


def _total_of_tile(server: Receiver, run: str) -> int:
    """Ask for what the timeline would draw first; gives how many spans it knows of."""
    status, body = server.ask(f"/api/v1/run/{run}/tile?by=host&width=1024&lanes=32")
    if status != 200:
        return 0
    (size,) = struct.unpack_from("<I", body, 4)
    header: dict[str, Any] = json.loads(body[8 : 8 + size])
    return int(header["total_spans"])


def _wait_until(condition: Callable[[], bool], what: str) -> None:
    ends_at = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > ends_at:
            raise RuntimeError(f"never happened: {what}")
        time.sleep(_LOOK_S)


def measure_otlp(server: Receiver, spans: int) -> dict[str, float]:
    """Send the same requests to us and to rotel, in turn."""
    requests = otlp_requests(make_otlp(max(_OTLP_SPANS // spans, 4), spans))
    total = len(requests) * spans
    cpu_s = server.cpu_s()
    ours_s = send_all(server.port, requests)
    cpu_s = server.cpu_s() - cpu_s
    with rotel() as other:
        send_all(other.port, requests[:1])
        other_cpu_s = other.cpu_s()
        rotel_s = send_all(other.port, requests)
        other_cpu_s = other.cpu_s() - other_cpu_s
    return {
        "spans_per_s": total / ours_s,
        "spans_per_cpu_s": total / cpu_s,
        "rotel_spans_per_s": total / rotel_s,
        "of_rotel": rotel_s / ours_s,
        "rotel_spans_per_cpu_s": total / max(other_cpu_s, 0.01),
    }
