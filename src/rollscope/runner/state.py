"""What is kept of a runner's work so that another one can go on with it.

The default codec is pickle, because arguments and results are any objects (arrays, dataclasses,
tuples) and have to come back as what they were, which msgpack and JSON do not promise. A state is
therefore to be trusted as much as the program that wrote it.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rollscope.runner.task import Task, TaskOptions

__all__ = [
    "SCHEMA",
    "Codec",
    "Input",
    "PickleCodec",
    "RunnerState",
    "SavedCall",
    "SavedInput",
    "SavedOutcome",
]

SCHEMA: Final = 1


class Codec(Protocol):
    """Turns what functions take and give into bytes, and back."""

    def encode(self, given: Any) -> bytes:  # noqa: ANN401  (anything that a task takes or gives)
        """Give bytes; raise whatever fits if that cannot be done."""

    def decode(self, data: bytes) -> Any:  # noqa: ANN401  (as above)
        """Give back what was encoded."""


class PickleCodec:
    """Encodes with pickle."""

    def encode(self, given: Any) -> bytes:  # noqa: ANN401  (anything)
        """Pickle it."""
        return pickle.dumps(given, protocol=pickle.HIGHEST_PROTOCOL)

    def decode(self, data: bytes) -> Any:  # noqa: ANN401  (anything)
        """Unpickle it."""
        return pickle.loads(data)  # noqa: S301  (a state is trusted like the program that wrote it)


class SavedCall(msgspec.Struct, array_like=True):
    """A function and what it is called with."""

    fn: str
    """Where to import it from, as `module:name`."""
    payload: bytes
    """Positional and keyword arguments."""


class SavedInput(msgspec.Struct, array_like=True):
    """A task, or a group, that has no outcome yet."""

    id: int
    calls: list[SavedCall]
    """One, or one for each member of a group."""
    options: bytes
    spec: bytes | None = None
    """What the group is like; None for a task."""
    attempts: int = 0
    """How many were begun."""
    partial: bytes | None = None
    """The last checkpoint."""


class SavedOutcome(msgspec.Struct, array_like=True):
    """An outcome that nobody has acknowledged."""

    id: int
    finished_ns: int
    weight: int
    record: bytes
    """The fields that Rollscope knows how to keep, by name."""
    value: bytes | None
    """None for a group whose value is the list of its members' values."""
    partial: bytes
    members: list[SavedOutcome] | None = None
    """Those of a group."""


class RunnerState(msgspec.Struct, kw_only=True):
    """All that a fresh runner needs to go on."""

    schema: int = SCHEMA
    clock_ns: int = 0
    """The runner's clock when the state was taken."""
    next_id: int = 0
    acked: int = 0
    """Tasks that are done with."""
    version: int | None = None
    inputs: list[SavedInput] = []
    outcomes: list[SavedOutcome] = []
    counts: dict[str, int] = {}
    """Outcomes so far, by `status/reason`."""
    gates: dict[str, bytes] = {}
    """Of gates that keep a state of their own."""
    random: tuple[int, tuple[int, ...], float | None] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing ever happened."""
        return not self.next_id


class Input:
    """An unfinished task or group as a runner keeps it: by reference, encoded only when asked."""

    __slots__ = ("attempts", "calls", "options", "partial", "spec")

    def __init__(
        self,
        calls: Sequence[tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]],
        options: TaskOptions,
        spec: Any = None,  # noqa: ANN401  (of `groups`)
    ) -> None:
        self.calls, self.options, self.spec = calls, options, spec
        self.attempts = 0
        self.partial: Any = None

    def seen(self, task: Task | None) -> Input:
        """Give a copy that knows how far its task is."""
        copy = Input(self.calls, self.options, self.spec)
        copy.attempts, copy.partial = self.attempts, self.partial
        if task is not None:
            copy.attempts = task.attempt - (task.attempt_ns is None)
            copy.partial = None if task.rare is None else task.rare.partial
        return copy

    @property
    def name(self) -> str:
        """What its function is called."""
        fn = self.calls[0][0]
        return getattr(fn, "__qualname__", type(fn).__qualname__)
