"""The tasks of AReaL's sessions, and the steps that may be inferred: written when all is known."""

from array import array
from typing import Final

import numpy as np

from rollscope.importing.accounts import Report
from rollscope.importing.areal_survey import Ints, Survey
from rollscope.importing.values import seconds_to_ns, stable_bytes, stable_id
from rollscope.importing.writing import Domain
from rollscope.model.kinds import KIND_CODES, STATUS_CODES, Kind, Status
from rollscope.model.scope import ScopeRow
from rollscope.otlp.rows import NO_ATTRS, Row, fit_attrs

__all__ = ["Tasks"]

_TASK: Final = KIND_CODES[Kind.TASK]
_STEP: Final = KIND_CODES[Kind.STEP]
_OK: Final = STATUS_CODES[Status.OK]
_OPEN: Final = STATUS_CODES[Status.OPEN]
_ID_BYTES: Final = 24
_UNWRITTEN: Final = -1


class Tasks:
    """Gives tasks their ids, and remembers from when to when their sessions last.

    Some 100 bytes a task and 16 a session are held.
    """

    def __init__(self, survey: Survey) -> None:
        count = survey.task_count
        self._survey = survey
        self._ids = bytearray(_ID_BYTES * count)
        self._keys = [""] * count
        self._places = array("i", bytes(4 * count))
        self._domains: list[Domain] = []
        self._last, self._last_ids = -1, (b"", 0)
        sessions = len(survey.places)
        self._starts = array("q", bytes(8 * sessions))
        self._ends = array("q", np.full(sessions, _UNWRITTEN, np.int64).tobytes())

    def ids_of(
        self, task: int, domain: Domain, worker: str, life: int, key: str
    ) -> tuple[bytes, int]:
        """Give the trace and the span of a task, made from what it is known by."""
        if task == self._last:
            return self._last_ids
        at = task * _ID_BYTES
        if not self._keys[task]:
            self._ids[at : at + _ID_BYTES] = stable_bytes(_ID_BYTES, "areal", worker, life, key)
            self._keys[task] = key or " "
            if not self._domains or self._domains[-1] is not domain:
                self._domains.append(domain)
            self._places[task] = len(self._domains) - 1
        own = int.from_bytes(self._ids[at + 16 : at + _ID_BYTES])
        self._last, self._last_ids = task, (bytes(self._ids[at : at + 16]), (own >> 1) | 1)
        return self._last_ids

    def note(self, session: int, start_ns: int, end_ns: int) -> None:
        """Note that a session was written."""
        self._starts[session] = start_ns
        self._ends[session] = end_ns

    def write(self, report: Report) -> None:
        """Write tasks, which last from their first session to the end of their last one."""
        if not self._keys:
            return
        starts, ends = np.frombuffer(self._starts, np.int64), np.frombuffer(self._ends, np.int64)
        task_of = np.frombuffer(self._survey.task, np.int64)
        written = np.nonzero(ends != _UNWRITTEN)[0]
        if not len(written):
            return
        order = written[np.argsort(task_of[written], kind="stable")]
        tasks, first = np.unique(task_of[order], return_index=True)
        begin = np.minimum.reduceat(starts[order], first)
        end = np.maximum.reduceat(ends[order], first)
        is_open = np.minimum.reduceat(ends[order], first) == 0
        step = np.maximum.reduceat(np.frombuffer(self._survey.step, np.int64)[order], first)
        self._write_tasks(tasks, begin, np.where(is_open, 0, end), step)
        report.count("tasks", len(tasks))
        self._write_steps(report, int(begin.min()))

    def _write_tasks(self, tasks: Ints, begin: Ints, end: Ints, steps: Ints) -> None:
        columns = (tasks.tolist(), begin.tolist(), end.tolist(), steps.tolist())
        for task, start_ns, end_ns, step in zip(*columns, strict=True):
            domain = self._domains[self._places[task]]
            key = self._keys[task]
            trace_id, own_id = self.ids_of(task, domain, "", 0, key)
            scope: ScopeRow = (trace_id, step if step >= 0 else None, key, None, None, None)
            status = _OK if end_ns else _OPEN
            domain.add(Row(_TASK, status, "task", scope, own_id, 0, start_ns, end_ns, NO_ATTRS, {}))

    def _write_steps(self, report: Report, start_ns: int) -> None:
        packed = fit_attrs({"step_inferred": True})
        for step, end in enumerate(self._survey.step_ends):
            end_ns = max(seconds_to_ns(end) or start_ns, start_ns)
            scope: ScopeRow = (stable_bytes(16, "areal", "step", step), step) + (None,) * 4
            own_id = stable_id("areal", "step", step)
            self._domains[0].add(
                Row(_STEP, _OK, "step", scope, own_id, 0, start_ns, end_ns, packed, {})
            )
            start_ns = end_ns
            report.guess("step")
