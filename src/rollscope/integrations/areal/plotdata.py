"""Sessions read for plotting: the latest line of each, their lives apart, their steps told."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rollscope.integrations.areal.reading import Skipped, read_objects
from rollscope.integrations.wholes import whole

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["PlottedSession", "assign_steps", "read_sessions", "session_files_first"]


@dataclass(slots=True)
class PlottedSession:
    """One session."""

    who: str
    """Rank, with the role before it."""
    task_id: Any
    session_id: Any
    status: str
    reason: str
    submit_s: float
    final_s: float | None
    phases: dict[str, list[tuple[float, float | None]]]
    step: int | None = None
    is_step_told: bool = False
    """Whether the line itself names the step."""

    @property
    def total_s(self) -> float | None:
        """From its start to its verdict."""
        return None if self.final_s is None else max(self.final_s - self.submit_s, 0.0)

    def sum_s(self, phase: str) -> float | None:
        """Give the sum of a phase's closed times."""
        closed = [end - start for start, end in self.phases.get(phase, ()) if end is not None]
        return sum(closed) if closed else None


def read_sessions(files: Iterable[Path], skipped: Skipped) -> list[PlottedSession]:
    """Read sessions; of several lines of one session the last counts, a new life is another."""
    latest: dict[tuple[str, str, str, float], PlottedSession] = {}
    for path in files:
        for line in read_objects(path, skipped):
            session = _session(line)
            if session is None:
                skipped.other += 1
                continue
            key = (str(path), session.who, str(session.session_id), session.submit_s)
            latest[key] = session
    return sorted(latest.values(), key=lambda session: (session.submit_s, session.who))


def session_files_first(files: list[Path]) -> list[Path]:
    """Leave perf files out by their name, where there are others."""
    others = [file for file in files if not os.path.basename(file).startswith("traces")]
    return others or files


def _session(line: dict[str, Any]) -> PlottedSession | None:
    submit = _number(line.get("submit_ts"))
    if submit is None:
        return None
    rank, role = line.get("rank"), line.get("role")
    who = "r?" if rank is None else f"r{rank}"
    session_id = line.get("session_id", line.get("request_id"))
    step = whole(line.get("global_step"))
    return PlottedSession(
        f"{role}-{who}" if role else who,
        line.get("task_id", session_id),
        session_id,
        str(line.get("status", "pending")),
        str(line.get("reason") or ""),
        submit,
        _number(line.get("finalized_ts")),
        _phases(line.get("phases")),
        step,
        step is not None,
    )


def _phases(given: object) -> dict[str, list[tuple[float, float | None]]]:
    found: dict[str, list[tuple[float, float | None]]] = {}
    for name, parts in given.items() if isinstance(given, dict) else ():
        for part in parts if isinstance(parts, list) else ():
            start = _number(part.get("start_ts")) if isinstance(part, dict) else None
            if start is not None:
                found.setdefault(str(name), []).append((start, _number(part.get("end_ts"))))
    return found


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def assign_steps(sessions: list[PlottedSession], batch_size: int) -> list[float]:
    """Tell which step took each session, if the lines do not, and give the ends of the steps.

    A step takes as many accepted tasks of each rank as fall to it; it ends when the last rank is
    there. A session belongs to the first step that ends after its verdict.
    """
    told = [session for session in sessions if session.is_step_told and session.final_s is not None]
    if told:
        ends: dict[int, float] = {}
        for session in told:
            number, end = session.step or 0, session.final_s or 0.0
            ends[number] = max(ends.get(number, end), end)
        return [ends[number] for number in sorted(ends)]
    verdicts: dict[str, dict[str, float]] = {}
    for session in sessions:
        if session.status == "accepted" and session.final_s is not None:
            tasks = verdicts.setdefault(session.who, {})
            task = str(session.task_id)
            tasks[task] = max(tasks.get(task, 0.0), session.final_s)
    if not verdicts:
        return []
    share = max(batch_size // len(verdicts), 1)
    per_rank = [sorted(tasks.values())[share - 1 :: share] for tasks in verdicts.values()]
    ends_s = [max(moments) for moments in zip(*per_rank, strict=False)]
    for session in sessions:
        if session.final_s is not None:
            later = (n for n, end in enumerate(ends_s) if session.final_s <= end)
            session.step = next(later, None)
    return ends_s
