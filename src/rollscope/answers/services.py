"""Is a tool, reward function or environment the bottleneck: its calls, queueing and service apart.

A service is a phase name with its detail. Phases of the roles tool, env and reward count, and those
of a name without a role that say which model or service they ask.
"""

from typing import Final

import msgspec

from rollscope.analysis.ranks import NEEDED_FOR_P95, NEEDED_FOR_P99
from rollscope.analysis.roles import ROLES, role_of
from rollscope.answers.phases import in_scope
from rollscope.answers.scope import StepScope
from rollscope.answers.source import Source, fetch
from rollscope.store.dialect import Value

__all__ = ["ServiceLine", "Services", "services"]

_SERVICE_ROLES: Final = ("tool", "env", "reward")
_RETRY_KEYS: Final = {"tries": 1, "reward_attempts": 1, "retries": 0}
"""Attributes that say how often a call was made, and how many of these are no retries."""
_MOST_LINES: Final = 200
_MOST_KINDS: Final = 8


class ServiceLine(msgspec.Struct, kw_only=True):
    """All calls of one service."""

    name: str
    """The phase."""
    detail: str | None
    """Which tool, environment, reward function or model."""
    role: str | None
    calls: int
    measured: int
    """Calls that ended and were not cut off by a death; percentiles are of these."""
    open_now: int
    total_ns: int
    queued: int
    """Measured calls that say how long they waited for the service."""
    queue_p50_ns: int | None
    queue_p95_ns: int | None
    """None with fewer than 20."""
    service_p50_ns: int | None
    """Of the time without queueing, where that is recorded; else of all of it."""
    service_p95_ns: int | None
    """None with fewer than 20."""
    service_p99_ns: int | None
    """None with fewer than 100."""
    service_max_ns: int | None
    busy_ns: int
    """Time during which at least one call was open."""
    busy_share: float
    """Of the time from the first start to the last end of the scope's sessions."""
    mean_open: float
    """Calls open at once, on average over that time."""
    retries: int
    """Calls made again, as far as recorded."""
    timeouts: int
    """Calls whose error is a time limit."""
    errors: int
    error_kinds: dict[str, int] = {}
    """By what precedes the colon of the reason, the most frequent first; at most eight."""


class Services(msgspec.Struct, kw_only=True):
    """Services by total time, the most first."""

    scope: str
    start_ns: int
    end_ns: int
    lines: list[ServiceLine]


class _Line(ServiceLine, kw_only=True):
    role: str | None = None
    busy_share: float = 0.0
    mean_open: float = 0.0
    first_ns: int
    last_ns: int


class _Kind(msgspec.Struct):
    name: str
    detail: str | None
    kind: str
    count: int


def services(source: Source, scope: StepScope) -> Services:
    """Tell how each service did.

    Args:
        source: The run.
        scope: Which steps' sessions.
    """
    where, values = in_scope(source, scope, "p.session_id")
    values |= {"names": _service_names(), "roled": _roled_names(), "now": source.now_ns}
    named = source.dialect.is_in("p.name", "$names")
    roled = source.dialect.is_in("p.name", "$roled")
    calls = f"""
        SELECT p.name AS name, p.detail AS detail, p.start_ns AS start_ns, p.status AS status,
            greatest(coalesce(p.end_ns, $now), p.start_ns) AS end_ns, p.reason AS reason,
            CASE WHEN p.status <> 'lost' THEN p.duration_ns ELSE NULL END AS length_ns,
            CASE WHEN p.status <> 'lost' AND p.end_ns IS NOT NULL AND p.queue_ns IS NOT NULL
                THEN least(p.queue_ns, p.duration_ns) ELSE NULL END AS queue_ns,
            {_retries(source, values)} AS retries
        FROM phases AS p
        WHERE ({named} OR (p.detail IS NOT NULL AND NOT ({roled})))
            AND p.session_id IS NOT NULL AND {where}"""
    lines = fetch(source, _Line, _line_sql(source, calls), **values)
    kinds = (
        fetch(source, _Kind, _kind_sql(calls), **values) if any(one.errors for one in lines) else []
    )
    low, high = _window(source, scope, lines)
    return Services(
        scope=scope.text,
        start_ns=low,
        end_ns=high,
        lines=[_finish(line, kinds, high - low) for line in lines],
    )


def _service_names() -> list[str]:
    return sorted(name for role in _SERVICE_ROLES for name in ROLES[role])


def _roled_names() -> list[str]:
    return sorted(name for names in ROLES.values() for name in names)


def _retries(source: Source, values: dict[str, Value]) -> str:
    """Read how often a call was made again; few calls say it, so text is looked at first."""
    parts = []
    for key, first in _RETRY_KEYS.items():
        values[f"key_{key}"] = key
        values[f"mark_{key}"] = f'"{key}":'
        number = source.dialect.json_number("p.attrs", f"$key_{key}")
        said = f"position($mark_{key} IN p.attrs) > 0"
        parts.append(f"CASE WHEN {said} THEN greatest({number} - {first}, 0) ELSE NULL END")
    return f"coalesce({', '.join(parts)}, 0)"


def _line_sql(source: Source, calls: str) -> str:
    rank = source.dialect.rank
    service = "length_ns - coalesce(queue_ns, 0)"
    return f"""
        WITH calls AS ({calls}), ordered AS (
            SELECT *, max(end_ns) OVER (
                PARTITION BY name, detail ORDER BY start_ns, end_ns
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS before_ns FROM calls
        )
        SELECT name, detail, count(*) AS calls, count(length_ns) AS measured,
            sum(CASE WHEN status = 'open' THEN 1 ELSE 0 END) AS open_now,
            sum(end_ns - start_ns) AS total_ns, count(queue_ns) AS queued,
            {rank("queue_ns", 50)} AS queue_p50_ns, {rank("queue_ns", 95)} AS queue_p95_ns,
            {rank(service, 50)} AS service_p50_ns, {rank(service, 95)} AS service_p95_ns,
            {rank(service, 99)} AS service_p99_ns, max({service}) AS service_max_ns,
            sum(greatest(end_ns - greatest(start_ns, coalesce(before_ns, start_ns)), 0)) AS busy_ns,
            CAST(sum(retries) AS BIGINT) AS retries,
            sum(CASE WHEN status = 'error' THEN 1 ELSE 0 END) AS errors,
            sum(CASE WHEN status = 'error' AND ({_IS_TIMEOUT}) THEN 1 ELSE 0 END) AS timeouts,
            min(start_ns) AS first_ns, max(end_ns) AS last_ns
        FROM ordered GROUP BY name, detail
        ORDER BY total_ns DESC, name, detail LIMIT {_MOST_LINES}"""


_COLON: Final = "position(':' IN reason)"
_KIND: Final = f"CASE WHEN {_COLON} > 0 THEN substring(reason, 1, {_COLON} - 1) ELSE reason END"
_IS_TIMEOUT: Final = f"lower({_KIND}) LIKE '%timeout%' OR lower({_KIND}) LIKE '%deadline%'"


def _kind_sql(calls: str) -> str:
    return f"""
        WITH calls AS ({calls})
        SELECT name, detail, coalesce({_KIND}, 'unknown') AS kind, count(*) AS count
        FROM calls WHERE status = 'error'
        GROUP BY name, detail, coalesce({_KIND}, 'unknown')
        ORDER BY count DESC, kind"""


def _window(source: Source, scope: StepScope, lines: list[_Line]) -> tuple[int, int]:
    """Give the time from the first start to the last end of the scope's sessions."""
    if not lines:
        return 0, 0
    where, values = in_scope(source, scope, "session_id")
    sql = f"""
        SELECT min(start_ns) AS low, max(coalesce(end_ns, $now)) AS high FROM spans
        WHERE kind = 'session' AND {where}"""
    row = source.query(sql, **values, now=source.now_ns).to_pylist()[0]
    lows = [line.first_ns for line in lines]
    highs = [line.last_ns for line in lines]
    if row["low"] is not None:
        return min(row["low"], *lows), max(row["high"], *highs)
    return min(lows), max(highs)


def _finish(line: _Line, kinds: list[_Kind], wall_ns: int) -> ServiceLine:
    line.role = role_of(line.name)
    if line.queued < NEEDED_FOR_P95:
        line.queue_p95_ns = None
    if line.measured < NEEDED_FOR_P95:
        line.service_p95_ns = None
    if line.measured < NEEDED_FOR_P99:
        line.service_p99_ns = None
    line.busy_share = line.busy_ns / wall_ns if wall_ns else 0.0
    line.mean_open = line.total_ns / wall_ns if wall_ns else 0.0
    own = [one for one in kinds if (one.name, one.detail) == (line.name, line.detail)]
    line.error_kinds = {one.kind: one.count for one in own[:_MOST_KINDS]}
    values = {name: getattr(line, name) for name in ServiceLine.__struct_fields__}
    return ServiceLine(**values)
