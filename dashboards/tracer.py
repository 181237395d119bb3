"""Tracer health: whether what is shown can be trusted, and what the showing costs."""

from typing import Final

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import Dashboard, Panel

from dashboards.frame import Section, framed
from dashboards.palette import BAD, WARN
from dashboards.panels import lines, number
from dashboards.queries import RUNS, Query, of_run

__all__ = ["tracer"]

_OURS: Final = 'job="rollscope"'


def tracer() -> Dashboard:
    """Make the dashboard."""
    return framed(
        "rollscope-tracer",
        "tracer health",
        "Whether what is shown can be trusted, and what the showing costs.",
        Section("Now", _numbers()),
        Section("Recording", _recording()),
        Section("Showing", _showing()),
    )


def _numbers() -> list[Builder[Panel]]:
    return [
        number(
            "Server",
            "1 while the server of Rollscope answers Prometheus.",
            "none",
            Query(f"up{{{_OURS}}}", "{{instance}}"),
            width=6,
        ),
        number(
            "Dropped",
            "Records that processes had to drop, in all.",
            "short",
            Query(f"sum by (run) (rollscope_dropped_records_total{{{RUNS}}})"),
            width=6,
            page="health",
            limits=[(1, BAD)],
        ),
        number(
            "Refused",
            "Calls of metrics that were refused, in all: the program's log says why.",
            "short",
            Query(f"sum by (run) (rollscope_metric_refusals_total{{{RUNS}}})"),
            width=6,
            page="health",
            limits=[(1, WARN)],
        ),
        number(
            "Heard",
            "How long ago the newest record was written. Processes write every few seconds.",
            "s",
            Query(f"max by (run) (rollscope_newest_record_age_seconds{{{RUNS}}})"),
            width=6,
            page="health",
            limits=[(30, WARN), (120, BAD)],
        ),
    ]


def _recording() -> list[Builder[Panel]]:
    return [
        lines(
            "Dropped records",
            "Records that processes had to drop in five minutes, by kind and reason. What is shown"
            " of this time is not whole.",
            "short",
            Query(
                "sum by (run, where, reason)"
                f" (increase(rollscope_dropped_records_total{{{RUNS}}}[5m]))",
                of_run("{{where}} {{reason}}"),
            ),
            page="health",
        ),
        lines(
            "Refused metrics",
            "Calls of metrics that were refused in five minutes, by reason: a bad name, a label"
            " with too many values, too many series.",
            "short",
            Query(
                f"sum by (run, reason) (increase(rollscope_metric_refusals_total{{{RUNS}}}[5m]))",
                of_run("{{reason}}"),
            ),
            page="health",
        ),
        lines(
            "Event loops",
            "The longest that the event loop of a process was blocked in the last minute. While it"
            " is, none of its sessions moves.",
            "s",
            Query(f"rollscope_event_loop_lag_seconds{{{RUNS}}}", of_run("{{role}} {{rank}}")),
            page="health",
        ),
        lines(
            "Processes",
            "Processes that record, by role and by what they do now.",
            "short",
            Query(
                f"sum by (run, role, state) (rollscope_processes{{{RUNS}}})",
                of_run("{{role}} {{state}}"),
            ),
            page="health",
            is_stacked=True,
        ),
        lines(
            "Age of the newest record",
            "How long ago anything was heard of a run.",
            "s",
            Query(f"max by (run) (rollscope_newest_record_age_seconds{{{RUNS}}})"),
            page="health",
        ),
        lines(
            "Engines",
            "1 while an engine answers Rollscope's own questions, 0 while it does not.",
            "none",
            Query(f"rollscope_target_up{{{RUNS}}}", of_run("{{replica}}")),
            most=1,
        ),
    ]


def _showing() -> list[Builder[Panel]]:
    return [
        lines(
            "Cost of a look",
            "How long it took to work out the metrics of a run.",
            "s",
            Query(f"rollscope_exposing_seconds{{{RUNS}}}"),
            page="health",
        ),
        lines(
            "Scrapes",
            "How long Prometheus waited for the metrics of all runs. Above its limit of ten"
            " seconds there are none.",
            "s",
            Query(f"scrape_duration_seconds{{{_OURS}}}", "{{instance}}"),
        ),
        lines(
            "Series",
            "How many lines an answer has.",
            "short",
            Query(f"scrape_samples_scraped{{{_OURS}}}", "{{instance}}"),
        ),
        lines(
            "Runs",
            "Runs that the server shows, by what they do now.",
            "short",
            Query(f"sum by (state) (rollscope_runs{{{_OURS}}})", "{{state}}"),
            width=12,
            is_stacked=True,
        ),
        lines(
            "Failed deliveries",
            "Deliveries of metrics that failed in five minutes, by where they go to; nothing if"
            " metrics are only scraped.",
            "short",
            Query(
                f"sum by (where) (increase(rollscope_export_failures_total{{{_OURS}}}[5m]))",
                "{{where}}",
            ),
            width=12,
        ),
    ]
