"""What is wanted of the page, and what its incumbents need for the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LIMITS", "Limit", "judged_rows"]

_ELSEWHERE: Final = "(measured elsewhere)"


class Limit(msgspec.Struct, frozen=True):
    """One row of the table."""

    what: str
    figure: str
    """Where it stands among the figures: keys with dots between."""
    unit: str
    limit: float | None
    """The most it may be, or the least; None for a figure that only explains others."""
    is_least: bool = False
    incumbent: str = ""


_FIRST: Final = (
    f"Perfetto UI 6.5 s; AReaL plotter, 20k bars: 16.7 s to make, 20 s to show {_ELSEWHERE}"
)
_FPS: Final = f"Perfetto UI 60 fps; AReaL plot 1.2 s a zoom {_ELSEWHERE}"
_LIVE: Final = f"XTuner viewer 4.4 MB every 2 s {_ELSEWHERE}"
_REPORT: Final = f"AReaL 8.8 MB for 20k bars {_ELSEWHERE}"

LIMITS: Final = (
    Limit("first frame, server warm", "warm.first_ms", "ms", 1_000, incumbent=_FIRST),
    Limit("first frame, server just started", "cold.first_ms", "ms", 1_000),
    Limit("every span in the page, warm", "warm.whole_ms", "ms", None),
    Limit("every span in the page, just started", "cold.whole_ms", "ms", None),
    Limit("Perfetto's page, first track, here", "perfetto.first_s", "s", None),
    Limit("... times our first frame, warm", "perfetto_x_first", "x", None),
    Limit("first frame, report", "report.first_ms", "ms", 1_000, incumbent=_FIRST),
    Limit("report, size", "report.mb", "MB", 6, incumbent=_REPORT),
    Limit("report, time to make", "report.make_s", "s", None),
    Limit("zoom and pan, median", "moving.fps_median", "fps", 45, True, _FPS),
    Limit("zoom and pan, p95 of a frame", "moving.frame_p95_ms", "ms", 50),
    Limit("... lanes in view", "moving.lanes", "", None),
    Limit("... painting, median", "moving.paint_median_ms", "ms", None),
    Limit("tab, beyond an empty one", "memory.tab_mb", "MB", 300),
    Limit("... held by scripts", "memory.heap_mb", "MB", None),
    Limit("app.js, gzipped", "app.js_gz_kib", "KiB", 80, incumbent=f"Phoenix 30 MB {_ELSEWHERE}"),
    Limit("app.js, minified", "app.js_kib", "KiB", 250),
    Limit("app.css, gzipped", "app.css_gz_kib", "KiB", 10),
    Limit("first page, all bytes", "first_page.kib", "KiB", 100),
    Limit(
        "server start to first page",
        "first_page.start_s",
        "s",
        1.5,
        incumbent=f"Phoenix 18 s, MLflow 38 s {_ELSEWHERE}",
    ),
    Limit("live, idle, page Now", "live.idle_now_kb_per_s", "KB/s", 5, incumbent=_LIVE),
    Limit("live, idle, page Timeline", "live.idle_timeline_kb_per_s", "KB/s", 5),
    Limit("live, busy, Timeline", "live.busy_bytes_per_record", "B/record", 30),
    Limit("... spans that then stood in the page", "live.busy_spans_shown_share", "x", None),
    Limit(
        "start of a span to its pixel, p95",
        "live.pixel_p95_s",
        "s",
        1,
        incumbent="never until it ends: OTLP-based tools, AReaL, RL-Insight",
    ),
    Limit("... p50", "live.pixel_p50_s", "s", None),
    Limit("2,000 hung coroutines, fresh await stack", "hanging.median_ms", "ms", 300),
    Limit("large run: tile, p95", "tiles.p95_ms", "ms", 100),
    Limit("... p50", "tiles.p50_ms", "ms", None),
    Limit("... spans", "tiles.spans", "", None),
    Limit("large run: tab", "large_memory.tab_mb", "MB", 300),
    Limit("large run: first frame, warm", "large.first_ms", "ms", None),
    Limit(
        "requests outside the origin",
        "foreign_requests",
        "",
        0,
        incumbent=f"AReaL and RL-Insight load from CDNs {_ELSEWHERE}",
    ),
)


def judged_rows(figures: Mapping[str, Any]) -> list[list[str]]:
    """Put each figure beside its limit; what was not measured is left out."""
    rows = []
    for limit in LIMITS:
        value = _find(figures, limit.figure)
        if value is None:
            continue
        rows.append(
            [
                limit.what,
                f"{value:,.{_places(value)}f} {limit.unit}".rstrip(),
                _wanted(limit),
                _verdict(limit, value),
                limit.incumbent,
            ]
        )
    return rows


def _find(figures: Mapping[str, Any], path: str) -> float | None:
    found: Any = figures
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found if found is None else float(found)


def _places(value: float) -> int:
    return 0 if value == int(value) or value >= 100 else 1 if value >= 10 else 2


def _wanted(limit: Limit) -> str:
    if limit.limit is None:
        return ""
    return f"{'>=' if limit.is_least else '<='} {limit.limit:,g} {limit.unit}".rstrip()


def _verdict(limit: Limit, value: float) -> str:
    if limit.limit is None:
        return ""
    is_met = value >= limit.limit if limit.is_least else value <= limit.limit
    return "met" if is_met else "MISSED"
