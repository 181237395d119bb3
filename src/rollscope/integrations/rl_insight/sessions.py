"""Sessions of agent loops while they are open: each a task and a session of the run, seen at once.

A session is nobody's current span: many are begun in one place and finished in another. What
belongs to one finds it by its lane.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

from rollscope.importing.statuses import read_status
from rollscope.instrument.spans import Session, Span
from rollscope.integrations.wholes import whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollscope.instrument.recorder import Recorder

__all__ = ["Cancelled", "Failed", "Handle", "Sessions", "is_session_lane"]

_LANE: Final = re.compile(r"experiment=.*/sample=.*/session=.*/traj=.*", re.DOTALL)
_MOST_RECENT: Final = 1_000
"""Sessions that are over and may still be told of: a turn may be reported late."""
_ERROR: Final = {"failed": "failed", "timeout": "timeout", "cancelled": "cancelled"}


class Failed(Exception):
    """Stands for the failure of an agent loop, which told of it by a word."""


class Cancelled(Failed):
    """Stands for one that was called off."""


def is_session_lane(lane: object) -> bool:
    """Say whether a lane is that of a session rather than one of states."""
    return isinstance(lane, str) and _LANE.fullmatch(lane) is not None


class Handle:
    """An open session."""

    __slots__ = ("is_over", "lane", "session", "task_key")

    def __init__(self, lane: str, session: Session, task_key: tuple[Any, ...]) -> None:
        """Keep it."""
        self.lane, self.session, self.task_key = lane, session, task_key
        self.is_over = False


class Sessions:
    """All of this process; for any thread."""

    def __init__(self) -> None:
        """Begin empty."""
        self._lock = threading.Lock()
        self._tasks: dict[tuple[Any, ...], tuple[Span, int]] = {}
        self._by_lane: OrderedDict[str, Session] = OrderedDict()

    def begin(self, recorder: Recorder, identity: Mapping[str, Any]) -> Handle:
        """Open a session; sessions of one sample and step share their task while one is open."""
        step, group = whole(identity["global_steps"]), identity["uid"] or None
        key = (identity["project"], identity["experiment_name"], identity["sample"], step, group)
        sample = whole(identity["session"])
        attrs = {name: identity[name] for name in ("project", "experiment_name") if identity[name]}
        own = {**attrs, "branch": identity["traj"], "session_id": identity["session_id"] or None}
        if sample is None:
            own["source_session"] = identity["session"]
        session = recorder.types.new_session(sample or 0, None, group, step, own)

        def enter() -> None:
            task, count = self._tasks.get(key, (None, 0))
            if task is None:
                task = recorder.types.new_task(identity["sample"], group, step, dict(attrs))
                task.__enter__()
            else:
                recorder.current.set(task)
            self._tasks[key] = (task, count + 1)
            session.__enter__()

        with self._lock:
            copy_context().run(enter)
            self._by_lane[identity["state_lane_id"]] = session
            while len(self._by_lane) > max(_MOST_RECENT, 2 * self._open()):
                self._by_lane.popitem(last=False)
        return Handle(identity["state_lane_id"], session, key)

    def end(self, handle: Handle, status: str, facts: dict[str, Any]) -> bool:
        """Close a session by the word for its end; False if it was closed before."""
        with self._lock:
            if handle.is_over:
                return False
            handle.is_over = True
            outcome = read_status(status, has_end=True).outcome
            session = handle.session
            session.set(source_status=status, **facts)
            if outcome is not None:
                session.finish(outcome, reason=None if outcome == "accepted" else status.lower())
            copy_context().run(_leave, session, outcome)
            task, count = self._tasks.pop(handle.task_key)
            if count > 1:
                self._tasks[handle.task_key] = (task, count - 1)
            else:
                copy_context().run(_leave, task, None)
        return True

    def find(self, lane: str) -> Session | None:
        """Find a session that is open or was, by its lane or that of another of its branches."""
        with self._lock:
            found = self._by_lane.get(lane)
            if found is None and "/traj=" in lane:
                found = self._by_lane.get(f"{lane.rpartition('/traj=')[0]}/traj=0")
            return found

    def _open(self) -> int:
        return sum(count for _, count in self._tasks.values())


def _leave(span: Span, outcome: str | None) -> None:
    error: BaseException | None = None
    if outcome == "timeout":
        error = TimeoutError()
    elif outcome in _ERROR:
        error = Cancelled() if outcome == "cancelled" else Failed()
    span.__exit__(None if error is None else type(error), error, None)
