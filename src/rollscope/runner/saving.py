"""Encodes what is kept of a runner's work, and decodes it again.

Functions travel as import paths; settings and the fields of outcomes are ours and are pickled;
what functions take and give goes through the codec.
"""

from __future__ import annotations

import importlib
import pickle
from operator import attrgetter
from random import Random
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rollscope.errors import StateError
from rollscope.runner.groups.outcome import GroupOutcome
from rollscope.runner.outcome import Outcome, Reason, Status
from rollscope.runner.state import SCHEMA, RunnerState, SavedCall, SavedInput, SavedOutcome
from rollscope.runner.task import TaskOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.runner.state import Codec, Input

__all__ = [
    "load_calls",
    "load_counts",
    "load_gates",
    "load_options",
    "load_outcome",
    "load_spec",
    "load_state",
    "save_input",
    "save_outcome",
]

# --- the whole -----------------------------------------------------------------------------------


def load_state(given: Any) -> RunnerState:  # noqa: ANN401  (whatever a program took for a state)
    """Read what `state_dict` gave.

    Raises:
        StateError: It is of another schema, or something else altogether.
    """
    schema = given.get("schema") if isinstance(given, dict) else None
    if schema is not None and schema != SCHEMA:
        raise StateError(f"the state has schema {schema}, and this is Rollscope for {SCHEMA}")
    try:
        state = msgspec.convert(given, RunnerState)
        if state.random is not None:
            Random().setstate(state.random)  # noqa: S311  (to see whether it is one)
    except (ValueError, TypeError) as error:
        raise StateError(f"this is not the state of a runner: {error}") from error
    return state


def load_counts(state: RunnerState) -> dict[tuple[Status, Reason], int]:
    """Give how many outcomes of each kind there were.

    Raises:
        StateError: It counts what this version does not know.
    """
    counts: dict[tuple[Status, Reason], int] = {}
    for name, count in state.counts.items():
        status, _, reason = name.partition("/")
        try:
            counts[Status(status), Reason(reason)] = count
        except ValueError as error:
            raise StateError(f"the counts of the state cannot be restored: {error}") from error
    return counts


def load_gates(state: RunnerState, codec: Codec) -> dict[str, Any]:
    """Decode what gates have kept.

    Raises:
        StateError: It cannot be decoded; the message names the gate.
    """
    states: dict[str, Any] = {}
    for name, data in state.gates.items():
        try:
            states[name] = codec.decode(data)
        except Exception as error:
            raise StateError(
                f"the gate {name!r} cannot be restored: {type(error).__qualname__}: {error}"
            ) from error
    return states


# --- inputs --------------------------------------------------------------------------------------


def save_input(given: Input, task_id: int, codec: Codec) -> SavedInput:
    """Encode an unfinished task or group.

    Raises:
        StateError: Its function cannot be imported, or an argument not be encoded.
    """
    who = f"the task {given.name}" if task_id < 0 else f"task {task_id} ({given.name})"
    try:
        calls = [
            SavedCall(_path_of(fn), codec.encode((args, dict(kwargs))))
            for fn, args, kwargs in given.calls
        ]
        spec = None if given.spec is None else _pack(given.spec)
        partial = None if given.partial is None else codec.encode(given.partial)
        options = _pack(_changed_options(given.options))
    except Exception as error:
        raise StateError(f"{who} cannot be kept: {type(error).__qualname__}: {error}") from error
    return SavedInput(task_id, calls, options, spec, given.attempts, partial)


def load_calls(
    saved: SavedInput, codec: Codec
) -> list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]:
    """Decode the calls of a task or group.

    Raises:
        StateError: A function is no longer there, or arguments cannot be decoded.
    """
    try:
        return [(_import(call.fn), *codec.decode(call.payload)) for call in saved.calls]
    except Exception as error:
        raise StateError(
            f"task {saved.id} ({saved.calls[0].fn}) cannot be restored: "
            f"{type(error).__qualname__}: {error}"
        ) from error


def load_options(saved: SavedInput) -> TaskOptions:
    """Decode the settings of a task or group."""
    known = set(TaskOptions.__struct_fields__)
    changes = {name: value for name, value in _unpack(saved.options).items() if name in known}
    return TaskOptions(**changes)


def load_spec(saved: SavedInput) -> Any:  # noqa: ANN401  (of `groups`)
    """Decode what a group is like; None for a task."""
    return None if saved.spec is None else _unpack(saved.spec)


def _changed_options(options: TaskOptions) -> dict[str, Any]:
    """Give the settings that differ from their defaults, by name; who owns a member is left out."""
    plain = TaskOptions()
    values = {name: getattr(options, name) for name in TaskOptions.__struct_fields__}
    return {name: value for name, value in values.items() if value != getattr(plain, name)}


def _path_of(fn: Callable[..., Any]) -> str:
    """Give the import path of a function, if importing it gives the same one."""
    module, name = getattr(fn, "__module__", None), getattr(fn, "__qualname__", None)
    path = f"{module}:{name}"
    if not module or not name or "<" in name or _import(path) != fn:
        raise TypeError(f"{fn!r} cannot be imported by name; submit a function of a module")
    return path


def _import(path: str) -> Any:  # noqa: ANN401  (whatever is there)
    module, _, name = path.partition(":")
    return attrgetter(name)(importlib.import_module(module))


# --- outcomes ------------------------------------------------------------------------------------

_APART: Final = frozenset(
    {"value", "partial", "span", "delivered_ns", "age", "members", "kept", "cut", "replaced"}
)
"""Fields that go through the codec, or mean nothing to another runner."""
_CHOSEN: Final = ("kept", "cut", "replaced")
_TIMES: Final = ("submitted_ns", "admitted_ns", "started_ns", "finished_ns")


def save_outcome(outcome: Outcome, codec: Codec) -> SavedOutcome:
    """Encode an outcome.

    Raises:
        StateError: Its value or checkpoint cannot be encoded.
    """
    names = [name for name in outcome.__struct_fields__ if name not in _APART]
    record: dict[str, Any] = {name: getattr(outcome, name) for name in names}
    members: list[SavedOutcome] | None = None
    try:
        if isinstance(outcome, GroupOutcome):
            members = [save_outcome(member, codec) for member in outcome.members]
            for choice in _CHOSEN:
                record[choice] = [member.id for member in getattr(outcome, choice)]
        is_joined = members is not None and _is_list_of_kept(outcome)
        return SavedOutcome(
            outcome.id,
            outcome.finished_ns,
            outcome.weight,
            _pack(record),
            None if is_joined else codec.encode(outcome.value),
            codec.encode(outcome.partial),
            members,
        )
    except StateError:
        raise
    except Exception as error:
        raise StateError(
            f"the outcome of task {outcome.id} cannot be kept: {type(error).__qualname__}: {error}"
        ) from error


def _is_list_of_kept(outcome: Outcome) -> bool:
    """Whether a group's value would only be the same values a second time."""
    values = [member.value for member in getattr(outcome, "kept", ())]
    given = outcome.value
    return (
        isinstance(given, list)
        and len(given) == len(values)
        and all(one is other for one, other in zip(given, values, strict=True))
    )


def load_outcome(saved: SavedOutcome, codec: Codec, later_ns: int = 0) -> Outcome:
    """Decode an outcome.

    Args:
        saved: What was encoded.
        codec: What it was encoded with.
        later_ns: By how much the clock of this process is ahead.

    Raises:
        StateError: It cannot be decoded.
    """
    try:
        record = _unpack(saved.record)
        for name in _TIMES:
            if record[name] is not None:
                record[name] += later_ns
        record["partial"] = codec.decode(saved.partial)
        value = None if saved.value is None else codec.decode(saved.value)
        if saved.members is None:
            return Outcome(value=value, **_known(Outcome, record))
        members = {one.id: load_outcome(one, codec, later_ns) for one in saved.members}
        for choice in _CHOSEN:
            record[choice] = tuple(members[member_id] for member_id in record[choice])
        if saved.value is None:
            value = [member.value for member in record["kept"]]
        record["members"] = tuple(members.values())
        return GroupOutcome(value=value, **_known(GroupOutcome, record))
    except StateError:
        raise
    except Exception as error:
        raise StateError(
            f"the outcome of task {saved.id} cannot be restored: "
            f"{type(error).__qualname__}: {error}"
        ) from error


def _known(kind: type[Outcome], record: dict[str, Any]) -> dict[str, Any]:
    """Leave out what this version does not know, and keep enumerations what they are."""
    known = {name: value for name, value in record.items() if name in kind.__struct_fields__}
    known["status"], known["reason"] = Status(known["status"]), Reason(known["reason"])
    return known


def _pack(ours: Any) -> bytes:  # noqa: ANN401  (settings, and fields of outcomes)
    return pickle.dumps(ours, protocol=pickle.HIGHEST_PROTOCOL)


def _unpack(data: bytes) -> Any:  # noqa: ANN401  (as above)
    return pickle.loads(data)  # noqa: S301  (a state is trusted like the program that wrote it)
