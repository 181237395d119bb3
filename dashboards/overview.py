"""Overview: how runs stand, at a glance."""

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import Dashboard, Panel

from dashboards.frame import Section, framed
from dashboards.palette import BAD, OUTCOMES, WARN
from dashboards.panels import lines, number, page_link, rows
from dashboards.queries import RUNS, Query, of_run, quantile
from dashboards.recorded import recorded_choices, recorded_panels

__all__ = ["overview"]


def overview() -> Dashboard:
    """Make the dashboard."""
    return framed(
        "rollscope-overview",
        "overview",
        "How runs stand: what is in flight, what comes of it, and what is wrong.",
        Section("Now", _numbers()),
        Section("Training", _training()),
        Section("What is wrong", _trouble()),
        Section("Recorded by the program", recorded_panels()),
        variables=recorded_choices(),
    )


def _numbers() -> list[Builder[Panel]]:
    return [
        number(
            "Step",
            "The last step that began.",
            "none",
            Query(f"max by (run) (rollscope_step{{{RUNS}}})"),
            width=3,
            page="steps",
        ),
        number(
            "In flight",
            "Sessions that are open now.",
            "short",
            Query(f"sum by (run) (rollscope_sessions_in_flight{{{RUNS}}})"),
            width=3,
        ),
        number(
            "Stuck",
            "Open sessions that are stuck, overdue or silent. The page shows where they wait.",
            "short",
            Query(f"sum by (run) (rollscope_stuck_sessions{{{RUNS}}})"),
            width=3,
            limits=[(1, WARN), (10, BAD)],
        ),
        number(
            "Accepted",
            "Share of the sessions of the last five minutes that were accepted.",
            "percentunit",
            Query(f"run:rollscope_acceptance:ratio5m{{{RUNS}}}"),
            width=3,
            page="sessions",
        ),
        number(
            "Tail",
            "Share of slot time that was idle in the tails of the last half hour.",
            "percentunit",
            Query(f"run:rollscope_tail:ratio30m{{{RUNS}}}"),
            width=3,
            page="steps",
            limits=[(0.3, WARN), (0.5, BAD)],
        ),
        number(
            "Tokens",
            "Tokens made in the last minute, by second.",
            "suffix: tok/s",
            Query(f"sum by (run) (rollscope_tokens_out_per_second{{{RUNS}}})"),
            width=3,
        ),
        number(
            "Reward",
            "Mean reward of the sessions of the last step that ended.",
            "none",
            Query(f"avg by (run) (rollscope_reward{{{RUNS}}})"),
            width=3,
            page="steps",
        ),
        number(
            "Heard",
            "How long ago the newest record was written. Processes write every few seconds.",
            "s",
            Query(f"max by (run) (rollscope_newest_record_age_seconds{{{RUNS}}})"),
            width=3,
            page="health",
            limits=[(30, WARN), (120, BAD)],
        ),
    ]


def _training() -> list[Builder[Panel]]:
    return [
        lines(
            "Steps per hour",
            "How many steps ended, over half an hour, taken for an hour.",
            "short",
            Query(f"3600 * sum by (run) (rate(rollscope_steps_total{{{RUNS}}}[30m]))"),
            page="steps",
        ),
        lines(
            "Length of steps",
            "How long steps took: the middle one and nearly the longest of half an hour.",
            "s",
            Query(
                quantile(0.5, "rollscope_step_duration_seconds", window="30m"),
                of_run("p50"),
            ),
            Query(
                quantile(0.95, "rollscope_step_duration_seconds", window="30m"),
                of_run("p95"),
            ),
            page="steps",
        ),
        lines(
            "Reward",
            "Mean reward of the sessions of the last step that ended, by family of tasks.",
            "none",
            Query(f"rollscope_reward{{{RUNS}}}", of_run("{{family}}")),
            page="steps",
        ),
        lines(
            "Sessions that end",
            "Sessions that got a verdict, by second and outcome.",
            "ops",
            Query(
                f"run_outcome:rollscope_sessions_finished:rate5m{{{RUNS}}}",
                of_run("{{outcome}}"),
            ),
            width=12,
            page="sessions",
            is_stacked=True,
            colours=OUTCOMES,
        ),
        lines(
            "Tokens",
            "Tokens of the sessions that ended, in and out, by second.",
            "suffix: tok/s",
            Query(
                f"run_direction:rollscope_tokens:rate5m{{{RUNS}}}",
                of_run("{{direction}}"),
            ),
            width=12,
            page="steps",
        ),
    ]


def _trouble() -> list[Builder[Panel]]:
    return [
        rows(
            "Alerts",
            "Alerts of Rollscope that fire, or are about to. docs/alerts.md says what to do.",
            "none",
            Query('ALERTS{alertname=~"Rollscope.+", run=~"$run|"}'),
            *("alertname", "alertstate", "severity", "run", "phase", "replica"),
        ),
        rows(
            "Runs",
            "The runs that the server shows, and what they do now.",
            "none",
            Query(f"rollscope_run_info{{{RUNS}}}"),
            *("run", "state", "version"),
            link=page_link("", "${__data.fields.run}"),
        ),
    ]
