"""What is known of one session, and the line that AReaL's tools read it from."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rollscope.instrument.spans import Session, Span

__all__ = ["Anchor", "Interval", "SessionRecord", "Task", "Verdict", "read_verdict"]

_TIMED: Final = ("generate", "reward", "toolcall")
"""Phases whose sums have a key of their own."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """Ties a monotonic clock to the wall clock."""

    mono_ns: int
    wall_ns: int

    def wall_s(self, mono_ns: int) -> float:
        """Give a moment as `time.time` would."""
        return round((self.wall_ns + mono_ns - self.mono_ns) / 1e9, 7)


@dataclass(slots=True, eq=False)
class Interval:
    """One time that a phase was in."""

    start_ns: int
    end_ns: int | None = None
    span: Span | None = None
    by_mark: bool = False
    """Whether it was opened by a `mark_…_start`, which names no interval for the end to find."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a session or a whole task was judged to be."""

    status: str | None
    reason: str | None
    at_ns: int
    of_task: bool
    extra: dict[str, Any]


def read_verdict(payload: dict[str, Any], *, of_task: bool) -> Verdict:
    """Make a verdict, of now, of what came with `mark_finalized`."""
    given = dict(payload)
    status, reason = given.pop("status", None), given.pop("reason", None)
    if status is not None:
        status = str(getattr(status, "value", status))
    if reason is not None:
        reason = str(getattr(reason, "value", reason))
    return Verdict(status, reason, perf_counter_ns(), of_task, given)


@dataclass(slots=True, eq=False)
class Task:
    """One data item and those of its sessions that can still be told about."""

    span: Span | None
    """Entered with its first session, unless all are guests of another's."""
    registered_ns: int
    sessions: dict[int, SessionRecord] = field(default_factory=dict)
    samples: int = 0
    running: int = 0
    """Sessions without a verdict or without an end."""
    verdict: Verdict | None = None
    has_failed_session: bool = False
    is_closed: bool = False


@dataclass(slots=True, eq=False)
class SessionRecord:
    """One session."""

    task_id: int
    session_id: int
    rank: int
    role: str | None
    submit_ns: int
    task: Task
    span: Session | None = None
    is_guest: bool = False
    """Whether `span` is the session that somebody else has opened around it, as a runner does."""
    status: str = "pending"
    reason: str | None = None
    verdict: Verdict | None = None
    phases: dict[str, list[Interval]] = field(default_factory=dict)
    counters: dict[str, Any] = field(default_factory=dict)
    open_phases: int = 0
    calls: int = 0
    """Calls of a function under `session_context` that run for it."""
    had_call: bool = False
    own_error: bool = False
    ended_ns: int | None = None
    is_settled: bool = False
    """Whether it has its verdict and its end, and the task was told."""
    is_final_written: bool = False
    is_dirty: bool = True
    """Whether it has changed since its last line."""

    @property
    def is_running(self) -> bool:
        """Say whether more is to come by itself."""
        return self.calls > 0 or self.open_phases > 0

    def last_end_ns(self) -> int | None:
        """Give the end of its last phase."""
        ends = [part.end_ns for parts in self.phases.values() for part in parts if part.end_ns]
        return max(ends, default=None)

    def as_line(self, anchor: Anchor) -> dict[str, Any]:
        """Give the session as a line holds it: keys, order and omissions are AReaL's."""
        line: dict[str, Any] = {
            "task_id": self.task_id,
            "session_id": self.session_id,
            "rank": self.rank,
        }
        if self.role is not None:
            line["role"] = self.role
        line["status"] = self.status
        if self.reason is not None:
            line["reason"] = self.reason
        line["submit_ts"] = anchor.wall_s(self.submit_ns)
        if self.verdict is not None:
            line["finalized_ts"] = anchor.wall_s(self.verdict.at_ns)
            line["total_s"] = (self.verdict.at_ns - self.submit_ns) / 1e9
        line |= self._sums()
        if self.phases:
            line["phases"] = {
                name: [_as_times(part, anchor) for part in parts]
                for name, parts in sorted(self.phases.items(), key=_phase_order)
            }
        counters = {name: value for name, value in self.counters.items() if value}
        if counters:
            line["counters"] = counters
        return line

    def _sums(self) -> dict[str, float]:
        sums: dict[str, float] = {}
        for name in _TIMED:
            closed = [
                part.end_ns - part.start_ns
                for part in self.phases.get(name, ())
                if part.end_ns is not None
            ]
            if closed:
                sums[f"{name}_s"] = sum(closed) / 1e9
        return sums


def _phase_order(item: tuple[str, Any]) -> int:
    """Put the phases that AReaL knows first, in its order; others as they came."""
    return _TIMED.index(item[0]) if item[0] in _TIMED else len(_TIMED)


def _as_times(part: Interval, anchor: Anchor) -> dict[str, float | None]:
    end_s = None if part.end_ns is None else anchor.wall_s(part.end_ns)
    return {"start_ts": anchor.wall_s(part.start_ns), "end_ts": end_s}
