"""Pages of a run that is being recorded: what they fetch, and how soon they show what happens."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from browsing.harness import launch, serve, wire_to
from browsing.opening import new_page
from browsing.programs import RUN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

__all__ = ["Program", "measure_hanging", "measure_living"]

T = TypeVar("T")

_HERE: Final = Path(__file__).resolve().parent.parent
_SETTLE_MS: Final = 3_000
_WATCH: Final = """() => {
    const canvas = document.querySelector(".tl-base");
    const seen = [];
    globalThis.rollscopeSeen = seen;
    const note = () => seen.push([
        performance.timeOrigin + performance.now(), Number(canvas.dataset.spans),
    ]);
    note();
    new MutationObserver(note).observe(canvas, { attributeFilter: ["data-spans"] });
}"""
_ASK: Final = """() => new Promise((done) => {
    const dialog = document.querySelector("[role=dialog]");
    const ask = [...dialog.querySelectorAll("button")].find((one) => /fresh/.test(one.textContent));
    const began = performance.now();
    const look = () => {
        if (dialog.querySelector(".fresh .awaits li") === null) requestAnimationFrame(look);
        else requestAnimationFrame(() => done(performance.now() - began));
    };
    ask.click();
    look();
})"""
_SPANS: Final = "() => Number(document.querySelector('.tl-base').dataset.spans)"
_STUCK: Final = "button[aria-label^='Await stack']"
_ASKS: Final = 7


class Program:
    """A program that records and takes orders."""

    def __init__(self, process: subprocess.Popen[str], run: Path) -> None:
        self._process = process
        self.run = run
        self.hear(str)

    def hear(self, kind: type[T]) -> T:
        """Wait for the next thing that it says."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the program ended")
        return msgspec.json.decode(line, type=kind)

    def tell(self, order: str) -> None:
        """Give an order."""
        assert self._process.stdin is not None
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()


@contextmanager
def _recording(name: str) -> Iterator[Program]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "browsing.programs", name, folder]
        with launch(command, cwd=_HERE) as process:
            yield Program(process, Path(folder, RUN))


def measure_living(browser: Browser, idle_s: float) -> dict[str, float]:
    """Watch a live run that is idle, then begins spans, then is busy."""
    found: dict[str, float] = {}
    with (
        _recording("live") as program,
        serve(program.run) as served,
        wire_to(served) as (wire, through),
    ):
        page = new_page(browser)
        page.goto(through.page(RUN, "timeline"))
        page.locator(".tl-base[data-whole=true]").wait_for()
        page.wait_for_timeout(_SETTLE_MS)
        found |= _pixel_times(page, program)
        before, spans = wire.sent, page.evaluate(_SPANS)
        program.tell("busy")
        recorded = program.hear(int)
        page.wait_for_timeout(1_000)
        found["busy_bytes_per_record"] = (wire.sent - before) / recorded
        found["busy_spans_shown_share"] = (page.evaluate(_SPANS) - spans) / recorded
        for name in ("timeline", "now"):
            page.goto(through.page(RUN, name))
            page.wait_for_timeout(_SETTLE_MS)
            before = wire.sent
            page.wait_for_timeout(idle_s * 1e3)
            found[f"idle_{name}_kb_per_s"] = (wire.sent - before) / idle_s / 1e3
        page.context.close()
    return found


def _pixel_times(page: Page, program: Program) -> dict[str, float]:
    """Give how long after its start a span is painted, while it is still open."""
    page.evaluate(_WATCH)
    program.tell("spans")
    began = program.hear(list[float])
    page.wait_for_timeout(500)
    seen = page.evaluate("() => globalThis.rollscopeSeen")
    first = seen[0][1]
    late = []
    for number, at_s in enumerate(began, start=1):
        shown = [at_ms for at_ms, spans in seen if spans >= first + number]
        if not shown:
            raise RuntimeError(f"span {number} was never painted")
        late.append(min(shown) / 1e3 - at_s)
    late.sort()
    return {
        "pixel_p50_s": late[len(late) // 2],
        "pixel_p95_s": late[int(0.95 * (len(late) - 1))],
        "pixel_spans": len(late),
    }


def measure_hanging(browser: Browser) -> dict[str, float]:
    """Let 2,000 coroutines hang; time from the click to a fresh await stack on the screen."""
    times = []
    with _recording("hang") as program, serve(program.run) as served:
        page = new_page(browser)
        page.goto(served.page(RUN, "now"))
        for _ in range(_ASKS):
            page.locator(_STUCK).first.click()
            page.get_by_role("dialog").wait_for()
            times.append(page.evaluate(_ASK))
            page.keyboard.press("Escape")
            page.get_by_role("dialog").wait_for(state="detached")
        page.context.close()
    return {"median_ms": statistics.median(times), "max_ms": max(times)}
