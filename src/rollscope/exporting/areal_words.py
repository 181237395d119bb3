"""One session in AReaL's words: keys, their order and what is left out are AReaL's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rollscope.model.kinds import Outcome, Status
from rollscope.model.refs import span_hex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollscope.exporting.areal import ArealPhase, ArealSession

__all__ = ["record_of", "role_of"]

_TIMED: Final = ("generate", "reward", "toolcall")
"""Phases that come first, in AReaL's order; their sums have a key of their own."""
_NO_COUNTERS: Final = frozenset(
    ("session_id", "consumed_step", "step", "version", "attempt", "branch", "group", "pid", "tid")
)
_PENDING: Final = "pending"
_MOST: Final = 2**53
"""Ids that every reader of JSON can hold."""
_read: Final = msgspec.json.Decoder(dict[str, Any]).decode


def role_of(session: ArealSession) -> str | None:
    """Give the role; None for what an AReaL without roles has written."""
    is_nameless = session.lane is not None and session.lane in (f"r{session.rank}", "r?")
    return None if is_nameless else session.role or None


def record_of(
    session: ArealSession, phases: Sequence[ArealPhase], run: str, *, strict: bool
) -> bytes:
    """Give the line of a session, its end included.

    Args:
        session: The session.
        phases: Its phases by start.
        run: What the run is called.
        strict: Only keys that AReaL writes itself.
    """
    attrs = _read(session.attrs) if session.attrs else {}
    status, reason = _verdict(session, attrs)
    line: dict[str, Any] = {
        "task_id": _task_id(session),
        "session_id": _session_id(session, attrs),
        "rank": session.rank or 0,
        "role": role_of(session),
        "status": status,
        "reason": reason,
        "submit_ts": _seconds(session.start_ns),
    }
    judged_ns = None if status == _PENDING else session.verdict_ns or session.end_ns
    line["finalized_ts"] = _seconds(judged_ns)
    sums = _sums(phases)
    if judged_ns is not None:
        sums["total_s"] = (judged_ns - session.start_ns) / 1e9
    for name in ("total_s", *(f"{name}_s" for name in _TIMED)):
        given = attrs.get(f"source_{name}")
        line[name] = given if isinstance(given, int | float) else sums.get(name)
    line["phases"] = _intervals(phases) or None
    line["counters"] = _counters(session, attrs) or None
    if not strict:
        line |= _extras(session, attrs, run)
    kept = {key: value for key, value in line.items() if value is not None}
    return (json.dumps(kept, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _is_areals(session: ArealSession, attrs: dict[str, Any]) -> bool:
    """Say whether AReaL wrote it, or a program that believes it does; others have other words."""
    number = "?" if session.rank is None else session.rank
    lanes = (f"r{number}", f"{session.role}-r{number}")
    return session.lane in lanes or type(attrs.get("session_id")) is int


def _verdict(session: ArealSession, attrs: dict[str, Any]) -> tuple[str, str | None]:
    source = attrs.get("source_status")
    if isinstance(source, str) and _is_areals(session, attrs):
        reason = attrs.get("source_reason")
        return source, reason if isinstance(reason, str) else None
    if session.status in (Status.OPEN, Status.LOST) and session.outcome is None:
        return _PENDING, None
    outcome = session.outcome or _OUTCOMES.get(session.status, Outcome.ACCEPTED)
    reason = session.reason
    if outcome == Outcome.REJECTED:
        return "rejected", "rejected" if reason in (None, "filtered") else reason
    if outcome == Outcome.FAILED:
        return "failed", "workflow_exception"
    if outcome in (Outcome.TIMEOUT, Outcome.CANCELLED):
        return "failed", reason or str(outcome)
    return str(outcome), reason


_OUTCOMES: Final[dict[str, Outcome]] = {
    Status.ERROR: Outcome.FAILED,
    Status.CANCELLED: Outcome.CANCELLED,
}
"""What a status comes to where there is no verdict; all else was accepted."""


def _whole(text: object) -> int | None:
    """Read an id that is a number already."""
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    if isinstance(text, str) and text.removeprefix("-").isdecimal() and text.isascii():
        return int(text) if len(text) < 19 else None
    return None


def _task_id(session: ArealSession) -> int:
    """Give the number of a task; one that is named by text comes again in other steps."""
    number = _whole(session.task_key)
    return int.from_bytes(session.trace_id) % _MOST if number is None else number


def _session_id(session: ArealSession, attrs: dict[str, Any]) -> int:
    number = _whole(attrs.get("session_id"))
    return session.session_id % _MOST if number is None else number


def _source_id(session: ArealSession, attrs: dict[str, Any]) -> str | None:
    """Name the session as `rollscope show` takes it, if its ids had to be replaced by numbers."""
    known = attrs.get("session_id")
    if _whole(session.task_key) is not None and _whole(known) is not None:
        return None
    if session.task_key is None or session.sample is None:
        return known if isinstance(known, str) else span_hex(session.session_id)
    return f"{session.task_key}#{session.sample}"


def _extras(session: ArealSession, attrs: dict[str, Any], run: str) -> dict[str, Any]:
    message = session.error_message
    return {
        "run_id": run,
        "ended_ts": _seconds(session.end_ns),
        "global_step": session.step,
        "version_start": session.version_start,
        "version_end": session.version_end,
        "error": None if message == session.reason else message,  # a mere code says no more
        "source_id": _source_id(session, attrs),
    }


def _seconds(time_ns: int | None) -> float | None:
    """Write a time as `time.time` gives it, by its digits: a float of nanoseconds would round."""
    if time_ns is None:
        return None
    whole, rest = divmod(time_ns, 10**9)
    return round(float(f"{whole}.{rest:09d}"), 7)


def _sums(phases: Sequence[ArealPhase]) -> dict[str, float]:
    sums: dict[str, int] = {}
    for phase in phases:
        if phase.name in _TIMED and phase.end_ns is not None:
            length_ns = _end_ns(phase, phase.end_ns) - phase.start_ns
            sums[f"{phase.name}_s"] = sums.get(f"{phase.name}_s", 0) + length_ns
    return {name: total_ns / 1e9 for name, total_ns in sums.items()}


def _intervals(phases: Sequence[ArealPhase]) -> dict[str, list[dict[str, float | None]]]:
    found: dict[str, list[dict[str, float | None]]] = {name: [] for name in _TIMED}
    for phase in phases:
        end_ns = None if phase.end_ns is None else _end_ns(phase, phase.end_ns)
        times = {"start_ts": _seconds(phase.start_ns), "end_ts": _seconds(end_ns)}
        found.setdefault(phase.name, []).append(times)
    return {name: times for name, times in found.items() if times}


def _end_ns(phase: ArealPhase, end_ns: int) -> int:
    """Give the end as it was recorded, also where it was before the start."""
    if phase.attrs and '"source_end_ns"' in phase.attrs:
        recorded = _read(phase.attrs).get("source_end_ns")
        return recorded if isinstance(recorded, int) else end_ns
    return end_ns


def _counters(session: ArealSession, attrs: dict[str, Any]) -> dict[str, int]:
    """Give whole numbers that the session was told; its turns and tokens, if by its phases."""
    counters = {
        _CALLED.get(name, name): value
        for name, value in attrs.items()
        if type(value) is int
        and name not in _NO_COUNTERS
        and not name.startswith("source_")
        and not name.endswith("_ns")
    }
    told = {"turns": session.turns, "output_tokens": session.tokens_out}
    for name, value in told.items():
        if value:
            counters.setdefault(name, value)
    return counters


_CALLED: Final = {"tokens_out": "output_tokens", "tokens_in": "input_tokens"}
