"""Ending a stack from outside, and cleaning up after one whose supervisor was killed."""

import os
import signal
import time
from contextlib import suppress
from typing import Final

from rollscope.errors import CommandError
from rollscope.stack.processes import Identity, end_group, is_alive
from rollscope.stack.statefile import Lock, StateDir
from rollscope.stack.supervisor import PATIENCE_S

__all__ = ["check_host", "end_orphans", "stop_stack"]

_POLL_S: Final = 0.05
_SLACK_S: Final = 10.0


def stop_stack(where: StateDir) -> list[str]:
    """End whatever runs; gives the names of what was ended, in order.

    Raises:
        CommandError: It runs on another host.
    """
    holder = where.holder()
    ended: list[str] = []
    if holder is not None:
        check_host(holder)
        state = where.read()
        members = [] if state is None else state.members
        _end_supervisor(where, PATIENCE_S * (len(members) + 1) + _SLACK_S)
        ended = [each.name for each in reversed(members) if each.process is not None]
    if where.path.is_dir():
        ended += [name for name in _end_unwatched(where) if name not in ended]
    return ended


def _end_unwatched(where: StateDir) -> list[str]:
    """End what is left, unless somebody has started anew meanwhile."""
    lock = Lock.take(where)
    if lock is None:
        return []
    try:
        return end_orphans(where)
    finally:
        lock.release()


def check_host(holder: Identity) -> None:
    """Make sure that a supervisor is one of this host.

    Raises:
        CommandError: It is not, as where a home directory is shared.
    """
    if holder.host != os.uname().nodename:
        raise CommandError(
            f"the server of this state directory runs on {holder.host}; go there, or give "
            "another --state-dir"
        )


def _end_supervisor(where: StateDir, patience_s: float) -> None:
    """Ask the holder of the lock to end, and wait until it has let go of it."""
    deadline = time.monotonic() + patience_s
    is_asked = False
    while (holder := where.holder()) is not None:
        if not is_asked and is_alive(holder):
            with suppress(ProcessLookupError):
                os.kill(holder.pid, signal.SIGTERM)
            is_asked = True
        elif time.monotonic() > deadline:
            if is_alive(holder):
                os.kill(holder.pid, signal.SIGKILL)
            return
        time.sleep(_POLL_S)


def end_orphans(where: StateDir) -> list[str]:
    """End members whose supervisor is gone, and forget the state that names them.

    The caller holds the lock. A process is ended only if its number, its start and the boot are
    those that were written down.

    Returns:
        The names of those that still ran, in the order in which they were ended.
    """
    state = where.read()
    if state is None:
        where.forget()
        return []
    ended = [
        each.name
        for each in reversed(state.members)
        if each.process is not None and end_group(each.process, PATIENCE_S)
    ]
    where.forget()
    return ended
