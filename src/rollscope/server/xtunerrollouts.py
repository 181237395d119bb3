"""Rollouts of a run by XTuner's names, each with its spans."""

from typing import Any, Final

import msgspec

from rollscope.store.embedded import RunStore

__all__ = ["OPEN", "Rollout", "quantile", "read_rollouts", "read_steps"]

OPEN: Final = ("open", "lost")
"""Statuses of spans whose end is not known."""
_MOST_SPANS: Final = 100_000
_STATUSES: Final = {"open": "init", "lost": "init", "ok": "completed", "error": "failed"}
_STEPS: Final = "SELECT DISTINCT step FROM sessions WHERE step IS NOT NULL ORDER BY step"
_SESSIONS: Final = """
    SELECT session_id AS id, family, group_key, step, version_start, status, start_ns, end_ns,
        reward, attrs ->> 'session_id' AS uid, attrs ->> 'engine.session_id' AS session_uid,
        attrs ->> 'source_status' AS source_status, attrs ->> 'batch' AS batch
    FROM sessions WHERE $is_all OR step = $step ORDER BY start_ns"""
_SPANS: Final = """
    SELECT session_id AS id, span_id, parent_id, coalesce(attrs ->> 'span_name', name) AS name,
        kind, name AS stage, status, start_ns, end_ns, duration_ns,
        attrs ->> 'error.type' AS error_type, attrs ->> 'error.message' AS error,
        attrs ->> 'worker_rank' AS worker_rank
    FROM spans
    WHERE kind IN ('phase', 'span') AND session_id IN
        (SELECT session_id FROM sessions WHERE $is_all OR step = $step)
    ORDER BY start_ns LIMIT $most"""


class Rollout(msgspec.Struct):
    """A session."""

    trace_id: str
    """What the producer trace calls it."""
    row: dict[str, Any]
    spans: list[dict[str, Any]]
    """By their start."""

    @property
    def status(self) -> str:
        """The status of its state, as the program has told it, or as it follows from its end."""
        told = self.row["source_status"]
        return str(told) if told else _STATUSES.get(self.row["status"], self.row["status"])


def read_steps(store: RunStore) -> list[int]:
    """Give the steps that rollouts were made for."""
    found: list[int] = store.query(_STEPS)["step"].to_pylist()
    return found


def read_rollouts(store: RunStore, step: int | None) -> list[Rollout]:
    """Give the rollouts of a step, or all; of the spans no more than fit into an answer."""
    chosen = {"is_all": step is None, "step": 0 if step is None else step}
    rollouts: dict[int, Rollout] = {}
    for row in store.query(_SESSIONS, **chosen).to_pylist():
        uid = f"{row['id']:016x}" if row["uid"] is None else row["uid"]
        row["uid"] = int(uid) if uid.isascii() and uid.isdigit() and len(uid) < 16 else uid
        rollouts[row["id"]] = Rollout(f"{row['family'] or 'unknown'}:{uid}", row, [])
    for span in store.query(_SPANS, **chosen, most=_MOST_SPANS).to_pylist():
        if span["id"] in rollouts:
            rollouts[span["id"]].spans.append(span)
    return list(rollouts.values())


def quantile(ordered: list[float], share: float) -> float | None:
    """Give a quantile of ordered values, between two of them by their distance."""
    if not ordered:
        return None
    at = (len(ordered) - 1) * share
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)
