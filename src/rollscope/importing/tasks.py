"""The tasks of imported sessions: hardly a source records them, their sessions tell of them."""

from typing import Final

import msgspec

from rollscope.importing.accounts import Report
from rollscope.importing.writing import Domain
from rollscope.model.kinds import KIND_CODES, STATUS_CODES, Kind, Status
from rollscope.model.scope import ScopeRow
from rollscope.otlp.rows import NO_ATTRS, Row

__all__ = ["TaskSpans"]

_TASK: Final = KIND_CODES[Kind.TASK]
_OK: Final = STATUS_CODES[Status.OK]
_OPEN: Final = STATUS_CODES[Status.OPEN]


class _Task(msgspec.Struct):
    domain: Domain
    scope: ScopeRow
    start_ns: int
    end_ns: int
    is_open: bool = False


class TaskSpans:
    """Tasks that last from their first session to the end of their last one."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._tasks: dict[int, _Task] = {}

    def note(
        self, task_id: int, domain: Domain, session: ScopeRow, start_ns: int, end_ns: int
    ) -> bool:
        """Learn of a session of a task.

        Args:
            task_id: Which task.
            domain: Where the session was written.
            session: Its scope.
            start_ns: When it began.
            end_ns: When it ended; 0 while it is open.

        Returns:
            Whether it is the first of its task.
        """
        task = self._tasks.get(task_id)
        is_first = task is None
        if task is None:
            of_task: ScopeRow = (*session[:4], None, None)
            task = self._tasks[task_id] = _Task(domain, of_task, start_ns, end_ns)
        task.start_ns, task.end_ns = min(task.start_ns, start_ns), max(task.end_ns, end_ns)
        task.is_open |= not end_ns
        return is_first

    def write(self) -> None:
        """Write all tasks, each once."""
        for task_id, task in self._tasks.items():
            status, end_ns = (_OPEN, 0) if task.is_open else (_OK, task.end_ns)
            row = (_TASK, status, "task", task.scope, task_id, 0, task.start_ns, end_ns)
            task.domain.add(Row(*row, NO_ATTRS, {}))
            self._report.count("tasks")
        self._tasks.clear()
