"""How far behind the timeline is while spans keep coming at a rate, for as long as wanted."""

from __future__ import annotations

import itertools
import json
import struct
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ingesting.senders import native_requests, send_all

if TYPE_CHECKING:
    from ingesting.bodies import Native
    from ingesting.receivers import Receiver

__all__ = ["measure_sustained"]

_PATIENCE_S: Final = 120.0
_LOOK_S: Final = 0.25
"""The page asks again so long after an answer."""
_TILE: Final = "tile?by=host&width=1200&lanes=1024&overview=1000&silhouettes=1"


class _Look(NamedTuple):
    """One answer to the page."""

    at_s: float
    spans: int
    """How many the timeline knows of; 0 if the answer was an error."""


def measure_sustained(server: Receiver, native: Native, run: str, rate: int) -> dict[str, float]:
    """Send a run at a rate with its timeline open; say how far behind what is sent that is.

    A page shows an answer until the next one comes. How far behind it is then counts from when the
    last of the spans that it shows was due to be sent.
    """
    requests = native_requests(run, native.bodies)
    send_all(server.port, requests[:1])
    while _look(server, run).spans == 0:
        time.sleep(_LOOK_S)
    took: list[float] = []
    cpu_s, began_s = server.cpu_s(), time.perf_counter()
    bytes_per_s = native.size / native.spans * rate

    def send() -> None:
        took.append(send_all(server.port, requests[1:], bytes_per_s=bytes_per_s))

    sender = threading.Thread(target=send)
    sender.start()
    looks: list[_Look] = []
    while not looks or looks[-1].spans < native.spans:
        looks.append(_look(server, run))
        if looks[-1].at_s - began_s > native.spans / rate + _PATIENCE_S:
            raise RuntimeError("the timeline never has all of it")
        time.sleep(_LOOK_S)
    sender.join()
    ended_s = began_s + took[0]
    behind = [
        (after.at_s, after.at_s - began_s - look.spans / rate)
        for look, after in itertools.pairwise(looks)
    ]
    shown = max(look.spans for look in looks if look.at_s < ended_s)
    return {
        "seconds": took[0],
        "spans_per_s": native.spans / took[0],
        "behind_most_s": max(late for _, late in behind),
        "behind_end_s": took[0] - shown / rate,
        "all_after_s": looks[-1].at_s - ended_s,
        "answers": len(looks),
        "errors": sum(look.spans == 0 for look in looks),
        "spans_per_cpu_s": native.spans / (server.cpu_s() - cpu_s),
        "peak_mb": server.peak_mb(),
    }


def _look(server: Receiver, run: str) -> _Look:
    """Ask for what the timeline draws; gives how many spans it knows of."""
    status, body = server.ask(f"/api/v1/run/{run}/{_TILE}")
    at_s = time.perf_counter()
    if status != 200:
        return _Look(at_s, 0)
    (size,) = struct.unpack_from("<I", body, 4)
    header: dict[str, Any] = json.loads(body[8 : 8 + size])
    return _Look(at_s, int(header["total_spans"]))
