"""Functions, arguments and values as bytes, each apart: a bad one hurts only its own task."""

from __future__ import annotations

import importlib
import pickle
from contextvars import Context, ContextVar
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from rollscope.errors import SettingError
from rollscope.runner.ray.extra import need_ray

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rollscope.runner.task import Task, TaskOptions

__all__ = [
    "LARGE_BYTES",
    "CallPacker",
    "Packed",
    "Unpacker",
    "find_contextvar",
    "name_of",
    "pack_value",
    "unpack_arguments",
]

LARGE_BYTES: Final = 100_000
"""Values over this stay in the object store."""

_PLAIN: Final = frozenset((type(None), bool, int, float, str, bytes))
_KEPT: Final = 256


class Packed(msgspec.Struct, frozen=True):
    """A value as bytes, or how large it is if it is too large for a message."""

    data: bytes | None
    size: int


def pack_value(value: object, large_bytes: int | None = LARGE_BYTES) -> Packed:
    """Make bytes of a value.

    Args:
        value: What to pack.
        large_bytes: Values over this are only measured; None packs all.

    Raises:
        Exception: It cannot be serialised; of any type, since its own code may have a say.
    """
    if type(value) in _PLAIN:
        data = pickle.dumps(value)
        is_large = large_bytes is not None and len(data) > large_bytes
        return Packed(None if is_large else data, len(data))
    dumps = need_ray().cloudpickle.dumps
    buffers: list[pickle.PickleBuffer] = []
    data = dumps(value, protocol=5, buffer_callback=buffers.append)
    size = len(data) + sum(buffer.raw().nbytes for buffer in buffers)
    if large_bytes is not None and size > large_bytes:
        return Packed(None, size)
    return Packed(dumps(value) if buffers else data, size)


def name_of(function: object) -> str:
    """Give what a function is called."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def find_contextvar(path: str) -> ContextVar[Any]:
    """Give the context variable that an import path names.

    Raises:
        SettingError: There is none.
    """
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingError(f"no context variable at {path!r}: {error}") from error
    if not isinstance(found, ContextVar):
        raise SettingError(f"{path!r} is no context variable; give 'package.module:variable'")
    return found


class CallPacker:
    """Packs what a task calls, and the settings that an actor needs of it."""

    def __init__(self, contextvars: Iterable[str]) -> None:
        self._vars = {path: find_contextvar(path) for path in contextvars}
        self._options: dict[int, tuple[TaskOptions, bytes]] = {}
        self._functions: dict[int, tuple[Any, bytes]] = {}
        self._dumps = need_ray().cloudpickle.dumps

    def pack_function(self, function: Any) -> bytes:  # noqa: ANN401  (whatever can be called)
        """Make bytes of a function; a plain one, which has no state of its own, is packed once."""
        known = self._functions.get(id(function))
        if known is not None:
            return known[1]
        packed: bytes = self._dumps(function)
        if type(function) is FunctionType and function.__closure__ is None:
            if len(self._functions) >= _KEPT:
                self._functions.clear()
            self._functions[id(function)] = (function, packed)  # kept: its id stays its own
        return packed

    def pack_arguments(self, task: Task) -> bytes:
        """Make bytes of what a task is called with, and of the context variables that cross."""
        crossing = {}
        if self._vars:
            crossing = {
                path: task.origin[var] for path, var in self._vars.items() if var in task.origin
            }
        given = (task.args, dict(task.kwargs), crossing)
        if not crossing and not task.kwargs and all(type(one) in _PLAIN for one in task.args):
            return pickle.dumps(given)  # a tenth of the time
        packed: bytes = self._dumps(given)
        return packed

    def pack_options(self, options: TaskOptions) -> bytes:
        """Make bytes of settings; those that many tasks share are packed once."""
        known = self._options.get(id(options))
        if known is not None:
            return known[1]
        retry = options.retry
        there = replace(
            options,
            id=None,
            key=None,
            tier="train",
            priority=0,
            queue_timeout_s=None,
            group=None,
            # Its rules say there what an exception tells about; trying again is the head's.
            retry=None if retry is None else replace(retry, per_task=0),
        )
        packed: bytes = self._dumps(there)
        if len(self._options) >= _KEPT:
            self._options.clear()
        self._options[id(options)] = (options, packed)
        return packed


def unpack_arguments(data: bytes) -> tuple[tuple[Any, ...], dict[str, Any], Context]:
    """Give what a function is called with, and the context it runs in."""
    args, kwargs, crossing = pickle.loads(data)  # noqa: S301  (sent by our own head)
    context = Context()
    for path, value in crossing.items():
        context.run(find_contextvar(path).set, value)
    return args, kwargs, context


class Unpacker:
    """Reads what many messages repeat, functions and settings, only once."""

    def __init__(self) -> None:
        self._known: dict[bytes, Any] = {}

    def unpack(self, data: bytes) -> Any:  # noqa: ANN401  (whatever was packed)
        """Give what bytes stand for."""
        known = self._known.get(data)
        if known is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            known = self._known[data] = pickle.loads(data)  # noqa: S301  (sent by our own head)
        return known
