"""What is wanted of collection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LIMITS", "Limit", "judged_rows"]


class Limit(NamedTuple):
    """One row of the table."""

    what: str
    part: str
    figure: str
    unit: str = ""
    least: float | None = None
    most: float | None = None
    """Neither: the figure only explains others."""


_RATE: Final = "spans/s"
_CPU: Final = "spans per s of its CPU"

LIMITS: Final = (
    Limit("native, accepted and durable", "native", "spans_per_s", _RATE, least=300_000),
    Limit("... of the server", "native", "spans_per_cpu_s", _CPU),
    Limit("... bytes of bodies", "native", "mb_per_s", "MiB/s"),
    Limit("... share of the server's core", "native", "cpu_share", "x"),
    Limit("burst with the page open", "page", "spans_per_s", _RATE, least=290_000),
    Limit("... its length", "page", "burst_s", "s"),
    Limit("... then until the overview has it", "page", "overview_s", "s", most=2),
    Limit("... and the timeline", "page", "tile_s", "s", most=2),
    Limit("... CPU of the server till then", "page", "cpu_s", "s"),
    Limit("server, most memory", "page", "peak_mb", "MiB", most=1024),
    Limit("at a rate, with the timeline open", "sustained", "spans_per_s", _RATE),
    Limit("... for", "sustained", "seconds", "s"),
    Limit("... timeline behind, at most", "sustained", "behind_most_s", "s", most=2),
    Limit("... behind at the end", "sustained", "behind_end_s", "s", most=2),
    Limit("... then until it has all", "sustained", "all_after_s", "s", most=2),
    Limit("... answers to the page", "sustained", "answers", ""),
    Limit("... errors among them", "sustained", "errors", "", most=0),
    Limit("... of the server", "sustained", "spans_per_cpu_s", _CPU),
    Limit("... its most memory", "sustained", "peak_mb", "MiB", most=1024),
    Limit("OTLP protobuf, requests of 512", "otlp_512", "spans_per_s", _RATE, least=20_000),
    Limit("... of the server", "otlp_512", "spans_per_cpu_s", _CPU),
    Limit("... rotel, which keeps nothing", "otlp_512", "rotel_spans_per_s", _RATE),
    Limit("... ours by rotel's", "otlp_512", "of_rotel", "x"),
    Limit("OTLP protobuf, requests of 5,000", "otlp_5000", "spans_per_s", _RATE, least=20_000),
    Limit("... of the server", "otlp_5000", "spans_per_cpu_s", _CPU),
    Limit("... rotel, which keeps nothing", "otlp_5000", "rotel_spans_per_s", _RATE),
    Limit("... ours by rotel's", "otlp_5000", "of_rotel", "x"),
    Limit("Ray hub, 4 workers, kept", "hub", "spans_per_s", _RATE, least=200_000),
    Limit("... recorded meanwhile", "hub", "recorded_spans_per_s", _RATE),
    Limit("... of the hub", "hub", "hub_spans_per_cpu_s", _CPU),
    Limit("... the hub, most memory", "hub", "hub_peak_mb", "MiB"),
    Limit("caller, into a file", "caller", "file_beside_http_caller_ns", "ns"),
    Limit("caller, over HTTP", "caller", "http_caller_ns", "ns"),
    Limit("... HTTP by file, turn by turn", "caller", "http_x_file", "x", most=1.05),
    Limit("... file by file, in the same turns", "caller", "file_x_file_beside_http", "x"),
    Limit("caller, into a file, in a process of Ray", "caller", "file_beside_ray_caller_ns", "ns"),
    Limit("caller, over Ray", "caller", "ray_caller_ns", "ns"),
    Limit("... Ray by file, turn by turn", "caller", "ray_x_file", "x", most=1.05),
    Limit("... file by file, in the same turns", "caller", "file_x_file_beside_ray", "x"),
    Limit("whole process, into a file", "caller", "file_beside_http_total_ns", "ns"),
    Limit("whole process, over HTTP", "caller", "http_total_ns", "ns"),
    Limit("whole process, into a file, of Ray", "caller", "file_beside_ray_total_ns", "ns"),
    Limit("whole process, over Ray", "caller", "ray_total_ns", "ns"),
)


def judged_rows(figures: Mapping[str, Mapping[str, float]]) -> list[list[str]]:
    """Put each figure beside its limit; what was not measured is left out."""
    rows = []
    for limit in LIMITS:
        value = figures.get(limit.part, {}).get(limit.figure)
        if value is not None:
            places = 0 if value >= 100 else 1 if value >= 10 else 2
            shown = f"{value:,.{places}f} {limit.unit}"
            rows.append([limit.what, shown, _wanted(limit), _verdict(limit, value)])
    return rows


def _wanted(limit: Limit) -> str:
    if limit.least is not None:
        return f">= {limit.least:,g}"
    return "" if limit.most is None else f"<= {limit.most:,g}"


def _verdict(limit: Limit, value: float) -> str:
    if limit.least is None and limit.most is None:
        return ""
    is_met = value >= limit.least if limit.least is not None else value <= (limit.most or 0.0)
    return "met" if is_met else "MISSED"
