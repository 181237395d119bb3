"""How Ray is used beside a program that uses it too: never started, and never while it stops.

Ray starts itself when anything of it is called, and takes its machinery apart under threads that
still use it. So whatever this package does with Ray in a thread of its own it does inside of
`using_ray`, and `ray.shutdown` waits for that. Whoever wants to know is told before and after.
"""

from __future__ import annotations

import atexit
import functools
import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from rollscope.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = [
    "RayAway",
    "after_own_cluster",
    "before_shutdown",
    "guard_shutdown",
    "is_driver",
    "is_initialised",
    "need_ray",
    "using_ray",
]

_lock = threading.RLock()
_before: dict[object, Callable[[], None]] = {}
_after_own: dict[object, Callable[[], None]] = {}
_shutdown: Callable[..., None] | None = None
"""Ray's own, once ours stands in its place."""
_is_forked = False

_NOT_INITIALISED: Final = "Ray is not initialised in this process; call ray.init()"
_FORKED: Final = (
    "a forked process cannot use the Ray of its parent, which sends what this one leaves behind"
)


class RayAway(ConnectionError):
    """Ray cannot be used now; the message says why."""


def need_ray() -> Any:  # noqa: ANN401  (a module that brings no useful types)
    """Give Ray, without starting it.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        import ray
        import ray.actor
        import ray.remote_function
    except ImportError as error:
        raise MissingExtra(
            f"recording over Ray needs it ({error}); install with: pip install 'rollscope[ray]'"
        ) from error
    return ray


@contextmanager
def using_ray() -> Iterator[Any]:
    """Use Ray for a short while, in which it is not shut down.

    Raises:
        RayAway: It is not initialised here.
    """
    ray = need_ray()
    with _lock:
        if _is_forked:
            raise RayAway(_FORKED)
        if not ray.is_initialized():
            raise RayAway(_NOT_INITIALISED)
        yield ray


def before_shutdown(key: object, callback: Callable[[], None] | None) -> None:
    """Have something called before Ray is shut down; None: no longer.

    Args:
        key: Whose callback it is, or what it is about; the last one counts.
        callback: What to call; it may use Ray, in other threads too.
    """
    if callback is None:
        _before.pop(key, None)
    else:
        _before[key] = callback


def after_own_cluster(key: object, callback: Callable[[], None]) -> None:
    """Have something called once a cluster that this process had started is gone, all of it.

    Args:
        key: What it is about; the last callback about it counts.
        callback: What to call.
    """
    _after_own[key] = callback


def is_initialised() -> bool:
    """Say whether Ray can be used now."""
    return not _is_forked and bool(need_ray().is_initialized())


def is_driver() -> bool:
    """Say whether this program uses Ray now and is no worker: when it ends, so do its workers."""
    ray = need_ray()
    is_worker = ray._private.worker.global_worker.mode == ray.WORKER_MODE
    return is_initialised() and not is_worker


def guard_shutdown() -> None:
    """Have `ray.shutdown` wait for whoever uses Ray; at exit too, in the order of registration."""
    global _shutdown
    with _lock:
        if _shutdown is not None:
            return
        import ray._private.worker as ray_worker

        ray = need_ray()
        original: Callable[..., None] = ray_worker.shutdown

        @functools.wraps(original)
        def shutdown(*args: Any, **kwargs: Any) -> None:
            _call_all(_before)
            with _lock:
                node = ray_worker._global_node
                is_own = node is not None and node.is_head()
                original(*args, **kwargs)
            if is_own:
                _call_all(_after_own)

        _shutdown = original
        ray_worker.shutdown = shutdown
        ray.shutdown = shutdown
        atexit.unregister(original)
        atexit.register(shutdown, _exiting_interpreter=True)


def _call_all(callbacks: Mapping[Any, Callable[[], None]]) -> None:
    for callback in list(callbacks.values()):
        with suppress(Exception):  # Ray's user is to see Ray's faults only
            callback()


def _in_forked_child() -> None:
    global _is_forked, _lock
    _is_forked = True
    _before.clear()
    _after_own.clear()
    _lock = threading.RLock()  # the parent's may be held for good


os.register_at_fork(after_in_child=_in_forked_child)
