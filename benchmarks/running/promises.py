"""What Rollscope's runner promises against others measured in the same run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    Figures = Mapping[str, Mapping[str, float]]

__all__ = ["FIGURES", "Figure", "Verdict", "judge_all"]


class Figure(NamedTuple):
    """How a figure is called and shown."""

    title: str
    shown_as: str


FIGURES: Final = {
    "burst_per_s": Figure("no-op tasks/s, 20,000 at once", "{:,.0f}"),
    "window_per_s": Figure("no-op tasks/s, 1,024 outstanding", "{:,.0f}"),
    "idle_us": Figure("submit to result p50, idle, us", "{:,.1f}"),
    "busy_us": Figure("... one other task running, us", "{:,.1f}"),
    "parked_us": Figure("... 20,000 parked, us", "{:,.1f}"),
    "cpu_1k_us": Figure("CPU per task, 1,000 in flight, us", "{:,.1f}"),
    "cpu_10k_us": Figure("CPU per task, 10,000 in flight, us", "{:,.1f}"),
    "finish_to_caller_us": Figure("finish to caller p50, 10,000 in flight, us", "{:,.1f}"),
    "slots_2_of_20ms": Figure("slot use, 2 slots, 20 ms tasks", "{:.2%}"),
    "slots_4_of_100ms": Figure("slot use, 4 slots, 100 ms tasks", "{:.2%}"),
    "slots_64_of_100ms": Figure("slot use, 64 slots, 100 ms tasks", "{:.2%}"),
    "idle_cpu": Figure("CPU of a core, 20,000 parked", "{:.3%}"),
    "queued_bytes": Figure("memory per queued task, bytes", "{:,.0f}"),
    "parked_bytes": Figure("memory per parked task, bytes", "{:,.0f}"),
    "resume_us": Figure("resume to first start p50, us", "{:,.1f}"),
}


class _Promise(NamedTuple):
    figure: str
    rival: str | None
    """None: the figure itself is held against the limit."""
    limit: float
    is_least: bool = False
    """Whether the limit must be reached, not kept."""
    rival_figure: str | None = None
    """Another figure to compare with."""


_PROMISES: Final = [
    _Promise("burst_per_s", "bridge", 0.45, is_least=True),
    _Promise("burst_per_s", "AReaL", 1.5, is_least=True),
    _Promise("window_per_s", "bridge", 0.45, is_least=True),
    _Promise("window_per_s", "AReaL", 2.5, is_least=True),
    _Promise("idle_us", "bridge", 1.6),
    _Promise("idle_us", "AReaL", 1.0),
    _Promise("busy_us", "bridge", 2.0),
    _Promise("busy_us", "AReaL", 1 / 500),
    _Promise("parked_us", "ours", 1.2, rival_figure="idle_us"),
    _Promise("cpu_1k_us", "bridge", 1.5),
    _Promise("cpu_1k_us", "AReaL", 1 / 4),
    _Promise("cpu_10k_us", "bridge", 1.5),
    _Promise("cpu_10k_us", "AReaL", 1 / 4),
    _Promise("finish_to_caller_us", "bridge", 2.0),
    _Promise("finish_to_caller_us", "AReaL", 1 / 20),
    _Promise("slots_2_of_20ms", "task group", 0.995, is_least=True),
    _Promise("slots_4_of_100ms", "task group", 0.999, is_least=True),
    _Promise("slots_64_of_100ms", "task group", 0.999, is_least=True),
    _Promise("idle_cpu", None, 0.002),
    _Promise("idle_cpu", "AReaL", 1 / 100),
    _Promise("queued_bytes", None, 400),
    _Promise("queued_bytes", "AReaL", 1.3),
    _Promise("parked_bytes", "bridge", 1.6),
    _Promise("parked_bytes", None, 2_500),
    _Promise("parked_bytes", "AReaL", 1.1),
    _Promise("resume_us", None, 1_000),
    _Promise("resume_us", "AReaL", 1 / 200),
]


class Verdict(msgspec.Struct):
    """A promise, and whether it is kept here."""

    name: str
    value: float
    limit: float
    passed: bool


def judge_all(medians: Figures) -> list[Verdict]:
    """Judge each promise of which both sides were measured.

    Args:
        medians: Figures by subject.
    """
    judged = (_judge(promise, medians) for promise in _PROMISES)
    return [verdict for verdict in judged if verdict is not None]


def _judge(promise: _Promise, medians: Figures) -> Verdict | None:
    value = medians.get("ours", {}).get(promise.figure)
    if value is None:
        return None
    name = FIGURES[promise.figure].title
    if promise.rival is not None:
        other = promise.rival_figure or promise.figure
        rival = medians.get(promise.rival, {}).get(other)
        if not rival:
            return None
        value /= rival
        name += f", against {promise.rival}" + (", idle" if promise.rival_figure else "")
    passed = value >= promise.limit if promise.is_least else value <= promise.limit
    return Verdict(name, value, promise.limit, passed)
