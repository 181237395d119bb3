"""Sessions as tables show them: late facts applied, and how long they were in which phase.

Times of phases follow `rollscope.analysis.sessions`, but for open ones, which have no length here:
an export says the same whenever it is made.
"""

from typing import Final

from rollscope.exporting.picking import Steps, within
from rollscope.exporting.scratch import Scratch
from rollscope.store.dialect import DUCKDB

__all__ = ["CLASSIC_PHASES", "SESSION_COLUMNS", "hex_sql", "make_sessions"]

CLASSIC_PHASES: Final = ("generate", "toolcall", "reward")
"""Phases with columns of their own."""
_WAITS: Final = ("runner_wait_s", "backoff_s", "post_wait_s")


def hex_sql(column: str) -> str:
    """Give an id as text."""
    return f"lpad(lower(hex({column})), 16, '0')"


def _text(key: str) -> str:
    return DUCKDB.json_text("attrs", f"'{key}'")


def _seconds(key: str) -> str:
    return DUCKDB.json_number("attrs", f"'{key}'")


def _phase_columns(name: str) -> dict[str, str]:
    return {f"{name}_s": f"{name}_ns / 1e9", f"{name}_sum_s": f"{name}_sum_ns / 1e9"}


SESSION_COLUMNS: Final[dict[str, tuple[str, str]]] = {
    "task_key": ("task_key", "VARCHAR"),
    "group": ("group_key", "VARCHAR"),
    "session": (hex_sql("session_id"), "VARCHAR"),
    "sample": ("sample", "INTEGER"),
    "family": ("family", "VARCHAR"),
    "role": ("role", "VARCHAR"),
    "rank": ("rank", "INTEGER"),
    "replica": ("replica", "VARCHAR"),
    "attempt": ("coalesce(attempt, 0)", "INTEGER"),
    "status": ("status", "VARCHAR"),
    "outcome": ("outcome", "VARCHAR"),
    "reason": ("reason", "VARCHAR"),
    "source_status": (_text("source_status"), "VARCHAR"),
    "error_type": ("error_type", "VARCHAR"),
    "error_message": ("error_message", "VARCHAR"),
    "start_ns": ("start_ns", "BIGINT"),
    "end_ns": ("end_ns", "BIGINT"),
    "verdict_ns": ("verdict_ns", "BIGINT"),
    "total_s": (f"coalesce({_seconds('total_s')}, ran_s)", "DOUBLE"),
    "queue_wait_s": ("waited_ns / 1e9", "DOUBLE"),
    "runner_wait_s": (_seconds("runner_wait_s"), "DOUBLE"),
    "execution_s": ("execution_s", "DOUBLE"),
    "backoff_s": (_seconds("backoff_s"), "DOUBLE"),
    "post_wait_s": (_seconds("post_wait_s"), "DOUBLE"),
    "consume_wait_s": (
        f"coalesce({_seconds('consume_wait_s')}, (consumed_ns - end_ns) / 1e9)",
        "DOUBLE",
    ),
    **{
        column: (value, "DOUBLE")
        for name in CLASSIC_PHASES
        for column, value in _phase_columns(name).items()
    },
    "other_s": (
        "execution_s - least(coalesce(phases_ns, 0) / 1e9, execution_s)",  # null if that is
        "DOUBLE",
    ),
    "step": ("step", "BIGINT"),
    "consumed_step": ("consumed_step", "BIGINT"),
    "version_start": ("version_start", "BIGINT"),
    "version_end": ("version_end", "BIGINT"),
    "reward": ("reward", "DOUBLE"),
    "tokens_in": ("tokens_in", "BIGINT"),
    "tokens_out": ("tokens_out", "BIGINT"),
    "tokens_cached": (
        f"coalesce({_seconds('tokens_cached')}, {_seconds('cached_tokens')}, phase_cached)",
        "BIGINT",
    ),
    "turns": ("turns", "BIGINT"),
    "open": ("is_open", "BOOLEAN"),
    "clock_suspect": (
        f"coalesce(end_ns < start_ns OR {_text('clock_suspect')} = 'true', FALSE)",
        "BOOLEAN",
    ),
    "attributes": ("attrs", "JSON"),
}
"""Columns of the table `sessions` behind `run`: how each is made of what `make_sessions` makes, and
its type."""


def make_sessions(scratch: Scratch, steps: Steps | None) -> None:
    """Make the table `export.sessions`, with a row for each session of the steps that are meant."""
    scratch.run(f"CREATE TABLE export.late AS {_LATE}")
    scratch.run(f"CREATE TABLE export.told AS {_TOLD.format(within=within(steps, 's.step'))}")
    scratch.run(f"CREATE TABLE export.closed AS {_CLOSED}")
    scratch.run(f"CREATE TABLE export.timed AS {_timed()}")
    scratch.run(f"CREATE TABLE export.sessions AS {_SESSIONS}")
    for table in ("late", "told", "closed", "timed"):
        scratch.run(f"DROP TABLE export.{table}")


_LATE: Final = """
    SELECT span_id, list(CAST(facts AS JSON) ORDER BY time_ns, process, number) AS facts,
        max(time_ns) FILTER (WHERE outcome IS NOT NULL) AS judged_ns
    FROM facts GROUP BY span_id"""
_TOLD: Final = """
    SELECT s.* REPLACE (
            coalesce(f.outcome, s.outcome) AS outcome, coalesce(f.reason, s.reason) AS reason,
            coalesce(f.version_end, s.version_end) AS version_end,
            coalesce(f.reward, s.reward) AS reward,
            CASE WHEN s.status = 'open' THEN NULL ELSE s.end_ns END AS end_ns,
            CASE WHEN l.facts IS NULL THEN s.attrs ELSE CAST(list_reduce(
                list_prepend(CAST(s.attrs AS JSON), l.facts),
                lambda a, b: json_merge_patch(a, b)) AS VARCHAR) END AS attrs
        ), s.span_id AS own_id, f.consumed_step, f.consumed_ns, l.judged_ns, p.role, p.rank
    FROM spans AS s LEFT JOIN fact_sums AS f ON s.span_id = f.span_id
        LEFT JOIN export.late AS l ON s.span_id = l.span_id
        LEFT JOIN processes AS p ON s.process = p.process
    WHERE s.kind = 'session' AND {within}"""
_CLOSED: Final = """
    SELECT p.session_id, p.name, p.start_ns, greatest(p.start_ns, p.end_ns) AS end_ns,
        greatest(p.start_ns, s.start_ns) AS inner_start,
        least(greatest(p.start_ns, p.end_ns), coalesce(s.end_ns, p.end_ns)) AS inner_end,
        p.tokens_in, p.tokens_out, p.attrs
    FROM phases AS p JOIN export.told AS s ON p.session_id = s.own_id
    WHERE p.status <> 'open' AND p.end_ns IS NOT NULL"""


def _sum(value: str, where: str = "TRUE") -> str:
    """Add up, without the 128 bits that sums of whole numbers come in."""
    return f"TRY_CAST(sum({value}) FILTER (WHERE {where}) AS BIGINT)"


def _timed() -> str:
    """Find the unions: each phase adds what reaches beyond those that began before it."""
    before = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    own = "greatest(end_ns - greatest(start_ns, coalesce(reached, start_ns)), 0)"
    of_all = "greatest(inner_end - greatest(inner_start, coalesce(all_reached, inner_start)), 0)"
    sums = ", ".join(
        f"{_sum(own, is_it)} AS {name}_ns, {_sum('end_ns - start_ns', is_it)} AS {name}_sum_ns"
        for name in CLASSIC_PHASES
        for is_it in (f"name = '{name}'",)
    )
    cached = f"coalesce({_seconds('tokens_cached')}, {_seconds('cached_tokens')})"
    return f"""
        SELECT session_id, {sums}, {_sum(of_all)} AS phases_ns,
            {_sum("tokens_in")} AS phase_tokens_in, {_sum("tokens_out")} AS phase_tokens_out,
            {_sum(cached)} AS phase_cached
        FROM (
            SELECT *, max(end_ns) OVER (
                    PARTITION BY session_id, name ORDER BY start_ns, end_ns {before}) AS reached,
                max(inner_end) OVER (
                    PARTITION BY session_id ORDER BY inner_start, inner_end {before}) AS all_reached
            FROM export.closed
        ) AS told GROUP BY session_id"""


_CLASS: Final = r"^([A-Za-z_][\w.]*): "
"""How a reason begins that keeps the class of an error."""
_ERROR: Final = f"""
    CASE WHEN status = 'error' THEN reason END AS error_reason,
    coalesce({_text("error.type")}, {_text("error_type")}) AS told_type,
    coalesce({_text("error.message")}, {_text("error_message")}) AS told_message"""
_SESSIONS: Final = f"""
    SELECT * EXCLUDE (session_id, told_type, told_message, error_reason, tokens_in, tokens_out),
        own_id AS session_id,
        coalesce(told_type, nullif(regexp_extract(error_reason, '{_CLASS}', 1), '')) AS error_type,
        coalesce(told_message, regexp_replace(error_reason, '{_CLASS}', '')) AS error_message,
        coalesce(execution, ran_s) AS execution_s,
        coalesce(tokens_in, CASE WHEN tokens_out IS NULL THEN phase_tokens_in END) AS tokens_in,
        coalesce(tokens_out, phase_tokens_out) AS tokens_out
    FROM (
        SELECT t.*, m.* EXCLUDE (session_id), v.shown_ns, end_ns IS NULL AS is_open,
            coalesce(v.shown_ns, t.judged_ns,
                CASE WHEN t.outcome IS NULL THEN NULL ELSE t.end_ns END) AS verdict_ns,
            (end_ns - start_ns) / 1e9 AS ran_s, {_seconds("execution_s")} AS execution, {_ERROR}
        FROM export.told AS t LEFT JOIN export.timed AS m ON t.own_id = m.session_id
            LEFT JOIN (
                SELECT session_id, max(time_ns) AS shown_ns FROM events
                WHERE name = 'verdict' GROUP BY session_id
            ) AS v ON t.own_id = v.session_id
    ) AS known"""
