"""Opening a page: the first picture, what was fetched for it, what the tab then holds."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from browsing.harness import DESKTOP, serve, wait_for, wire_to

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from browsing.harness import Served

__all__ = [
    "first_page",
    "measure_cold",
    "measure_opening",
    "measure_report",
    "open_timeline",
    "tab_memory_mb",
]

_MARK: Final = "() => performance.getEntriesByName('rollscope-timeline-%s')[0]?.startTime"
_SPANS: Final = "() => Number(document.querySelector('.tl-base')?.dataset.spans ?? 0)"
_SETTLED: Final = (
    "() => document.querySelector('.tl-base')?.dataset.whole === 'true' "
    "|| document.querySelector('.tl-note') !== null"
)
_CONTENT: Final = (
    "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime "
    "&& performance.timeOrigin "
    "+ performance.getEntriesByName('first-contentful-paint')[0].startTime"
)


def new_page(browser: Browser) -> Page:
    """Open a tab that has seen nothing yet."""
    return browser.new_context(viewport=DESKTOP).new_page()


def open_timeline(page: Page, url: str) -> dict[str, float]:
    """Open a timeline; give when its first picture stood, and the one with every span.

    Of a run that is drawn from tiles the second is when that has been settled.
    """
    began_s = time.monotonic()
    page.goto(url)
    first_ms = wait_for(page, _MARK % "first")
    wait_for(page, _SETTLED)
    spans = wait_for(page, _SPANS)
    whole_ms = page.evaluate(_MARK % "whole")
    settled_ms = whole_ms or (time.monotonic() - began_s) * 1e3
    return {"first_ms": first_ms, "whole_ms": settled_ms, "spans": spans}


def measure_opening(browser: Browser, served: Served, run: str, repeats: int) -> dict[str, Any]:
    """Open the timeline of a run that the server knows, each time in a new tab."""
    url = served.page(run, "timeline")
    foreign: list[str] = []
    found = []
    for _ in range(repeats):
        page = new_page(browser)
        page.on("request", lambda asked: _note_foreign(asked.url, served.url, foreign))
        found.append(open_timeline(page, url))
        page.context.close()
    return {
        "first_ms": statistics.median(one["first_ms"] for one in found),
        "whole_ms": statistics.median(one["whole_ms"] for one in found),
        "spans": found[0]["spans"],
        "foreign_requests": len(foreign),
    }


def _note_foreign(url: str, origin: str, into: list[str]) -> None:
    if not url.startswith((origin, "data:", "blob:")):
        into.append(url)


def measure_cold(browser: Browser, run: Path, repeats: int) -> dict[str, float]:
    """Open the timeline the moment a server is up, with nothing read or built before."""
    found = []
    for _ in range(repeats):
        with serve(run) as served:
            page = new_page(browser)
            found.append(open_timeline(page, served.page(run.name, "timeline")))
            page.context.close()
    return {
        "first_ms": statistics.median(one["first_ms"] for one in found),
        "whole_ms": statistics.median(one["whole_ms"] for one in found),
    }


def first_page(browser: Browser, run: Path, repeats: int) -> dict[str, float]:
    """Start a server; give seconds until its home page shows content, and the bytes it took."""
    seconds, sizes = [], []
    for _ in range(repeats):
        with serve(run) as served, wire_to(served) as (wire, through):
            page = new_page(browser)
            page.goto(through.url)
            seconds.append(wait_for(page, _CONTENT) / 1e3 - served.began_s)
            page.wait_for_load_state("load")
            page.wait_for_timeout(1500)
            sizes.append(wire.sent)
            page.context.close()
    return {"start_s": statistics.median(seconds), "kib": statistics.median(sizes) / 1024}


def measure_report(browser: Browser, report: Path, repeats: int) -> dict[str, Any]:
    """Open a report from disk at its timeline; nothing but the file may be asked for."""
    foreign: list[str] = []
    found = []
    for _ in range(repeats):
        page = new_page(browser)
        page.on("request", lambda asked: _note_foreign(asked.url, "file:", foreign))
        page.goto(report.as_uri())
        wait_for(page, "() => location.hash.split('/').length > 1")
        run = page.evaluate("() => location.hash.split('/')[1]")
        page.goto("about:blank")
        found.append(open_timeline(page, f"{report.as_uri()}#/{run}/timeline"))
        page.context.close()
    return {
        "first_ms": statistics.median(one["first_ms"] for one in found),
        "spans": found[0]["spans"],
        "foreign_requests": len(foreign),
    }


def tab_memory_mb(browser: Browser, url: str) -> dict[str, float]:
    """Give the memory of a tab with a timeline: beyond an empty one's, and what scripts hold."""
    page = new_page(browser)
    before = _renderers_mb(browser)
    open_timeline(page, url)
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = session.send("Performance.getMetrics")["metrics"]
    heap = {one["name"]: one["value"] for one in metrics}
    found = {
        "tab_mb": _renderers_mb(browser) - before,
        "heap_mb": heap["JSHeapUsedSize"] / 1e6,
    }
    page.context.close()
    return found


def _renderers_mb(browser: Browser) -> float:
    """Add up what the processes of all tabs hold, shared pages by their share."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
    tabs = [one["id"] for one in processes["processInfo"] if one["type"] == "renderer"]
    return sum(_share_mb(int(one)) for one in tabs)


def _share_mb(process: int) -> float:
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    (line,) = (one for one in rollup.splitlines() if one.startswith("Pss:"))
    return int(line.split()[1]) / 1024
