"""From results to the table, the targets and the JSON line."""

from __future__ import annotations

import os
import platform
import statistics
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overhead.measure import Result

__all__ = ["Report", "make_report", "print_report"]

_FLOOR: Final = "floor"
_RIVAL: Final = "opentelemetry"
_TITLE_WIDTH: Final = 43
_TARGET_WIDTH: Final = 48


class Timing(msgspec.Struct, frozen=True):
    """A figure over all its repetitions."""

    best: float
    median: float


class Row(msgspec.Struct, omit_defaults=True):
    """One subject in the table; times are CPU nanoseconds per span."""

    subject: str
    title: str
    caller_ns: Timing | None = None
    total_ns: Timing | None = None
    caller_x_floor: float | None = None
    caller_x_opentelemetry: float | None = None
    total_x_opentelemetry: float | None = None
    problem: str = ""


class Target(msgspec.Struct):
    """What Rollscope promises, and whether it keeps it here."""

    name: str
    value: float | None
    """None where a subject it needs was not measured."""
    limit: float
    unit: str
    passed: bool | None


class Report(msgspec.Struct):
    """Everything there is to say, as in the JSON line."""

    benchmark: str
    python: str
    cores: int
    load: float
    """Of the machine, over the last minute, when the benchmark had run."""
    rows: list[Row]
    figures: dict[str, Timing]
    """Whatever is not a time per span, as subject.name; the best is the lowest."""
    targets: list[Target]


def make_report(titles: Mapping[str, str], results: Mapping[str, Result]) -> Report:
    """Summarise.

    Args:
        titles: Subject to the title of its row, for those that have one.
        results: Subject to what was found.
    """
    rows = {subject: _row(subject, title, results[subject]) for subject, title in titles.items()}
    for row in rows.values():
        _compare(row, rows[_FLOOR], rows[_RIVAL])
    figures = {
        f"{subject}.{name}": Timing(min(values), statistics.median(values))
        for subject, result in results.items()
        for name, values in result.figures.items()
    }
    return Report(
        benchmark="overhead",
        python=platform.python_version(),
        cores=os.cpu_count() or 0,
        load=os.getloadavg()[0],
        rows=list(rows.values()),
        figures=figures,
        targets=_targets(rows, figures),
    )


def _row(subject: str, title: str, result: Result) -> Row:
    return Row(
        subject,
        title,
        caller_ns=_timing(result.caller_ns),
        total_ns=_timing(result.total_ns),
        problem=result.problem,
    )


def _timing(values: list[float]) -> Timing | None:
    return Timing(min(values), statistics.median(values)) if values else None


def _compare(row: Row, floor: Row, rival: Row) -> None:
    row.caller_x_floor = _ratio(row.caller_ns, floor.caller_ns)
    if row.subject != "session":  # four spans, not one
        row.caller_x_opentelemetry = _ratio(row.caller_ns, rival.caller_ns)
        row.total_x_opentelemetry = _ratio(row.total_ns, rival.total_ns)


def _ratio(timing: Timing | None, other: Timing | None) -> float | None:
    return timing.best / other.best if timing and other else None


def _targets(rows: Mapping[str, Row], figures: Mapping[str, Timing]) -> list[Target]:
    spans = rows["spans"]
    plain, traced = figures.get("loop_lag.lag_plain_ms"), figures.get("loop_lag.lag_traced_ms")
    lag_ratio = traced.median / plain.median if traced and plain else None
    return [
        _target("caller, per span", _best(spans.caller_ns), 1500, "ns"),
        _target("total, per span", _best(spans.total_ns), 2000, "ns"),
        _target("caller, against OpenTelemetry", spans.caller_x_opentelemetry, 0.1, "x"),
        _target("total, against OpenTelemetry", spans.total_x_opentelemetry, 0.1, "x"),
        _target("caller, session with three phases", _best(rows["session"].caller_ns), 8000, "ns"),
        _target("disabled, per span", _best(rows["disabled"].caller_ns), 300, "ns"),
        _target("event-loop lag p99 (medians), phases traced", lag_ratio, 1.2, "x"),
    ]


def _target(name: str, value: float | None, limit: float, unit: str) -> Target:
    return Target(name, value, limit, unit, None if value is None else value <= limit)


def _best(timing: Timing | None) -> float | None:
    return timing.best if timing else None


def print_report(report: Report) -> None:
    """Print the table, the other figures and the targets."""
    print(
        f"CPU ns per span, best of all repetitions (median); Python {report.python}, "
        f"{report.cores} cores, load {report.load:.1f}\n"
    )
    print(f"{'':{_TITLE_WIDTH}}{'caller':>16}{'total':>16}{'x floor':>9}{'x OpenTelemetry':>18}")
    print(f"{'':{_TITLE_WIDTH + 32}}{'caller':>9}{'caller':>9}{'total':>9}")
    for row in report.rows:
        print(f"{row.title:{_TITLE_WIDTH}}{row.problem or _cells(row)}")
    print()
    _print_figures(report.figures)
    print()
    for target in report.targets:
        _print_target(target)


def _cells(row: Row) -> str:
    return (
        f"{_show(row.caller_ns):>16}{_show(row.total_ns):>16}{_show_ratio(row.caller_x_floor):>9}"
        f"{_show_ratio(row.caller_x_opentelemetry):>9}{_show_ratio(row.total_x_opentelemetry):>9}"
    )


def _show(timing: Timing | None) -> str:
    return f"{timing.best:,.0f} ({timing.median:,.0f})" if timing else "-"


def _show_ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}" if ratio < 1 else f"{ratio:.1f}"


def _print_figures(figures: Mapping[str, Timing]) -> None:
    sentences = {
        "spans.disk_bytes": "bytes per span on disk: {0.median:.0f}",
        "areal.disk_bytes": "bytes per span on disk, AReaL: {0.median:.0f}",
        "memory.buffer_bytes": "bytes of memory per span until it is written: {0.median:.0f}",
        "opentelemetry.dropped": "spans dropped by OpenTelemetry: {0.median:.0f}",
        "loop_lag.lag_plain_ms": "event-loop lag p99, untraced: {0.best:.2f} ms ({0.median:.2f})",
        "loop_lag.lag_traced_ms": "event-loop lag p99, phases traced: "
        "{0.best:.2f} ms ({0.median:.2f})",
        "loop_lag.lag_heavy_ms": "event-loop lag p99, everything traced: "
        "{0.best:.2f} ms ({0.median:.2f})",
        "loop_lag.busy_plain": "busy meanwhile, untraced: {0.median:.0%} of one core",
        "loop_lag.busy_traced": "busy meanwhile, phases traced: {0.median:.0%} of one core",
        "loop_lag.busy_heavy": "busy meanwhile, everything traced: {0.median:.0%} of one core",
        "loop_lag.spans_per_s_traced": "phases recorded meanwhile: {0.median:,.0f} a second",
        "loop_lag.spans_per_s_heavy": "spans if everything is traced: {0.median:,.0f} a second",
    }
    for name, sentence in sentences.items():
        if name in figures:
            print(sentence.format(figures[name]))


def _print_target(target: Target) -> None:
    verdict = {True: "pass", False: "FAIL", None: "not measured"}[target.passed]
    digits = ",.0f" if target.unit == "ns" else ".3f"
    value = "-" if target.value is None else f"{target.value:{digits}}"
    print(f"{target.name:{_TARGET_WIDTH}}{value:>8} of {target.limit:g} {target.unit:3} {verdict}")
