"""Sessions as pages: distributions, latency over time, and what each session did when.

Each page is one file: its data inside as JSON, drawn on a canvas by the script beside this module.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rollscope.integrations.areal.plotdata import (
    PlottedSession,
    assign_steps,
    read_sessions,
    session_files_first,
)
from rollscope.integrations.areal.reading import Skipped, find_files

if TYPE_CHECKING:
    import argparse

__all__ = ["plot"]

_PHASES: Final = ("generate", "reward", "toolcall")
_PAGE: Final = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
    '</head><body><script type="application/json" id="data">{data}</script>\n'
    "<script>{script}</script></body></html>\n"
)


def plot(options: argparse.Namespace) -> int:
    """Write the pages that the options ask for and print what they hold."""
    skipped = Skipped()
    found = session_files_first(find_files(options.input))
    sessions = read_sessions(found, skipped)
    if not sessions:
        sys.stderr.write(f"no session in {len(found)} files; {skipped}\n")
        return 1
    ends_s = assign_steps(sessions, max(options.consumer_batch_size, 1))
    for line in _summary(sessions, ends_s, skipped):
        sys.stdout.write(line + "\n")
    for path in _write_pages(options, sessions, ends_s):
        sys.stdout.write(f"wrote {path}\n")
    return 0


def _summary(sessions: list[PlottedSession], ends_s: list[float], skipped: Skipped) -> list[str]:
    counts = Counter(session.status for session in sessions)
    told = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    lines = [f"{len(sessions)} sessions: {told}; {skipped}"]
    zero = min(session.submit_s for session in sessions)
    sizes = Counter(session.step for session in sessions)
    numbers = sorted(step for step in sizes if step is not None)
    for number, end in zip(numbers, ends_s, strict=False):
        lines.append(f"  step {number}: ends at {end - zero:.3f} s, {sizes[number]} sessions")
    return lines if numbers else [*lines, "no steps can be told: too few accepted tasks"]


def _write_pages(
    options: argparse.Namespace, sessions: list[PlottedSession], ends_s: list[float]
) -> list[Path]:
    source = Path(options.input)
    folder = source if source.is_dir() else Path(find_files(options.input)[0]).parent
    overall = folder / "sessions-distribution-overall.html"
    steps = folder / "sessions-distribution-step.html"
    if options.output:
        overall = Path(options.output)
        steps = overall.with_name(f"{overall.stem}-step{overall.suffix}")
    zero = min(session.submit_s for session in sessions)
    rows = [_row(session, zero) for session in sessions]
    lines = [end - zero for end in ends_s]
    latency = overall.with_name("sessions-latency.html")
    _write(overall, "Durations of sessions", {"kind": "overall", "rows": rows})
    _write(steps, "Durations of sessions by step", {"kind": "step", "rows": rows})
    _write(latency, "Latency of sessions", {"kind": "latency", "rows": rows, "steps": lines})
    written = [overall, steps, latency]
    if options.enable_lifecycle:
        for who in sorted({session.who for session in sessions}):
            path = overall.with_name(f"sessions-lifecycle-{who}.html")
            chosen = _first_finalised([row for row in rows if row["who"] == who], options)
            data = {"kind": "lifecycle", "rows": chosen, "steps": lines}
            _write(path, f"Sessions of {who}", data)
            written.append(path)
    return written


def _first_finalised(rows: list[dict[str, Any]], options: argparse.Namespace) -> list[Any]:
    most = options.max_lifecycle_sessions
    ordered = sorted(rows, key=lambda row: (row["final"] is None, row["final"] or row["start"]))
    return ordered if most is None else ordered[: max(most, 0)]


def _row(session: PlottedSession, zero: float) -> dict[str, Any]:
    return {
        "who": session.who,
        "id": f"task {session.task_id}, session {session.session_id}",
        "status": session.status,
        "reason": session.reason,
        "step": session.step,
        "start": round(session.submit_s - zero, 6),
        "final": None if session.final_s is None else round(session.final_s - zero, 6),
        "total": session.total_s,
        "sums": {phase: session.sum_s(phase) for phase in _PHASES},
        "phases": {
            name: [[start - zero, None if end is None else end - zero] for start, end in parts]
            for name, parts in session.phases.items()
        },
    }


def _write(path: Path, title: str, data: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # No "<" in the data, so that nothing in it can end its element.
    text = json.dumps({"title": title, **data}).replace("<", "\\u003c")
    script = files(__package__ or "").joinpath("plot.js").read_text(encoding="utf-8")
    safe = title.replace("&", "&amp;").replace("<", "&lt;")
    page = _PAGE.replace("{title}", safe).replace("{script}", script).replace("{data}", text)
    path.write_text(page, encoding="utf-8")
