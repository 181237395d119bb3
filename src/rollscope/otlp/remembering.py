"""What is remembered from one request to the next: bounded, the oldest goes first."""

from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Recent"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A map that keeps what was put in last.

    Looking something up does not make it younger: a trace is over soon after its last span came,
    and what is put in again is young again.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """Give what is known under a key."""
        found = self._young.get(key)
        return found if found is not None else self._old.get(key)

    def put(self, key: K, value: V) -> None:
        """Keep a value; from half of what is allowed on, the older half is on its way out."""
        self._young[key] = value
        if len(self._young) * 2 >= self._most:
            self._old, self._young = self._young, {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
