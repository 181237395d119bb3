"""What recorded names mean: the roles of phases and spans, and the words for idle slots.

The one table that every page, command and rule goes by. A name that is not in it is welcome; it
simply stands for itself.
"""

from typing import Final

__all__ = [
    "EMPTY_QUEUE_STATES",
    "GATE_PREFIX",
    "OUTBOX_GATE",
    "PAUSE_STATES",
    "PUBLISHED_EVENT",
    "ROLES",
    "SYNC_PARTS",
    "is_sync",
    "role_of",
]

ROLES: Final[dict[str, frozenset[str]]] = {
    "generate": frozenset({"generate", "generation", "chat", "decode", "prefill"}),
    "tool": frozenset({"tool", "toolcall", "tool_call", "execute_tool"}),
    "env": frozenset({"env", "env.step", "env_step", "environment", "sandbox"}),
    "reward": frozenset({"reward", "judge", "score", "verify", "reward_calc"}),
    "train": frozenset({"train", "trainer.update", "train_step", "update", "optimizer.step"}),
    "waiting": frozenset({"wait", "batch.wait", "wait_batch", "queue", "queue_wait", "idle"}),
}

SYNC_PARTS: Final[dict[str, frozenset[str]]] = {
    "pause": frozenset({"weights.pause", "pause"}),
    "transfer": frozenset(
        {"weights.transfer", "weights.publish", "weights.pack", "update_weights"}
    ),
    "resume": frozenset({"weights.resume", "resume"}),
    "sync": frozenset({"weights.sync", "weight_sync", "sync"}),
}
"""The parts of a weight sync; `sync` is the whole of it, where the parts are not recorded."""

PUBLISHED_EVENT: Final = "weights.published"
PAUSE_STATES: Final = frozenset({"paused"})
EMPTY_QUEUE_STATES: Final = frozenset({"queue_empty"})
GATE_PREFIX: Final = "gate:"
"""A state `gate:staleness` on the lane of a pool says which gate held its slots back."""
OUTBOX_GATE: Final = "outbox"
"""The gate that closes when finished sessions are not fetched: the buffer is full."""

_ROLE_OF: Final = {name: role for role, names in ROLES.items() for name in names}
_SYNC_PART_OF: Final = {name: part for part, names in SYNC_PARTS.items() for name in names}


def role_of(name: str) -> str | None:
    """Give the role of a phase or span; None if it has none of the six."""
    return _ROLE_OF.get(name)


def is_sync(name: str) -> bool:
    """Say whether a span or state is part of a weight sync."""
    return name in _SYNC_PART_OF
