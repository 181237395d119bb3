"""AReaL's session records: `session_tracer/[role/]sessions-r{rank}.jsonl`."""

from typing import Any, Final

from rollscope.importing.accounts import Report
from rollscope.importing.areal_fields import Names, Phases, read_phases
from rollscope.importing.areal_survey import SUPERSEDED, Survey
from rollscope.importing.areal_tasks import Tasks
from rollscope.importing.formats import Options, Place
from rollscope.importing.statuses import read_reason, read_status
from rollscope.importing.values import WALL_NS, decode_object, derived_id, leaf_id, seconds_to_ns
from rollscope.importing.writing import Domain, RunWriter
from rollscope.model.kinds import EVENT_CODE, KIND_CODES, STATUS_CODES, Kind, Outcome, Status
from rollscope.model.scope import ScopeRow
from rollscope.otlp.aliases import whole_number
from rollscope.otlp.rows import NO_ATTRS, Row, fit_attrs

__all__ = ["ArealSessions"]

_SESSION: Final = KIND_CODES[Kind.SESSION]
_PHASE: Final = KIND_CODES[Kind.PHASE]
_OK: Final = STATUS_CODES[Status.OK]
_OPEN: Final = STATUS_CODES[Status.OPEN]
_LOST: Final = STATUS_CODES[Status.LOST]
_NO_FIELDS: Final[dict[str, Any]] = {}
_MOST_WORDS: Final = 1000
_MOST_CHARACTERS: Final = 512
_FATES: Final = {
    (outcome, is_open): f"sessions {outcome or ('open' if is_open else 'completed')}"
    for outcome in (None, *Outcome)
    for is_open in (False, True)
}
"""What sessions are counted as."""


def _row(values: tuple[Any, ...]) -> Row:
    """Make a row in half the time that its constructor takes."""
    return tuple.__new__(Row, values)


class ArealSessions:
    """Makes sessions, phases, tasks and verdicts of them."""

    format = "areal-sessions"

    def __init__(self, writer: RunWriter, report: Report, options: Options) -> None:
        self._writer, self._report, self._options = writer, report, options
        self._survey = Survey(with_verdicts=options.batch_size is not None)
        self._next = 0
        self._domains: dict[tuple[str, int, bool], Domain] = {}
        self._tasks = Tasks(self._survey)
        self._workers: list[str] = []
        self._verdicts: dict[tuple[str, str], bytes] = {}
        self._shared: dict[tuple[str, str | None, str | None], dict[str, Any]] = {}
        self._names = Names()

    def claims(self, raw: bytes) -> bool:
        """Look for the time that every record has."""
        return b'"submit_ts"' in raw and b'"ph"' not in raw

    def survey(self, place: Place, raw: bytes) -> None:
        """Note the keys."""
        self._survey.look(place.number, raw)

    def settle(self) -> None:
        """Find lives, duplicates, samples and, if asked to, steps."""
        survey = self._survey
        survey.settle(self._options.batch_size)
        earliest_ns = seconds_to_ns(survey.earliest_wall_s())
        if earliest_ns is not None:
            self._writer.note_wall(earliest_ns)
        self._tasks = Tasks(survey)
        self._workers = list(survey.workers)

    def take(self, place: Place, raw: bytes) -> str:
        """Write a session with its phases and its verdict."""
        survey, number, at = self._survey, place.number, self._next
        places = survey.places
        while at < len(places) and places[at] < number:
            at += 1
        self._next = at
        if at >= len(places) or places[at] != number:
            is_object = decode_object(raw) is not None
            return "bad: no session id or no time" if is_object else "bad: no JSON object"
        life = survey.life[at]
        if life < 0:
            return "an older version of a session" if life == SUPERSEDED else "duplicate"
        read = decode_object(raw)
        if read is None:
            return "bad: no JSON object"
        record, is_odd = read
        start_ns = seconds_to_ns(record["submit_ts"])
        if start_ns is None or start_ns <= 0:
            return "bad: no time"
        self._write(at, life, record, start_ns, is_odd)
        return ""

    def _write(
        self, at: int, life: int, record: dict[str, Any], start_ns: int, is_odd: bool
    ) -> None:
        survey, worker = self._survey, self._workers[self._survey.worker_numbers[at]]
        domain = self._domain(worker, life, record, start_ns)
        foreign = record.get("session_id")
        foreign = _text(record.get("request_id") if foreign is None else foreign)
        task_key = _text(record.get("task_id")) or foreign
        trace_id, task_id = self._tasks.ids_of(survey.task[at], domain, worker, life, task_key)
        session_id = derived_id(task_id, survey.sessions[at])
        step = survey.step[at] if survey.step[at] >= 0 else None
        scope: ScopeRow = (trace_id, step, task_key, None, session_id, survey.sample[at])
        phases = read_phases(record.get("phases"))
        verdict_ns = seconds_to_ns(record.get("finalized_ts"))
        attrs = self._attrs(record, foreign)
        word = record.get("status")
        verdict = read_status(word, has_end=bool(phases.last_ns or verdict_ns))
        if not verdict.is_known:
            self._report.wonder(word)
        if is_odd:
            attrs["source_not_finite"] = True
        if step is not None:
            attrs["step_inferred"] = True
        is_open = verdict.status == _OPEN
        end_ns = 0 if is_open else self._end(phases, verdict_ns, start_ns, attrs)
        if domain.account.clock == "unanchored":
            attrs["clock"] = "unanchored"
        fields = self._fields(worker, verdict.outcome, read_reason(record.get("reason")))
        row = (_SESSION, verdict.status, "session", scope, session_id, task_id, start_ns, end_ns)
        rows = [_row((*row, fit_attrs(attrs), fields))]
        _add_phases(rows, scope, session_id, phases, end_ns)
        if verdict_ns is not None and verdict_ns > 0:
            packed = self._verdict_attrs(word, record.get("reason"))
            rows.append(_event(scope, session_id, 0, "verdict", verdict_ns, packed))
        if "enqueue_ts" in record or "wait_return_ts" in record:
            _add_waits(rows, scope, session_id, record)
        domain.extend(rows)
        self._tasks.note(at, start_ns, end_ns)
        self._report.count(_FATES[verdict.outcome, is_open])

    def _domain(self, worker: str, life: int, record: dict[str, Any], start_ns: int) -> Domain:
        is_wall = start_ns >= WALL_NS
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

    def _attrs(self, record: dict[str, Any], foreign: str) -> dict[str, Any]:
        attrs: dict[str, Any] = {"session_id": foreign}
        names = self._names
        for key, value in record.items():
            if (name := names[key]) and value is not None:
                attrs[name] = value
        counters = record.get("counters")
        if isinstance(counters, dict):
            for key, value in counters.items():
                attrs["tokens_out" if key == "output_tokens" else key] = value
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

    def _fields(self, worker: str, outcome: Outcome | None, reason: str | None) -> dict[str, Any]:
        """Give the fields that few spans have; most sessions share theirs with many."""
        key = (worker, outcome and outcome.value, reason)
        fields = self._shared.get(key)
        if fields is None:
            told = {"lane": worker, "outcome": outcome and str(outcome), "reason": reason}
            fields = {name: value for name, value in told.items() if value is not None}
            if len(self._shared) < _MOST_WORDS:
                self._shared[key] = fields
        return fields

    def _verdict_attrs(self, status: object, reason: object) -> bytes:
        """Encode what was said at the verdict; there are few such words."""
        words = (str(status or ""), str(reason or ""))
        packed = self._verdicts.get(words)
        if packed is None:
            named = zip(("status", "reason"), words, strict=True)
            packed = fit_attrs({name: word for name, word in named if word})
            if len(self._verdicts) < _MOST_WORDS:
                self._verdicts[words] = packed
        return packed

    def finish(self) -> None:
        """Write tasks and steps."""
        self._tasks.write(self._report)


def _add_phases(
    rows: list[Row], scope: ScopeRow, session_id: int, phases: Phases, end_ns: int
) -> None:
    for number, (name, start, end, is_mixed_up) in enumerate(phases.entries):
        own_id = leaf_id(session_id, number)
        status, shown, packed = _OK, end, NO_ATTRS
        if end < start or is_mixed_up:  # it is open, or odd
            status, shown, packed = _odd_phase(start, end, end_ns, is_mixed_up=is_mixed_up)
        rows.append(
            _row(
                (_PHASE, status, name, scope, own_id, session_id, start, shown, packed, _NO_FIELDS)
            )
        )


def _odd_phase(start: int, end: int, end_ns: int, *, is_mixed_up: bool) -> tuple[int, int, bytes]:
    """Give status, end and attributes of a phase that is open, or has lost its end."""
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
    return status, shown, fit_attrs(attrs)


def _add_waits(rows: list[Row], scope: ScopeRow, session_id: int, record: dict[str, Any]) -> None:
    told = (("admit", "enqueue_ts"), ("deliver", "wait_return_ts"))
    for number, (name, key) in enumerate(told, 1):
        at_ns = seconds_to_ns(record.get(key))
        if at_ns is not None and at_ns > 0:
            rows.append(_event(scope, session_id, number, name, at_ns, NO_ATTRS))


def _event(
    scope: ScopeRow, session_id: int, number: int, name: str, at_ns: int, packed: bytes
) -> Row:
    own_id = leaf_id(session_id, -2 - number)
    return _row(
        (EVENT_CODE, _OK, name, scope, own_id, session_id, at_ns, at_ns, packed, _NO_FIELDS)
    )


def _text(value: object) -> str:
    """Give the one spelling of an id; empty if it is none."""
    if type(value) is int:
        return str(value)
    if value is None or isinstance(value, bool | list | dict):
        return ""
    number = whole_number(value)
    return str(value if number is None else number)[:_MOST_CHARACTERS]
