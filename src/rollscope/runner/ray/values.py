"""Large values, which stay in Ray's object store until somebody asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import force_setattr

from rollscope.runner.groups import GroupOutcome
from rollscope.runner.outcome import Reason, Status, describe_failure
from rollscope.runner.ray.extra import need_ray

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rollscope.runner.outcome import Outcome
    from rollscope.runner.state import Codec

__all__ = ["FetchingCodec", "StoredValue", "afetch_values", "fetch_values", "hand_out_references"]


class StoredValue:
    """A value in the object store, owned by the head, so that it outlives the actor."""

    __slots__ = ("ref", "size")

    def __init__(self, ref: Any, size: int) -> None:  # noqa: ANN401  (Ray's reference)
        self.ref = ref
        self.size = size

    def __repr__(self) -> str:
        return f"StoredValue({self.size} bytes)"


class FetchingCodec:
    """Writes values that lie in the object store, since references mean nothing to a later Ray."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def encode(self, given: Any) -> bytes:  # noqa: ANN401  (anything that a task takes or gives)
        """Encode it, or what it refers to."""
        ray = need_ray()
        ref = given.ref if type(given) is StoredValue else given
        return self._codec.encode(ray.get(ref) if isinstance(ref, ray.ObjectRef) else given)

    def decode(self, data: bytes) -> Any:  # noqa: ANN401  (as above)
        """Give back what was encoded."""
        return self._codec.decode(data)


def _stored(outcomes: Iterable[Outcome]) -> list[tuple[Outcome, StoredValue]]:
    return [
        (part, part.value)
        for outcome in outcomes
        for part in outcome.parts
        if type(part.value) is StoredValue
    ]


def _finished(outcomes: list[Outcome]) -> list[Outcome]:
    """Give outcomes back; that of a group may list the values of the members it kept."""
    for outcome in outcomes:
        if isinstance(outcome, GroupOutcome) and _lists_stored(outcome.value):
            force_setattr(outcome, "value", [kept.value for kept in outcome.kept])
    return outcomes


def _lists_stored(value: object) -> bool:
    return type(value) is list and any(type(one) is StoredValue for one in value)


def fetch_values(outcomes: list[Outcome]) -> list[Outcome]:
    """Fetch the large values of outcomes; for threads."""
    for outcome, stored in _stored(outcomes):
        try:
            force_setattr(outcome, "value", need_ray().get(stored.ref))
        except Exception as error:
            _note_lost(outcome, error)
    return _finished(outcomes)


async def afetch_values(outcomes: list[Outcome]) -> list[Outcome]:
    """Fetch the large values of outcomes; for coroutines."""
    for outcome, stored in _stored(outcomes):
        try:
            force_setattr(outcome, "value", await stored.ref)
        except Exception as error:
            _note_lost(outcome, error)
    return _finished(outcomes)


def hand_out_references(outcomes: list[Outcome]) -> list[Outcome]:
    """Put Ray's references in the place of large values."""
    for outcome, stored in _stored(outcomes):
        force_setattr(outcome, "value", stored.ref)
    return _finished(outcomes)


def _note_lost(outcome: Outcome, error: Exception) -> None:
    """Say that a value is gone, with the machine whose store it lay in."""
    force_setattr(outcome, "value", None)
    force_setattr(outcome, "status", Status.FAILED)
    force_setattr(outcome, "reason", Reason.LOST)
    force_setattr(outcome, "error", describe_failure(error, "infra"))
