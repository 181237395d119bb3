"""What names of spans and words for statuses mean to Rollscope."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from rollscope.importing.statuses import read_status
from rollscope.model.kinds import STATUS_CODES, Status

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
_STAGE_KEYS: Final = frozenset(_STAGES)
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

_KNOWN: Final = frozenset(_NAMES)


class Verdict(NamedTuple):
    """What a status says of a session that has ended."""

    outcome: str | None
    """None where it ran to its end and nobody has judged it."""
    reason: str | None


_OPEN: Final = STATUS_CODES[Status.OPEN]
_PLAIN: Final = frozenset(
    ("accepted", "effective", "archived", "rejected", "failed", "failure", "error", "timeout",
     "timed_out", "dropped", "cancelled")
)  # fmt: skip
"""Words that say no more than the outcome; others are a reason too."""


def phase_of(name: str, attributes: dict[str, Any]) -> str | None:
    """Give the phase that a span is; None for one that is an ordinary span."""
    known = _PHASES.get(name)
    if known is not None:
        return known
    if _STAGE_KEYS.isdisjoint(attributes):
        return None
    for key in _STAGES:
        stage = attributes.get(key)
        if isinstance(stage, str) and stage:
            # The built-in spans name themselves as their stage, which makes them no phase.
            return _PHASES.get(stage) or (stage if stage != name else None)
    return None


def is_final(status: str | None) -> bool:
    """Say whether a status is one that ends a rollout."""
    told = read_status(status, has_end=False)
    return status is not None and told.is_known and told.status != _OPEN


def verdict_of(status: str | None) -> Verdict:
    """Say what a status means; unknown ones say nothing."""
    outcome = read_status(status, has_end=True).outcome
    if outcome is None or status is None:
        return Verdict(None, None)
    word = status.strip().lower()
    return Verdict(str(outcome), None if word in _PLAIN else word)


def plain_attributes(attributes: dict[str, Any]) -> dict[str, Any]:
    """Give a copy of attributes, under the names that Rollscope knows them by."""
    if _KNOWN.isdisjoint(attributes):
        return attributes.copy()
    return {_NAMES.get(key, key): item for key, item in attributes.items()}
