"""Every family of ours: the one place where names, labels, bounds and meanings stand."""

from functools import partial
from typing import Final

from rollscope.metrics.families import Family, FamilyKind

__all__ = ["AGE_BOUNDS", "FAMILIES", "PREFIX", "TIME_BOUNDS", "USER_PREFIX"]

PREFIX: Final = "rollscope_"
USER_PREFIX: Final = "rollscope_user_"
"""Before what a program records by itself, so that no name of ours is ever taken."""
TIME_BOUNDS: Final = (
    *(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0),
    *(60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 10800.0),
)
AGE_BOUNDS: Final = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0)
"""Of ages counted in versions."""


_declared: Final[list[Family]] = []


def _family(
    kind: FamilyKind, name: str, help_: str, *labels: str, bounds: tuple[float, ...] = ()
) -> Family:
    family = Family(name=PREFIX + name, kind=kind, help=help_, labels=labels, bounds=bounds)
    _declared.append(family)
    return family


_counter = partial(_family, FamilyKind.COUNTER)
_gauge = partial(_family, FamilyKind.GAUGE)
_info = partial(_family, FamilyKind.INFO)
_histogram = partial(_family, FamilyKind.HISTOGRAM, bounds=TIME_BOUNDS)


SESSIONS_STARTED: Final = _counter(
    "sessions_started_total", "Sessions that have begun.", "run", "family"
)
SESSIONS_FINISHED: Final = _counter(
    "sessions_finished_total",
    "Sessions that have ended and have a verdict, by their first one.",
    *("run", "family", "outcome", "reason"),
)
SESSIONS_UNJUDGED: Final = _gauge(
    "sessions_unjudged", "Sessions that have ended and have no verdict yet.", "run", "family"
)
SESSIONS_IN_FLIGHT: Final = _gauge(
    "sessions_in_flight", "Open sessions by the phase they are in.", "run", "phase"
)
SESSIONS_QUEUED: Final = _gauge(
    "sessions_queued", "Open sessions whose phase says that they wait.", "run"
)
OLDEST_SESSION_AGE: Final = _gauge(
    "oldest_session_age_seconds",
    "How long the oldest open session has been running, by the phase it is in.",
    *("run", "phase"),
)
STUCK_SESSIONS: Final = _gauge(
    "stuck_sessions", "Open sessions that are stuck, overdue or silent.", "run", "phase"
)
SESSION_DURATION: Final = _histogram(
    "session_duration_seconds", "How long sessions took that have ended.", "run", "family"
)
PHASE_DURATION: Final = _histogram(
    "phase_duration_seconds",
    "How long phases took that have ended.",
    *("run", "family", "phase"),
)
QUEUE_WAIT: Final = _histogram(
    "queue_wait_seconds", "How long sessions waited for a slot before they began.", "run"
)
RUNNER_WAIT: Final = _histogram(
    "runner_wait_seconds", "How long sessions waited for the event loop with a slot.", "run"
)
POST_WAIT: Final = _histogram(
    "post_wait_seconds", "How long results waited until they were picked up.", "run"
)
CONSUME_WAIT: Final = _histogram(
    "consume_wait_seconds",
    "How long finished sessions waited until a step consumed them.",
    "run",
)
STALENESS: Final = _histogram(
    "staleness_versions",
    "How many versions behind the policy sessions were when they were consumed.",
    "run",
    bounds=AGE_BOUNDS,
)
STALENESS_BOUND: Final = _gauge(
    "staleness_bound_versions",
    "How many versions behind the policy a session may be when it is consumed.",
    "run",
)
REWARD: Final = _gauge(
    "reward", "Mean reward of the sessions of the last step that ended.", "run", "family"
)
TOKENS: Final = _counter(
    "tokens_total", "Tokens that phases, or else sessions, have told of.", "run", "direction"
)
TOKENS_PER_SECOND: Final = _gauge(
    "tokens_out_per_second", "Tokens made in the last minute, by second.", "run"
)
STEP: Final = _gauge("step", "The last step that began.", "run")
STEPS: Final = _counter("steps_total", "Steps that have ended.", "run")
STEP_DURATION: Final = _histogram("step_duration_seconds", "How long steps took.", "run")
TAIL_RATIO: Final = _gauge(
    "tail_ratio",
    "Share of slot time that was idle in the tail of the last step that ended.",
    "run",
)
LANE_STATE: Final = _counter(
    "lane_state_seconds_total",
    "Time that lanes have spent in states that ended.",
    *("run", "lane", "state"),
)
DROPPED: Final = _counter(
    "dropped_records_total",
    "Records that processes had to drop, by kind and reason.",
    *("run", "where", "reason"),
)
METRIC_REFUSALS: Final = _counter(
    "metric_refusals_total", "Calls of metrics that were refused, by reason.", "run", "reason"
)
EVENT_LOOP_LAG: Final = _gauge(
    "event_loop_lag_seconds",
    "The longest that the event loop of a process was blocked in the last minute.",
    *("run", "role", "rank"),
)
PROCESSES: Final = _gauge(
    "processes", "Processes that record, by what they do now.", "run", "role", "state"
)
RECORD_AGE: Final = _gauge(
    "newest_record_age_seconds", "How long ago the newest record was written.", "run"
)
TARGET_UP: Final = _gauge(
    "target_up", "Whether an engine that is asked for metrics answers.", "run", "replica"
)
RUN: Final = _info("run_info", "A run, and what it was recorded with.", "run", "version", "state")
SERVER: Final = _info("server_info", "This server.", "version")
RUNS: Final = _gauge("runs", "Runs that this server shows, by what they do now.", "state")
EXPORT_FAILURES: Final = _counter(
    "export_failures_total", "Deliveries of metrics that failed, by where they go to.", "where"
)
EXPOSING_SECONDS: Final = _gauge(
    "exposing_seconds", "How long it took to work out the metrics of a run.", "run"
)

FAMILIES: Final = tuple(_declared)
"""In the order in which they are shown."""
