"""Which tasks and sessions can still be told about, and whose lines are to be written.

What is over and written is forgotten, so that memory stays flat however many sessions there are. A
few of the last tasks are remembered with their verdict, for sessions that come late. For callers
who hold the tracer's lock.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any, Final

from rollscope.integrations.areal import mirror
from rollscope.integrations.areal.records import SessionRecord, Task

__all__ = ["SessionBook"]

_MOST_CLOSED: Final = 4096
"""Tasks whose verdict is remembered for sessions that come late."""
_MOST_NEWER: Final = 10_000
"""Sessions that changed after their line was written and wait for a forced flush."""


class SessionBook:
    """The tasks and sessions of one process.

    Args:
        first_id: The number of the first session.
    """

    def __init__(self, first_id: int = 0) -> None:
        self.next_id = first_id
        self.dropped = 0
        """Newer lines that were given up because no forced flush came."""
        self.tasks: dict[Any, Task] = {}
        self.records: dict[int, SessionRecord] = {}
        self.ready: dict[int, SessionRecord] = {}
        """Sessions with a verdict whose line is not written yet."""
        self._closed: OrderedDict[Any, Task] = OrderedDict()
        self._newer: OrderedDict[int, SessionRecord] = OrderedDict()

    def renew_task(self, task_id: int) -> None:
        """Begin a task; one that is known and not over goes on."""
        self._closed.pop(task_id, None)
        known = self.tasks.get(task_id)
        if known is None or known.is_closed:
            self.tasks[task_id] = mirror.make_task(task_id)

    def add_session(self, task_id: int, rank: int, role: str | None) -> SessionRecord:
        """Begin a session of a task, which is begun too if it is not known."""
        task = self.tasks.get(task_id) or self._closed.pop(task_id, None)
        if task is None:
            task = mirror.make_task(task_id)
        self.tasks[task_id] = task
        number = self.next_id
        self.next_id += 1
        record = SessionRecord(task_id, number, rank, role, time.perf_counter_ns(), task)
        mirror.open_session(record, task.samples)
        task.samples += 1
        task.running += 1
        task.sessions[number] = self.records[number] = record
        return record

    def close_if_over(self, task_id: int, task: Task) -> None:
        """End a task that no session of is under way."""
        if task.running == 0 and not task.is_closed and (task.samples or task.verdict):
            task.is_closed = True
            mirror.close_task(task)
        self._forget_task(task_id, task)

    def close_all(self) -> None:
        """End the tasks that are open."""
        for task in self.tasks.values():
            if not task.is_closed:
                mirror.close_task(task)

    def forget(self, record: SessionRecord) -> None:
        """Let a session go whose line is written; a changed one waits for a forced flush."""
        self.records.pop(record.session_id, None)
        self.ready.pop(record.session_id, None)
        record.task.sessions.pop(record.session_id, None)
        if record.is_dirty:
            self._newer[record.session_id] = record
            if len(self._newer) > _MOST_NEWER:
                self._newer.popitem(last=False)
                self.dropped += 1
        self._forget_task(record.task_id, record.task)

    def _forget_task(self, task_id: int, task: Task) -> None:
        if task.is_closed and not task.sessions and self.tasks.get(task_id) is task:
            del self.tasks[task_id]
            self._closed[task_id] = task
            if len(self._closed) > _MOST_CLOSED:
                self._closed.popitem(last=False)

    def take_unwritten(self, *, force: bool) -> list[SessionRecord]:
        """Give the sessions with a verdict that were not written, with `force` all that changed."""
        chosen = list(self.ready.values())
        if force:
            others = [*self.records.values(), *self._newer.values()]
            chosen += [r for r in others if r.is_dirty and r.session_id not in self.ready]
            self._newer.clear()
        return chosen

    def note_written(self, record: SessionRecord) -> None:
        """Note that a session's line is as good as written."""
        record.is_dirty = False
        record.is_final_written = record.verdict is not None
        self.ready.pop(record.session_id, None)
        if record.is_settled:
            self.forget(record)
