"""Staleness and waste: how old sessions are when they are consumed, and what comes to nothing."""

from typing import Final

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import Dashboard, Panel

from dashboards.frame import Section, framed
from dashboards.palette import OUTCOMES, STATES
from dashboards.panels import heat, lines
from dashboards.queries import RUNS, Query, of_run, quantile
from rollscope.analysis.roles import EMPTY_QUEUE_STATES, GATE_PREFIX, PAUSE_STATES

__all__ = ["staleness"]

_IDLE: Final = "|".join((f"{GATE_PREFIX}.*", *sorted(PAUSE_STATES), *sorted(EMPTY_QUEUE_STATES)))
_FINISHED: Final = "rollscope_sessions_finished_total"


def staleness() -> Dashboard:
    """Make the dashboard."""
    return framed(
        "rollscope-staleness",
        "staleness and waste",
        "How far behind the policy sessions are when they are consumed, and what comes to nothing.",
        Section("Staleness", _ages()),
        Section("Waste", _waste()),
    )


def _ages() -> list[Builder[Panel]]:
    return [
        heat(
            "Staleness",
            "How many sessions were consumed at which age, in versions of the policy.",
            "none",
            Query(f"sum by (le) (increase(rollscope_staleness_versions_bucket{{{RUNS}}}[5m]))"),
            colours="Oranges",
        ),
        lines(
            "Staleness and its bound",
            "The middle session and one in twenty, and how old one may be. At the bound rollouts"
            " stand still until the trainer catches up.",
            "suffix: versions",
            Query(f"run:rollscope_staleness_versions:p50_15m{{{RUNS}}}", of_run("p50")),
            Query(
                quantile(0.95, "rollscope_staleness_versions", window="15m"),
                of_run("p95"),
            ),
            Query(f"max by (run) (rollscope_staleness_bound_versions{{{RUNS}}})", of_run("bound")),
            width=12,
            page="steps",
        ),
        lines(
            "Held back",
            "Time that lanes spent behind a gate, paused, or without work, by second: 1 is one"
            " lane all the time.",
            "none",
            Query(
                "sum by (run, state) (rate(rollscope_lane_state_seconds_total"
                f'{{{RUNS}, state=~"{_IDLE}"}}[5m]))',
                of_run("{{state}}"),
            ),
            width=12,
            page="steps",
            is_stacked=True,
            colours=STATES,
        ),
        lines(
            "Wait for consumption",
            "How long finished sessions waited until a step consumed them.",
            "s",
            Query(quantile(0.5, "rollscope_consume_wait_seconds"), of_run("p50")),
            Query(quantile(0.95, "rollscope_consume_wait_seconds"), of_run("p95")),
            width=12,
            page="steps",
        ),
    ]


def _waste() -> list[Builder[Panel]]:
    return [
        lines(
            "Accepted",
            "Share of sessions that were accepted: of five minutes, and of an hour. An alert fires"
            " when it falls to half of what it was.",
            "percentunit",
            Query(f"run:rollscope_acceptance:ratio5m{{{RUNS}}}", of_run("5 minutes")),
            Query(f"run:rollscope_acceptance:ratio1h{{{RUNS}}}", of_run("an hour")),
            page="sessions",
            most=1,
        ),
        lines(
            "Failed",
            "Share of sessions that failed or ran out of time.",
            "percentunit",
            Query(f"run:rollscope_errors:ratio5m{{{RUNS}}}"),
            page="sessions",
            most=1,
        ),
        lines(
            "Without a verdict",
            "Sessions that have ended and have no verdict yet.",
            "short",
            Query(
                f"sum by (run, family) (rollscope_sessions_unjudged{{{RUNS}}})",
                of_run("{{family}}"),
            ),
            page="sessions",
        ),
        lines(
            "Outcomes",
            "Sessions that got a verdict in five minutes, by outcome and reason.",
            "short",
            Query(
                f"sum by (run, outcome, reason) (increase({_FINISHED}{{{RUNS}}}[5m]))",
                of_run("{{outcome}}") + " {{reason}}",
            ),
            width=12,
            page="sessions",
            is_stacked=True,
            colours=OUTCOMES,
        ),
        lines(
            "Not used",
            "Sessions of five minutes that came to nothing, by outcome and reason.",
            "short",
            Query(
                "sum by (run, outcome, reason) (increase("
                f'{_FINISHED}{{{RUNS}, outcome!="accepted"}}[5m]))',
                of_run("{{outcome}}") + " {{reason}}",
            ),
            width=12,
            page="sessions",
            is_stacked=True,
            colours=OUTCOMES,
        ),
    ]
