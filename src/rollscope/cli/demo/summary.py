"""The demo's summary: what the run directory says, and nothing else."""

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import ceil
from pathlib import Path
from shutil import which

from rollscope.analysis.sessions import session_times
from rollscope.model.kinds import Kind, Status
from rollscope.model.records import SpanRecord
from rollscope.store.fold import Folded, read_run

__all__ = ["print_summary"]


def print_summary(run: Path) -> None:
    """Read a run back and print where its time went."""
    folded = read_run(run)
    size_kib = sum(file.stat().st_size for file in run.rglob("*") if file.is_file()) / 1024
    print(
        f"\nRead back from {run}: {len(folded.spans)} spans of {len(folded.processes)} processes, "
        f"{size_kib:.0f} KiB."
    )
    _print_steps(folded)
    _print_phases(folded)
    _print_slowest(folded)
    _print_open(folded)
    _print_failed(folded)
    _print_lost(folded)
    dropped = sum(sum(counts.values()) for counts in folded.drops.values())
    print(f"\nDropped records: {dropped}")
    for problem in folded.problems:
        print(f"Problem: {problem}")
    # As it was called: the environment of `make demo` is not on the path.
    command = "rollscope" if which("rollscope") else sys.argv[0]
    print(f"\nEvery record, as JSON lines:  {command} cat {run}")


def _print_steps(folded: Folded) -> None:
    rows = []
    for step in folded.of_kind(Kind.STEP):
        sessions = [s for s in folded.of_kind(Kind.SESSION) if s.step == step.step]
        outcomes: dict[str, int] = defaultdict(int)
        for session in sessions:
            outcomes[session.outcome or session.status] += 1
        listed = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
        rows.append((str(step.step), _seconds(step.duration_s), str(len(sessions)), listed))
    _print_table("Steps", ("step", "wall", "sessions", "outcomes"), rows)


def _print_phases(folded: Folded) -> None:
    durations: dict[str, list[float]] = defaultdict(list)
    for phase in folded.of_kind(Kind.PHASE):
        if phase.duration_s is not None and phase.status is not Status.LOST:
            detail = phase.attrs.get("tool")
            durations[f"{phase.name} {detail}" if detail else phase.name].append(phase.duration_s)
    rows = []
    for name, values in sorted(durations.items(), key=lambda item: -sum(item[1])):
        values.sort()
        ranks = (_seconds(_percentile(values, p)) for p in (0.5, 0.95, 0.99, 1.0))
        rows.append((name, str(len(values)), _seconds(sum(values)), *ranks))
    _print_table("Phases", ("phase", "count", "total", "p50", "p95", "p99", "max"), rows)


def _print_slowest(folded: Folded) -> None:
    """Show where the slowest finished sessions spent their time; the parts make the whole."""
    ended = [s for s in folded.of_kind(Kind.SESSION) if s.status is Status.OK]
    slowest = sorted(ended, key=lambda session: session.duration_s or 0.0)[-3:]
    rows = []
    for session in reversed(slowest):
        times = session_times(session, folded.spans.values())
        parts = [(name, phase.share_ns) for name, phase in times.phases.items()]
        parts.append(("other", times.other_ns))
        listed = ", ".join(f"{name} {_seconds(share / 1e9)}" for name, share in parts)
        rows.append((_session_name(session), _seconds(session.duration_s), listed))
    _print_table("Slowest sessions", ("session", "total", "of which"), rows)


def _print_open(folded: Folded) -> None:
    parents = {span.parent_id for span in folded.spans.values() if span.status is Status.OPEN}
    where = {stack.span_id: stack.frames for stack in folded.stacks}
    now_ns = max((span.end_ns or span.start_ns for span in folded.spans.values()), default=0)
    leaves = [
        span
        for span in folded.spans.values()
        if span.status is Status.OPEN and span.span_id not in parents
    ]
    rows = [
        (
            _session_name(span),
            f"{span.name} {span.attrs.get('tool', '')}".strip(),
            _seconds((now_ns - span.start_ns) / 1e9),
            " > ".join(_short(frame) for frame in where.get(span.span_id, [])[-2:]),
        )
        for span in leaves
    ]
    _print_table("Still running", ("session", "in", "for", "at"), rows)


def _print_failed(folded: Folded) -> None:
    failed = [s for s in folded.of_kind(Kind.SESSION) if s.status is Status.ERROR]
    rows = [(_session_name(s), s.outcome or "", s.reason or "") for s in failed]
    _print_table("Failed", ("session", "outcome", "reason"), rows)


def _print_lost(folded: Folded) -> None:
    lost = [s for s in folded.of_kind(Kind.SESSION) if s.status is Status.LOST]
    rows = []
    for session in lost:
        process = folded.processes[session.process]
        name = f"{process.role} {process.rank} (pid {process.pid})"
        rows.append((_session_name(session), name, session.reason or ""))
    _print_table("Lost", ("session", "process", "why"), rows)


def _print_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    lines = [heads, *rows]
    if len(lines) == 1:
        return
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    print(f"\n{title}")
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  " + "  ".join(cells).rstrip())


def _percentile(values: Sequence[float], share: float) -> float:
    """Give the nearest-rank percentile of sorted values."""
    return values[max(ceil(share * len(values)), 1) - 1]


def _session_name(span: SpanRecord) -> str:
    sample = "" if span.sample is None else f" sample {span.sample}"
    return f"{span.task_key or span.name}{sample}"


def _seconds(value: float | None) -> str:
    if value is None:
        return "running"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"


def _short(position: str) -> str:
    """Cut the folders off a position in the code."""
    path, _, function = position.partition(" ")
    return f"{path.rpartition('/')[2]} {function}".strip()
