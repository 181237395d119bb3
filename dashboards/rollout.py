"""Rollout: where sessions are, how long they take there, and who holds up a step."""

from typing import Final

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import Dashboard, Panel

from dashboards.frame import Section, chosen, framed, typed_in
from dashboards.palette import PHASES, STATES
from dashboards.panels import heat, lines
from dashboards.queries import RUNS, Query, exemplified, of_run, quantile
from dashboards.traces import search_panels, trace_panels

__all__ = ["rollout"]

_WAITS: Final = {
    "queue": "rollscope_queue_wait_seconds",
    "event loop": "rollscope_runner_wait_seconds",
    "pick-up": "rollscope_post_wait_seconds",
    "consumption": "rollscope_consume_wait_seconds",
}
_PHASE: Final = of_run("{{phase}}")


def rollout() -> Dashboard:
    """Make the dashboard."""
    phases = "label_values(rollscope_phase_duration_seconds_count, phase)"
    return framed(
        "rollscope-rollout",
        "rollout",
        "Where sessions are, how long they take there, and who holds up a step.",
        Section("In flight", _in_flight()),
        Section("How long it takes", _durations()),
        Section("Waiting", _waiting()),
        Section("Slow sessions", search_panels()),
        Section("The trace that was chosen", trace_panels(), is_collapsed=True),
        variables=[
            chosen("phase", "Phase", phases, "The phases that are shown."),
            typed_in("slow", "Slow from (s)", "30", "How long a session takes that is searched."),
            typed_in("trace", "Trace", "", "The id of the trace that is drawn."),
        ],
    )


def _in_flight() -> list[Builder[Panel]]:
    return [
        lines(
            "In flight",
            "Open sessions by the phase that they are in, on top of each other.",
            "short",
            Query(f"sum by (run, phase) (rollscope_sessions_in_flight{{{RUNS}}})", _PHASE),
            is_stacked=True,
            colours=PHASES,
        ),
        lines(
            "Oldest session",
            "How long the oldest open session of each phase has been running. A line that only"
            " rises is a session that hangs.",
            "s",
            Query(
                "max by (run, phase) (rollscope_oldest_session_age_seconds"
                f'{{{RUNS}, phase=~"$phase"}})',
                _PHASE,
            ),
            colours=PHASES,
        ),
        lines(
            "Stuck",
            "Open sessions that take much longer than others did, are overdue, or silent.",
            "short",
            Query(f"sum by (run, phase) (rollscope_stuck_sessions{{{RUNS}}})", _PHASE),
            is_stacked=True,
            colours=PHASES,
        ),
        lines(
            "Begun and ended",
            "Sessions by second. If fewer end than begin, they pile up.",
            "ops",
            Query(
                f"sum by (run) (rate(rollscope_sessions_started_total{{{RUNS}}}[5m]))",
                of_run("begun"),
            ),
            Query(
                f"sum by (run) (run_outcome:rollscope_sessions_finished:rate5m{{{RUNS}}})",
                of_run("ended"),
            ),
            page="sessions",
        ),
        lines(
            "Queued",
            "Open sessions that wait for a slot.",
            "short",
            Query(f"sum by (run) (rollscope_sessions_queued{{{RUNS}}})"),
        ),
        lines(
            "Tokens made",
            "Tokens made in the last minute, by second.",
            "suffix: tok/s",
            Query(f"sum by (run) (rollscope_tokens_out_per_second{{{RUNS}}})"),
        ),
    ]


def _durations() -> list[Builder[Panel]]:
    buckets = "rollscope_session_duration_seconds_bucket"
    return [
        heat(
            "Sessions by length",
            "How many sessions of which length ended. Dots are sessions: a click leads to theirs.",
            "s",
            Query(
                f"sum by (le) (increase({buckets}{{{RUNS}}}[$__rate_interval]))",
                has_exemplars=True,
            ),
        ),
        lines(
            "Length of sessions",
            "The middle session and the slowest in a hundred, of five minutes. Dots are sessions.",
            "s",
            exemplified(0.5, "rollscope_session_duration_seconds", name="p50"),
            exemplified(0.99, "rollscope_session_duration_seconds", name="p99"),
            width=12,
            page="sessions",
        ),
        *(_phase_lines(share, words) for share, words in _SHARES.items()),
        lines(
            "Slowest in a hundred, session by session",
            "As before, with the sessions that stand for the slow ones as dots.",
            "s",
            exemplified(0.99, "rollscope_phase_duration_seconds", "phase", name="{{phase}}"),
            width=12,
            page="sessions",
            colours=PHASES,
        ),
        lines(
            "Tail",
            "Share of slot time that was idle while the last sessions of a step went on: of the"
            " last step, and of half an hour.",
            "percentunit",
            Query(f"rollscope_tail_ratio{{{RUNS}}}", of_run("last step")),
            Query(f"run:rollscope_tail:ratio30m{{{RUNS}}}", of_run("half an hour")),
            width=12,
            page="steps",
            most=1,
        ),
    ]


_SHARES: Final = {50: "The middle one", 95: "One in twenty is slower", 99: "The slowest"}


def _phase_lines(share: int, words: str) -> Builder[Panel]:
    series = f"run_phase:rollscope_phase_duration_seconds:p{share}_5m"
    return lines(
        f"Phases: p{share}",
        f"How long phases took that ended in the last five minutes. {words}.",
        "s",
        Query(f'{series}{{{RUNS}, phase=~"$phase"}}', _PHASE),
        page="sessions",
        colours=PHASES,
    )


def _waiting() -> list[Builder[Panel]]:
    return [
        lines(
            "Waits",
            "How long sessions waited for a slot, for the event loop, to be picked up, and to be"
            " consumed: one in twenty waited longer.",
            "s",
            *(Query(quantile(0.95, family), of_run(name)) for name, family in _WAITS.items()),
            width=12,
            page="steps",
        ),
        lines(
            "What lanes do",
            "Time that lanes spent in states that ended, by second and state: 1 is one lane all"
            " the time.",
            "none",
            Query(
                f"sum by (run, state) (rate(rollscope_lane_state_seconds_total{{{RUNS}}}[5m]))",
                of_run("{{state}}"),
            ),
            width=12,
            page="timeline",
            is_stacked=True,
            colours=STATES,
        ),
    ]
