"""AReaL's session records: `session_tracer/[role/]sessions-r{rank}.jsonl`."""

from array import array
from typing import Any, Final

import numpy as np

from rollscope.importing.accounts import Report
from rollscope.importing.areal_fields import KNOWN_KEYS, WAIT_KEYS, Phases, read_phases
from rollscope.importing.areal_survey import SUPERSEDED, Survey, worker_of
from rollscope.importing.formats import Options, Place
from rollscope.importing.statuses import read_reason, read_status
from rollscope.importing.values import (
    decode_object,
    derived_id,
    seconds_to_ns,
    stable_bytes,
    stable_id,
    stable_number,
)
from rollscope.importing.writing import Domain, RunWriter
from rollscope.model.kinds import EVENT_CODE, KIND_CODES, STATUS_CODES, Kind, Status
from rollscope.model.scope import ScopeRow
from rollscope.otlp.aliases import whole_number
from rollscope.otlp.rows import Row, fit_attrs

__all__ = ["ArealSessions"]

_SESSION: Final = KIND_CODES[Kind.SESSION]
_PHASE: Final = KIND_CODES[Kind.PHASE]
_TASK: Final = KIND_CODES[Kind.TASK]
_STEP: Final = KIND_CODES[Kind.STEP]
_OK: Final = STATUS_CODES[Status.OK]
_OPEN: Final = STATUS_CODES[Status.OPEN]
_LOST: Final = STATUS_CODES[Status.LOST]
_WALL_NS: Final = 10**18
"""Below a billion seconds it is no wall clock."""
_NO_ATTRS: Final = b"\x80"
_MOST_WORDS: Final = 1000


class ArealSessions:
    """Makes sessions, phases, tasks and verdicts of them."""

    format = "areal-sessions"

    def __init__(self, writer: RunWriter, report: Report, options: Options) -> None:
        self._writer, self._report, self._options = writer, report, options
        self._survey = Survey()
        self._next = 0
        self._domains: dict[tuple[str, int, bool], Domain] = {}
        self._bounds: tuple[Any, Any] = (array("q"), array("q"))
        self._task_keys: dict[int, tuple[Domain, str]] = {}
        """Number of a task to where it is written and its name."""
        self._verdicts: dict[tuple[str, str], bytes] = {}
        self._task_ids: dict[int, tuple[bytes, int]] = {}

    def claims(self, raw: bytes) -> bool:
        """Look for the time that every record has."""
        return b'"submit_ts"' in raw and b'"ph"' not in raw

    def survey(self, place: Place, raw: bytes) -> None:
        """Note the keys."""
        self._survey.look(_number(place), raw)

    def settle(self) -> None:
        """Find lives, duplicates, samples and, if asked to, steps."""
        self._survey.settle(self._options.batch_size)
        earliest_ns = seconds_to_ns(self._survey.earliest_wall_s())
        if earliest_ns is not None:
            self._writer.note_wall(earliest_ns)
        count = len(self._survey.places)
        self._bounds = (np.zeros(count, np.int64), np.full(count, -1, np.int64))

    def take(self, place: Place, raw: bytes) -> str:
        """Write a session with its phases and its verdict."""
        survey, number = self._survey, _number(place)
        places = survey.places
        while self._next < len(places) and places[self._next] < number:
            self._next += 1
        at = self._next
        if at >= len(places) or places[at] != number:
            is_object = decode_object(raw) is not None
            return "bad: no session id or no time" if is_object else "bad: no JSON object"
        life = int(survey.life[at])
        if life < 0:
            return "an older version of a session" if life == SUPERSEDED else "duplicate"
        read = decode_object(raw)
        if read is None:
            return "bad: no JSON object"
        record, is_odd = read
        start_ns = seconds_to_ns(record.get("submit_ts"))
        if start_ns is None or start_ns <= 0:
            return "bad: no time"
        self._write(at, life, record, start_ns, is_odd)
        return ""

    def _write(
        self, at: int, life: int, record: dict[str, Any], start_ns: int, is_odd: bool
    ) -> None:
        worker = worker_of(record.get("role"), record.get("rank"))
        domain = self._domain(worker, life, record, start_ns)
        foreign = record.get("session_id", record.get("request_id"))
        task_key = str(record.get("task_id", foreign))
        task = int(self._survey.task[at])
        known = self._task_ids.get(task)
        if known is None:
            trace_id = stable_bytes(16, "areal", worker, life, task_key)
            known = self._task_ids[task] = (trace_id, stable_id("areal", worker, life, task_key))
            self._task_keys[task] = (domain, task_key)
        trace_id, task_id = known
        session_id = derived_id(task_id, stable_number(foreign) or 0)
        step = int(self._survey.step[at])
        scope: ScopeRow = (
            trace_id,
            step if step >= 0 else None,
            task_key,
            None,
            session_id,
            int(self._survey.sample[at]),
        )
        phases = read_phases(record.get("phases"))
        verdict_ns = seconds_to_ns(record.get("finalized_ts"))
        attrs = self._attrs(record, foreign)
        status = read_status(record.get("status"), has_end=bool(phases.last_ns or verdict_ns))
        if not status.is_known:
            self._report.wonder(record.get("status"))
        if is_odd:
            attrs["source_not_finite"] = True
        if step >= 0:
            attrs["step_inferred"] = True
        end_ns = 0
        if status.status != _OPEN:
            end_ns = self._end(phases, verdict_ns, start_ns, attrs)
        if domain.account.clock == "unanchored":
            attrs["clock"] = "unanchored"
        fields: dict[str, Any] = {"lane": worker}
        if status.outcome is not None:
            fields["outcome"] = str(status.outcome)
        reason = read_reason(record.get("reason"))
        if reason is not None:
            fields["reason"] = reason
        row = (_SESSION, status.status, "session", scope, session_id, task_id, start_ns, end_ns)
        domain.add(Row(*row, fit_attrs(attrs), fields))
        self._add_phases(domain, scope, session_id, phases, end_ns)
        self._add_events(domain, scope, session_id, record, verdict_ns)
        self._bounds[0][at] = start_ns
        self._bounds[1][at] = end_ns
        fate = status.outcome or ("completed" if end_ns else Status.OPEN)
        self._report.count(f"sessions {fate}")

    def _domain(self, worker: str, life: int, record: dict[str, Any], start_ns: int) -> Domain:
        is_wall = start_ns >= _WALL_NS
        key = (worker, life, is_wall)
        domain = self._domains.get(key)
        if domain is None:
            name = worker if not life else f"{worker}.{life + 1}"
            role = record.get("role")
            domain = self._domains[key] = self._writer.domain(
                name if is_wall else f"{name}.monotonic",
                role=role if isinstance(role, str) else "",
                rank=whole_number(record.get("rank")),
                is_wall=is_wall,
            )
            number = self._survey.workers[worker]
            domain.is_gone = life < self._survey.last_life[number]
        return domain

    def _attrs(self, record: dict[str, Any], foreign: object) -> dict[str, Any]:
        attrs: dict[str, Any] = {"session_id": str(foreign)}
        for key, value in record.items():
            if key in KNOWN_KEYS or value is None:
                continue
            if key in WAIT_KEYS:
                attrs[key] = value
            elif key.endswith("_s"):
                attrs[f"source_{'reward_s' if key == 'reward_calc_s' else key}"] = value
            else:
                attrs[f"source_{key}" if key in ("status", "reason") else key] = value
        counters = record.get("counters")
        if isinstance(counters, dict):
            for key, value in counters.items():
                attrs["tokens_out" if key == "output_tokens" else str(key)] = value
        return attrs

    def _end(
        self, phases: Phases, verdict_ns: int | None, start_ns: int, attrs: dict[str, Any]
    ) -> int:
        """Give the end of a session that has a verdict: that of its last phase, if it has one."""
        end_ns = phases.last_ns
        if phases.has_open or not end_ns:
            end_ns = max(phases.latest_ns, verdict_ns or 0, start_ns)
            attrs["end_guessed"] = True
            self._report.guess("end of a session")
        if phases.is_mixed_up:
            attrs["overlap_lost"] = True
            self._report.count("sessions with mixed-up phases")
        if end_ns < start_ns:
            attrs["clock_suspect"], attrs["source_end_ns"] = True, end_ns
            return start_ns
        return end_ns

    def _add_phases(
        self, domain: Domain, scope: ScopeRow, session_id: int, phases: Phases, end_ns: int
    ) -> None:
        for number, (name, start, end, is_mixed_up) in enumerate(phases.entries):
            attrs: dict[str, Any] = {}
            status, shown = _OK, end
            if not end:
                status, shown = (_LOST, max(end_ns, start)) if end_ns else (_OPEN, 0)
                if end_ns:
                    attrs["end_guessed"] = True
            elif end < start:
                attrs, shown = {"clock_suspect": True, "source_end_ns": end}, start
            if is_mixed_up:
                attrs["overlap_lost"] = True
            packed = fit_attrs(attrs) if attrs else _NO_ATTRS
            own_id = derived_id(session_id, number)
            row = Row(_PHASE, status, name, scope, own_id, session_id, start, shown, packed, {})
            domain.add(row)

    def _add_events(
        self,
        domain: Domain,
        scope: ScopeRow,
        session_id: int,
        record: dict[str, Any],
        verdict_ns: int | None,
    ) -> None:
        told = [("verdict", verdict_ns)]
        if "enqueue_ts" in record or "wait_return_ts" in record:
            told.append(("admit", seconds_to_ns(record.get("enqueue_ts"))))
            told.append(("deliver", seconds_to_ns(record.get("wait_return_ts"))))
        for number, (name, at_ns) in enumerate(told):
            if at_ns is None or at_ns <= 0:
                continue
            packed = self._verdict_attrs(record) if name == "verdict" else _NO_ATTRS
            own_id = derived_id(session_id, -2 - number)
            domain.add(
                Row(EVENT_CODE, _OK, name, scope, own_id, session_id, at_ns, at_ns, packed, {})
            )

    def _verdict_attrs(self, record: dict[str, Any]) -> bytes:
        """Encode what was said at the verdict; there are few such words."""
        words = (str(record.get("status", "")), str(record.get("reason") or ""))
        packed = self._verdicts.get(words)
        if packed is None:
            named = zip(("status", "reason"), words, strict=True)
            packed = fit_attrs({name: word for name, word in named if word})
            if len(self._verdicts) < _MOST_WORDS:
                self._verdicts[words] = packed
        return packed

    def finish(self) -> None:
        """Write tasks, which last from their first session to the end of their last one."""
        survey = self._survey
        starts, ends = self._bounds
        written = np.nonzero(ends >= 0)[0] if len(survey.places) else np.empty(0, np.int64)
        if not len(written):
            return
        order = written[np.argsort(survey.task[written], kind="stable")]
        tasks, first = np.unique(survey.task[order], return_index=True)
        begin = np.minimum.reduceat(starts[order], first).tolist()
        end = np.maximum.reduceat(ends[order], first).tolist()
        least = np.minimum.reduceat(ends[order], first).tolist()
        steps = np.maximum.reduceat(survey.step[order], first).tolist()
        for at, task in enumerate(tasks.tolist()):
            domain, key = self._task_keys[task]
            trace_id, task_id = self._task_ids[task]
            scope: ScopeRow = (trace_id, steps[at] if steps[at] >= 0 else None, key) + (None,) * 3
            is_open = not least[at]
            status, over = (_OPEN, 0) if is_open else (_OK, end[at])
            domain.add(
                Row(_TASK, status, "task", scope, task_id, 0, begin[at], over, _NO_ATTRS, {})
            )
        self._report.count("tasks", len(tasks))
        self._add_steps(min(begin))

    def _add_steps(self, start_ns: int) -> None:
        domain = next(iter(self._domains.values()))
        packed = fit_attrs({"step_inferred": True})
        for step, end in enumerate(self._survey.step_ends):
            end_ns = max(seconds_to_ns(end) or start_ns, start_ns)
            trace_id = stable_bytes(16, "areal", "step", step)
            scope: ScopeRow = (trace_id, step, None, None, None, None)
            own_id = stable_id("areal", "step", step)
            domain.add(Row(_STEP, _OK, "step", scope, own_id, 0, start_ns, end_ns, packed, {}))
            start_ns = end_ns
            self._report.guess("step")


def _number(place: Place) -> int:
    return place.file_number << 40 | place.line
