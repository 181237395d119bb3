"""Which tasks are slow or fail again and again, over all steps."""

from typing import Final

import msgspec

from rollscope.answers.chosen import choose
from rollscope.answers.scope import StepScope
from rollscope.answers.source import Source, fetch
from rollscope.errors import CommandError

__all__ = ["TASK_SORT_KEYS", "TaskLine", "Tasks", "list_tasks"]

TASK_SORT_KEYS: Final = {
    "tries": "tries",
    "total": "total_ns",
    "p50": "p50_ns",
    "max": "max_ns",
    "failures": "failure_share",
    "timeouts": "timeouts",
    "retries": "retries",
    "reward": "mean_reward",
    "spread": "spread",
    "seen": "last_ns",
    "task": "task_key",
}
"""What tasks can be sorted by; a minus in front turns it round."""

_FAILED: Final = "(status IN ('error', 'lost') OR coalesce(outcome, '') IN ('failed', 'timeout'))"


class TaskLine(msgspec.Struct, kw_only=True):
    """All tries at one task."""

    task_key: str | None
    """None for sessions that name none."""
    family: str | None
    tries: int
    """Its sessions: samples, steps and attempts alike."""
    steps: int
    """In how many steps it was tried."""
    open_now: int
    total_ns: int
    """Session time, up to now for open ones."""
    p50_ns: int | None
    """Of the sessions that were measured."""
    max_ns: int | None
    failures: int
    """Sessions that failed, hit a time limit or were lost."""
    failure_share: float
    """Of the sessions that are over."""
    timeouts: int
    retries: int
    """Sessions that are not a first attempt."""
    rewarded: int
    mean_reward: float | None
    spread: float | None
    """The standard deviation of the rewards."""
    last_ns: int
    """When it was last seen: the end of its last session, or now."""
    session_id: int
    """Its slowest session."""


class Tasks(msgspec.Struct, kw_only=True):
    """Some tasks, and how many there are."""

    tasks: list[TaskLine]
    matched: int
    """How many tasks have a session that the filter lets through."""


class _Line(TaskLine, kw_only=True):
    matched: int


def list_tasks(
    source: Source,
    scope: StepScope,
    filter_text: str = "",
    sort: str = "-total",
    limit: int = 50,
    offset: int = 0,
) -> Tasks:
    """List tasks by their sessions that a filter lets through.

    Raises:
        FilterError: The filter cannot be read.
        CommandError: There is no such sort key.
    """
    column = TASK_SORT_KEYS.get(sort.removeprefix("-"))
    if column is None:
        known = ", ".join(TASK_SORT_KEYS)
        raise CommandError(f"cannot sort by {sort!r}; one of {known}, with - for the greatest", 2)
    chosen = choose(source, scope, filter_text)
    direction = "DESC" if sort.startswith("-") else "ASC"
    ran = "greatest(coalesce(end_ns, $at_ns) - start_ns, 0)"
    measured = "CASE WHEN status <> 'lost' THEN duration_ns ELSE NULL END"
    slowest = source.dialect.arg_max("session_id", ran, "session_id")
    sql = f"""
        SELECT *, count(*) OVER () AS matched FROM (
            SELECT task_key, min(family) AS family, count(*) AS tries,
                count(DISTINCT charged_step) AS steps,
                sum(CASE WHEN status = 'open' THEN 1 ELSE 0 END) AS open_now,
                sum({ran}) AS total_ns, {source.dialect.rank(measured, 50)} AS p50_ns,
                max({measured}) AS max_ns, sum(CASE WHEN {_FAILED} THEN 1 ELSE 0 END) AS failures,
                sum(CASE WHEN {_FAILED} THEN 1 ELSE 0 END)
                    / greatest(sum(CASE WHEN status = 'open' THEN 0 ELSE 1 END), 1)
                    AS failure_share,
                sum(CASE WHEN outcome = 'timeout' THEN 1 ELSE 0 END) AS timeouts,
                sum(CASE WHEN attempt > 0 THEN 1 ELSE 0 END) AS retries,
                count(reward) AS rewarded, avg(reward) AS mean_reward,
                stddev_pop(reward) AS spread, max(coalesce(end_ns, $at_ns)) AS last_ns,
                {slowest} AS session_id
            FROM sessions WHERE {chosen.where} GROUP BY task_key
        ) AS grouped
        ORDER BY {column} {direction} NULLS LAST, task_key LIMIT {limit:d} OFFSET {offset:d}"""
    lines = fetch(source, _Line, sql, **{**chosen.values, "at_ns": source.now_ns})
    fields = TaskLine.__struct_fields__
    return Tasks(
        tasks=[TaskLine(**{name: getattr(line, name) for name in fields}) for line in lines],
        matched=lines[0].matched if lines else 0,
    )
