"""What names of spans and words for statuses mean to Rollscope."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

__all__ = ["Verdict", "is_final", "phase_of", "plain_attributes", "verdict_of"]

_PHASES: Final = {
    "rollout.controller.generate": "generate",
    "rollout.worker.generate": "generate",
    "xtuner.rollout_controller.generate": "generate",
    "xtuner.rollout_worker.generate": "generate",
    "xtuner.rollout_engine.generate": "generate",
    "judger.run": "reward",
    "xtuner.judger.judge": "reward",
}
_STAGES: Final = ("xtuner.stage", "stage", "stage.name")
_NAMES: Final = {
    "xtuner.task_name": "family",
    "xtuner.session_id": "engine.session_id",
    "xtuner.rollout_id": "session_id",
    "prompt.tokens": "tokens_in",
    "completion.tokens": "tokens_out",
    "finish_reason": "finish",
    "reward.score": "reward",
}
"""Attributes that Rollscope knows by another name; its own receiver of OTLP renames them alike."""


class Verdict(NamedTuple):
    """What a status says of a session that has ended."""

    outcome: str | None
    """None where it ran to its end and nobody has judged it."""
    reason: str | None


_VERDICTS: Final = {
    "completed": Verdict(None, None),
    "success": Verdict(None, None),
    "ok": Verdict(None, None),
    "finished": Verdict(None, None),
    "done": Verdict(None, None),
    "accepted": Verdict("accepted", None),
    "effective": Verdict("accepted", None),
    "archived": Verdict("accepted", None),
    "rejected": Verdict("rejected", None),
    "filtered": Verdict("rejected", "filtered"),
    "empty": Verdict("rejected", "empty"),
    "failed": Verdict("failed", None),
    "failure": Verdict("failed", None),
    "error": Verdict("failed", None),
    "exception": Verdict("failed", "exception"),
    "capacity_exhausted": Verdict("failed", "capacity_exhausted"),
    "skipped": Verdict("failed", "skipped"),
    "timeout": Verdict("timeout", None),
    "timed_out": Verdict("timeout", None),
    "dropped": Verdict("dropped", None),
    "expired": Verdict("dropped", "expired"),
    "stale": Verdict("dropped", "stale"),
    "cancelled": Verdict("cancelled", None),
    "aborted": Verdict("cancelled", "aborted"),
}


def phase_of(name: str, attributes: dict[str, Any]) -> str | None:
    """Give the phase that a span is; None for one that is an ordinary span."""
    known = _PHASES.get(name)
    if known is not None:
        return known
    for key in _STAGES:
        stage = attributes.get(key)
        if isinstance(stage, str) and stage:
            # The built-in spans name themselves as their stage, which makes them no phase.
            return _PHASES.get(stage) or (stage if stage != name else None)
    return None


def is_final(status: str | None) -> bool:
    """Say whether a status is one that ends a rollout."""
    return status is not None and status.lower() in _VERDICTS


def verdict_of(status: str | None) -> Verdict:
    """Say what a status means; unknown ones say nothing."""
    return _VERDICTS.get((status or "").lower(), Verdict(None, None))


def plain_attributes(attributes: dict[str, Any]) -> dict[str, Any]:
    """Give attributes under the names that Rollscope knows them by."""
    return {_NAMES.get(key, key): item for key, item in attributes.items()}
