"""Which revision of AReaL's task runner is imitated where revisions differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from rollscope.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Contract", "choose_contract"]


@dataclass(frozen=True, slots=True)
class Contract:
    """What callers may rely on, as far as it has changed over time."""

    order: Literal["shuffled", "oldest_shuffled", "arrival"]
    """How results are ordered inside the list of one `wait`."""
    task_ids: Literal["required", "auto"]
    """Whether the caller names tasks, or they are counted from 0."""
    zero_timeout: Literal["now", "forever"]
    """What a timeout of 0 means."""
    queue_bound: Literal["unfinished", "queued"] = "unfinished"
    """Which tasks count against `max_queue_size`: all without a result, or those not started."""


_CONTRACTS: Final = {
    "1.0": Contract("shuffled", "required", "now"),
    "pr473": Contract("oldest_shuffled", "auto", "forever"),
}
_ALLOWED: Final[Mapping[str, tuple[str, ...]]] = {
    "order": ("shuffled", "oldest_shuffled", "arrival"),
    "task_ids": ("required", "auto"),
    "zero_timeout": ("now", "forever"),
    "queue_bound": ("unfinished", "queued"),
}


def choose_contract(name: str, changes: Mapping[str, str | None]) -> Contract:
    """Give a contract, with some keywords set alone.

    Raises:
        SettingError: There is no such contract, or a keyword has a value that it cannot have.
    """
    if name not in _CONTRACTS:
        raise SettingError(f"contract is {name!r}; it can be {' or '.join(_CONTRACTS)}")
    base = _CONTRACTS[name]
    chosen: dict[str, Any] = {key: getattr(base, key) for key in _ALLOWED}
    for key, value in changes.items():
        if value is None:
            continue
        if value not in _ALLOWED[key]:
            raise SettingError(f"{key} is {value!r}; it can be {', '.join(_ALLOWED[key])}")
        chosen[key] = value
    return Contract(**chosen)
