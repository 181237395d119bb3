"""What a rollout state says of itself: any object with an id and a status counts as one.

Both generations are read: `uid` and `session_uid` of the producer trace, `rollout_id`, `group_id`
and `session_id` of the later one. Nothing here fails on an odd state; what it does not say is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rollscope.integrations.wholes import whole

__all__ = [
    "CARRIER_FIELD",
    "CHAIN_FIELD",
    "Member",
    "build_produce_batch_id",
    "build_trace_id",
    "extra_fields_of",
    "final_attributes",
    "initial_attributes",
    "is_state",
    "members_of",
    "reward_of",
    "status_of",
]

CARRIER_FIELD: Final = "_xtuner_trace_carrier"
CHAIN_FIELD: Final = "_xtuner_trace_call_chain"
_IDS: Final = ("uid", "rollout_id")
_STEPS: Final = ("train_step", "model_step", "producer_future_step", "produce_batch_id")


@dataclass(frozen=True, slots=True)
class Member:
    """One rollout that a span is about, as it was when it was looked at."""

    trace_id: str
    uid: Any
    session_uid: Any = None
    group: Any = None
    task_name: str | None = None
    status: str | None = None
    error_msg: str | None = None
    train_step: int | None = None
    model_step: int | None = None
    producer_future_step: int | None = None
    produce_batch_id: str | None = None
    state: Any = field(default=None, repr=False, compare=False)

    @property
    def step(self) -> int | None:
        """The step that it is produced for."""
        return self.train_step if self.train_step is not None else self.producer_future_step


def build_trace_id(task_name: object, uid: object) -> str:
    """Name a rollout across processes."""
    return f"{task_name or 'unknown'}:{uid}"


def build_produce_batch_id(
    train_step: object = None, model_step: object = None, producer_future_step: object = None
) -> str | None:
    """Name the batch that a rollout is produced in; None if nothing is known of it."""
    steps = dict(zip(_STEPS, (train_step, model_step, producer_future_step), strict=False))
    known = [f"{name}={step}" for name, step in steps.items() if step is not None]
    return "/".join(known) or None


def is_state(value: object) -> bool:
    """Say whether something is a rollout state."""
    return hasattr(value, "status") and any(hasattr(value, name) for name in _IDS)


def members_of(target: object) -> list[Member]:
    """Give the rollouts of a state, or of a list of them; none of anything else."""
    if isinstance(target, (list, tuple)):
        return [_member(item) for item in target if is_state(item)]
    return [_member(target)] if is_state(target) else []


def extra_fields_of(state: object) -> dict[str, Any] | None:
    """Give the map that travels with a state, if it has one."""
    extra = getattr(state, "extra_fields", None)
    return extra if isinstance(extra, dict) else None


def status_of(state: object) -> str | None:
    """Give the status of a state as text."""
    status = getattr(state, "status", None)
    status = getattr(status, "value", status)
    return None if status is None else str(status)


def reward_of(state: object) -> tuple[Any, Any]:
    """Give the score of a state, and whether it passed."""
    reward = getattr(state, "reward", None)
    if isinstance(reward, Mapping):
        return reward.get("score"), reward.get("pass")
    is_number = isinstance(reward, (int, float)) and not isinstance(reward, bool)
    return (reward if is_number else None), None


def initial_attributes(state: object) -> dict[str, Any]:
    """Give the attributes that are known when a span begins."""
    extra = extra_fields_of(state) or {}
    uid = _first(state, "rollout_id", "uid")
    attributes = {
        "xtuner.status": status_of(state),
        "xtuner.rollout_id": uid,
        "xtuner.group_id": _first(state, "group_id", "message_uid"),
        "xtuner.session_id": _first(state, "session_id", "session_uid"),
        "xtuner.task_name": getattr(state, "task_name", None) or extra.get("task_name"),
        "xtuner.producer_future_step": _future_step(extra),
        "prompt.tokens": _length(getattr(state, "prompt_ids", None)),
    }
    return {name: item for name, item in attributes.items() if item is not None}


def final_attributes(state: object) -> dict[str, Any]:
    """Give the attributes that are known when a span ends."""
    score, passed = reward_of(state)
    attributes = initial_attributes(state) | {
        "finish_reason": getattr(state, "finish_reason", None),
        "error.message": getattr(state, "error_msg", None),
        "completion.tokens": _length(getattr(state, "response_ids", None)),
        "reward.score": score,
        "reward.pass": passed,
    }
    return {name: item for name, item in attributes.items() if item is not None}


def _member(state: object) -> Member:
    extra = extra_fields_of(state) or {}
    task_name = getattr(state, "task_name", None) or extra.get("task_name")
    uid = _first(state, "uid", "rollout_id")
    steps = [whole(extra.get(f"_trace_{name}")) for name in _STEPS[:3]]
    if steps[2] is None:
        steps[2] = whole(_future_step(extra))
    batch = extra.get("_trace_produce_batch_id")
    error = getattr(state, "error_msg", None)
    return Member(
        trace_id=build_trace_id(task_name, uid),
        uid=uid,
        session_uid=_first(state, "session_uid", "session_id"),
        group=_first(state, "group_id", "message_uid"),
        task_name=None if task_name is None else str(task_name),
        status=status_of(state),
        error_msg=None if error is None else str(error),
        train_step=steps[0],
        model_step=steps[1],
        producer_future_step=steps[2],
        produce_batch_id=build_produce_batch_id(*steps) if batch is None else str(batch),
        state=state,
    )


def _first(state: object, *names: str) -> Any:  # noqa: ANN401  (an id of any type)
    for name in names:
        found = getattr(state, name, None)
        if found is not None:
            return found
    return None


def _future_step(extra: dict[str, Any]) -> Any:  # noqa: ANN401  (a number, or text)
    found = extra.get("producer_future_step")
    return extra.get("_trace_producer_future_step") if found is None else found


def _length(value: Any) -> int | None:  # noqa: ANN401  (a list, or a tensor)
    try:
        return None if value is None else len(value)
    except TypeError:
        return None
