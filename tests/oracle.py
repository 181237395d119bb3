"""Runs to ask about, all questions, and a second opinion worked out in the plainest way.

For the second opinion logs are read record by record, rows are lists, and nothing is clever:
parents are walked one by one, unions are found anew for every span, percentiles are taken from
sorted lists. Only what turns bytes into records is shared with what is tested, and what tells the
dead from the living. It is one module because the questions are put to both opinions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pyarrow as pa
from msgspec.structs import replace

from rollscope.analysis.filters import parse_filter
from rollscope.analysis.hotspots import Footer, Hotspot, Hotspots
from rollscope.analysis.rows import (
    EventRow,
    PhaseTotal,
    ProcessRow,
    SessionRow,
    SpanRow,
    StepFacts,
)
from rollscope.analysis.stuck import Reference
from rollscope.answers.compare import compare_runs, compare_selection
from rollscope.answers.hotspots import HotspotGrouping, find_hotspots
from rollscope.answers.phases import ErrorKind, Grouping, PhaseLine, phases
from rollscope.answers.scope import StepScope
from rollscope.answers.session import one_session
from rollscope.answers.sessions import list_sessions
from rollscope.answers.source import Source
from rollscope.answers.steps import one_step, steps
from rollscope.answers.stuck import stuck
from rollscope.model.batch import ProcessHeader, decode_batch
from rollscope.model.clockline import ClockMap
from rollscope.model.frames import scan_frames
from rollscope.model.kinds import Kind, Outcome, Status
from rollscope.model.records import (
    EventRecord,
    FactRecord,
    MetricRecord,
    Record,
    SpanRecord,
    StackRecord,
)
from rollscope.model.refs import span_hex
from rollscope.model.unpack import batch_records
from rollscope.store.clocks import Offset
from rollscope.store.dialect import Value
from rollscope.store.liveness import is_alive
from rollscope.testing import RunShape

__all__ = ["SECOND", "SHAPES", "Oracle", "Question", "Remembering", "Scope", "ask", "questions"]

SECOND = 1_000_000_000

_SMALL = RunShape(steps=3, tasks_per_step=6, rollout_processes=3, slots=6)
SHAPES: dict[str, RunShape] = {
    "usual": RunShape(steps=4, tasks_per_step=10),
    "long": RunShape(seed=1, steps=17, tasks_per_step=3, stuck_sessions=0),
    "skewed": replace(_SMALL, seed=2, clock_offsets_s=(0.0, 0.03, -0.75, 9.0), gates=True),
    "overlapping": replace(
        _SMALL,
        seed=3,
        parallel_tools=3,
        nested_share=0.5,
        outliving_share=0.4,
        straggling_share=0.4,
        queue_share=0.5,
        remote_rewards=True,
    ),
    "retried": replace(
        _SMALL,
        seed=4,
        failure_share=0.4,
        retry_share=0.7,
        late_verdict_share=0.4,
        late_share=0.3,
        unassigned_share=0.2,
        family_share=0.3,
    ),
    "running": replace(
        _SMALL,
        seed=5,
        ends_last_step=False,
        dying_process=False,
        stuck_sessions=5,
        parallel_tools=2,
        clock_offsets_s=(0.0, 3.0, -2.1),
        deadline_s=20.0,
        stacks=True,
        loop_lag=True,
        replicas=2,
        declares_slots=True,
        gates=True,
    ),
    "hanging": replace(_SMALL, seed=6, steps=1, dying_process=False, stuck_sessions=99),
    "failed": replace(_SMALL, seed=7, failure_share=1.0, stuck_sessions=0),
    "without tools": replace(_SMALL, seed=8, tools=(), group_size=1, remote_rewards=True),
    "without sessions": replace(_SMALL, seed=9, tasks_per_step=0),
    "without steps": replace(_SMALL, seed=10, records_steps=False, unassigned_share=0.3),
    "lonely": RunShape(
        seed=11,
        steps=1,
        tasks_per_step=1,
        group_size=1,
        rollout_processes=1,
        stuck_sessions=0,
        dying_process=False,
    ),
    "empty": replace(_SMALL, seed=12, steps=0),
}
Question = tuple[str, *tuple[Any, ...]]


class Remembering:
    """A run that does not change, so that the same query need not be run for every answer."""

    def __init__(self, source: Source) -> None:
        self.dialect, self.now_ns = source.dialect, source.now_ns
        self._source = source
        self.rows_since, self.lengths = source.rows_since, source.lengths
        self._known: dict[str, pa.Table] = {}

    def query(self, sql: str, **values: Value) -> pa.Table:
        key = f"{sql} {values}"
        if key not in self._known:
            self._known[key] = self._source.query(sql, **values)
        return self._known[key]


def questions(steps: Sequence[int], sessions: Sequence[int]) -> Iterator[Question]:
    """Give all that can be asked about a run."""
    everything, last = StepScope(), StepScope(*[max(steps, default=0)] * 2)
    yield "steps", None
    yield "steps", StepScope(1, 2)
    for step in steps[-2:]:
        yield "step", step
    yield ("stuck",)
    for by in get_args(HotspotGrouping):
        yield "hotspots", everything, by, False
    yield "hotspots", last, "tool", False
    yield "hotspots", last, "path", True
    yield "hotspots", everything, "host", True
    for grouping in get_args(Grouping):
        yield "phases", everything, grouping
    yield "phases", last, "detail"
    for session in sessions:
        yield "session", session
    yield "sessions", everything, "", "-start"
    yield "sessions", last, "ran>2s tool:python", "waited"
    yield "sessions", everything, "-outcome:accepted sandbox", "-tokens"
    yield "compare", last, everything
    yield "selection", everything, "ran>6s"
    yield "selection", everything, "phase:toolcall -host:host-01 attr.turns>1"


def ask(source: Source, question: Question) -> Any:
    """Answer a question."""
    match question:
        case "steps", scope:
            return steps(source, scope)
        case "step", number:
            return one_step(source, number)
        case ("stuck",):
            return stuck(source)
        case "hotspots", scope, by, outside:
            return find_hotspots(source, scope, by, outside=outside)
        case "phases", scope, by:
            return phases(source, scope, by)
        case "session", session_id:
            return one_session(source, span_hex(session_id))
        case "sessions", scope, text, sort:
            return list_sessions(source, scope, text, sort)
        case "compare", first, second:
            return compare_runs(source, first, source, second)
        case "selection", scope, text:
            return compare_selection(source, scope, parse_filter(text))
        case _:
            raise ValueError(question)


ROOTS = (Kind.STEP, Kind.TASK, Kind.SESSION, Kind.STATE)
Scope = tuple[int, int] | None
"""The first and the last step; None for everything."""


class Known(NamedTuple):
    """A span and where it lies."""

    row: SpanRow
    path: str
    parent: int | None
    """The parent, if the same process recorded it."""
    record: SpanRecord


class _Process:
    """One log, read from its first byte to its last."""

    def __init__(self, path: Path) -> None:
        self.header: ProcessHeader | None = None
        self.last_seen_ns = 0
        self.has_ended = False
        self.dropped = 0
        self.records: list[Record] = []
        clock = ClockMap()
        for body in scan_frames(path.read_bytes()).bodies:
            batch = decode_batch(body)
            self.id = int.from_bytes(batch.process)
            self.header = batch.header or self.header
            self.records += batch_records(batch, clock)
            self.last_seen_ns = max(self.last_seen_ns, clock.wall_at(batch.mono_ns))
            self.has_ended |= batch.end is not None
            self.dropped = sum(batch.drops.values()) if batch.drops else self.dropped

    def status(self, now_ns: int) -> str:
        if self.has_ended:
            return "ended"
        assert self.header is not None
        return "alive" if is_alive(self.header, self.last_seen_ns, now_ns) else "dead"

    def spans(self, now_ns: int) -> Iterator[SpanRecord]:
        """Give each span once: as it ended, or else as it is open or was lost."""
        ended = {
            record.span_id: record
            for record in self.records
            if isinstance(record, SpanRecord) and record.end_ns is not None
        }
        yield from ended.values()
        status = self.status(now_ns)
        for record in self.records:
            if isinstance(record, SpanRecord) and record.span_id not in ended:
                if status == "alive":
                    yield record
                else:
                    end_ns = max(self.last_seen_ns, record.start_ns)
                    why = f"its process {'ended' if status == 'ended' else 'died'}"
                    yield replace(record, status=Status.LOST, end_ns=end_ns, reason=why)


class Oracle:
    """A run at one moment, its times moved by the given offsets."""

    def __init__(self, run: Path, now_ns: int, offsets: Mapping[str, Offset]) -> None:
        self.now_ns = now_ns
        logs = [_Process(path) for path in sorted((run / "log").glob("*.rsl"))]
        self.processes = sorted(
            (_process_row(log, now_ns, offsets) for log in logs),
            key=lambda row: (row.started_ns, row.process),
        )
        self.process_of = {row.process: row for row in self.processes}
        self.spans: list[SpanRow] = []
        self.known: dict[int, Known] = {}
        self.events: list[tuple[EventRow, EventRecord]] = []
        self.facts: dict[int, list[FactRecord]] = {}
        self.metrics: list[MetricRecord] = []
        self.stacks: list[StackRecord] = []
        for log in logs:
            self._take(log)
        self.spans.sort(key=lambda row: (row.start_ns, row.span_id))
        self.events.sort(key=lambda pair: (pair[0].time_ns, int(pair[1].event_id, 16)))
        for facts in self.facts.values():
            facts.sort(key=lambda fact: (fact.time_ns, int(fact.process, 16)))  # else as written
        self._by_session: dict[int, list[SpanRow]] = {}
        for row in self.spans:
            if row.session_id is not None and row.span_id != row.session_id:
                self._by_session.setdefault(row.session_id, []).append(row)
        self.sessions = [self._session(row) for row in self.spans if row.kind is Kind.SESSION]
        self.session_of = {row.span_id: row for row in self.sessions}

    def _take(self, log: _Process) -> None:
        moved_ns = self.process_of[log.id].offset_ns
        for record in log.records:
            if isinstance(record, EventRecord | FactRecord | MetricRecord | StackRecord):
                record.time_ns += moved_ns
            match record:
                case EventRecord():
                    self.events.append((_event_row(record), record))
                case FactRecord():
                    self.facts.setdefault(int(record.span_id, 16), []).append(record)
                case MetricRecord():
                    self.metrics.append(record)
                case StackRecord():
                    self.stacks.append(record)
        records = list(log.spans(self.now_ns))
        own = {record.span_id: record for record in records}
        for record in records:
            row = _span_row(record, moved_ns)
            parent = row.parent_id if record.parent_id in own else None
            path = " / ".join(reversed(list(_names_above(record, own))))
            self.known[row.span_id] = Known(row, path, parent, record)
            self.spans.append(row)

    def _session(self, span: SpanRow) -> SessionRow:
        record = self.known[span.span_id].record
        attrs, process = record.attrs, self.process_of[span.process]
        deadline_s = attrs.get("deadline_s")
        row = SessionRow(
            span_id=span.span_id,
            process=span.process,
            host=process.host,
            pool=attrs.get("replica", process.title),
            task_key=record.task_key,
            family=family(record),
            group=record.group,
            sample=record.sample,
            attempt=attrs.get("attempt", 0),
            step=record.step,
            start_ns=span.start_ns,
            end_ns=span.end_ns,
            status=span.status,
            outcome=record.outcome,
            reason=record.reason,
            version_start=record.version_start,
            version_end=record.version_end,
            waited_ns=nanoseconds(attrs.get("queue_wait_s")),
            deadline_ns=None if deadline_s is None else span.start_ns + round(deadline_s * 1e9),
            reward=attrs.get("reward"),
            tokens_in=first_of(attrs, "tokens_in"),
            tokens_out=first_of(attrs, "tokens_out", "tokens"),
            turns=attrs.get("turns"),
            attrs=dict(attrs),
        )
        for fact in self.facts.get(span.span_id, []):
            _apply(fact, row)
        row.attrs = {k: v for k, v in row.attrs.items() if not isinstance(v, dict | list)}
        phases = [one for one in self.spans_of(row.span_id) if one.kind is Kind.PHASE]
        if row.tokens_out is None:
            row.tokens_out = total(one.tokens for one in phases)
            if row.tokens_in is None:
                inputs = (self.known[one.span_id].record.attrs for one in phases)
                row.tokens_in = total(first_of(one, "tokens_in") for one in inputs)
        return row

    def spans_of(self, session_id: int) -> list[SpanRow]:
        """Give the spans of a session, itself not among them."""
        return self._by_session.get(session_id, [])

    def is_within(self, row: SpanRow, scope: Scope) -> bool:
        """Say whether a span's session counts for some steps."""
        if scope is None:
            return True
        session = self.session_of.get(row.session_id or 0)
        return session is not None and counts_for(session, scope)

    def length(self, row: SpanRow) -> int:
        """Give how long a span took so far."""
        end_ns = self.now_ns if row.end_ns is None else row.end_ns
        return max(end_ns - row.start_ns, 0)

    def unions(self, sessions: Iterable[SessionRow]) -> dict[int, dict[str, int]]:
        """Give how long the phases of sessions took, by name."""
        found: dict[int, dict[str, int]] = {}
        for session in sessions:
            phases = [one for one in self.spans_of(session.span_id) if one.kind is Kind.PHASE]
            for name in {one.name for one in phases}:
                times = [self._times(one) for one in phases if one.name == name]
                found.setdefault(session.span_id, {})[name] = union(times)
        return found

    def _times(self, row: SpanRow) -> tuple[int, int]:
        return row.start_ns, row.start_ns + self.length(row)

    # Steps

    def step_spans(self) -> dict[int, SpanRow]:
        """Give the span of each step, by its number; generated runs have one trainer."""
        rows = [row for row in self.spans if row.kind is Kind.STEP]
        return {row.step: row for row in rows if row.step is not None}

    def outlined(self, number: int) -> StepFacts:
        """Give what is known of a step without its sessions."""
        span = self.step_spans()[number]
        return StepFacts(span=span, now_ns=self.now_ns, phases=self._phase_totals(number))

    def step(self, number: int) -> StepFacts:
        """Give everything that bears on a step."""
        facts = self.outlined(number)
        low, high = self._times(facts.span)
        facts.trainer = [row for row in self.spans if self._is_trainers(row, facts.span)]
        sessions = [replace(one, attrs={}) for one in self.sessions]
        facts.sessions = [one for one in sessions if one.charged_step == number]
        facts.around = [
            one for one in sessions if one.start_ns < high and (one.end_ns or high) > low
        ]
        facts.states = [
            row
            for row in self.spans
            if row.kind is Kind.STATE and row.start_ns < high and (row.end_ns or high) > low
        ]
        facts.events = self.published(high)
        facts.processes = self.processes
        facts.capacity = self._declared_slots()
        facts.assumed_capacity = self._most_at_once()
        return facts

    def _is_trainers(self, row: SpanRow, step: SpanRow) -> bool:
        if row.session_id is not None or self.known[row.span_id].record.task_key is not None:
            return False
        at = row.parent_id
        while at is not None and at != step.span_id:
            above = self.known.get(at)
            at = None if above is None else above.row.parent_id
        return at is not None

    def published(self, until_ns: int) -> list[EventRow]:
        """Give the events that tell of new weights."""
        rows = [row for row, _ in self.events if row.name == "weights.published"]
        return [row for row in rows if row.time_ns <= until_ns]

    def _phase_totals(self, number: int) -> list[PhaseTotal]:
        groups: dict[tuple[str, str | None], list[SpanRow]] = {}
        for row in self.spans:
            if row.kind is Kind.PHASE and is_measured(row) and self.is_within(row, (number,) * 2):
                groups.setdefault((row.name, row.detail), []).append(row)
        totals = [
            PhaseTotal(
                name=name,
                detail=detail,
                count=len(rows),
                total_ns=sum(map(self.length, rows)),
                p95_ns=rank(map(self.length, rows), 95) or 0,
                queue_ns=sum(row.queue_ns or 0 for row in rows),
                errors=sum(row.status is Status.ERROR for row in rows),
            )
            for (name, detail), rows in groups.items()
        ]
        return sorted(totals, key=lambda one: (-one.total_ns, one.name, *nulls_last(one.detail)))

    def _declared_slots(self) -> dict[str, int]:
        gauges = [metric for metric in self.metrics if metric.name == "slots"]
        gauges.sort(key=lambda metric: metric.time_ns)
        return {metric.labels["pool"]: int(metric.value) for metric in gauges}

    def _most_at_once(self) -> dict[str, int]:
        most: dict[str, int] = {}
        for pool in {one.pool for one in self.sessions}:
            own = [one for one in self.sessions if one.pool == pool]
            for at in [one.start_ns for one in own]:
                running = sum(
                    one.start_ns <= at and (one.end_ns is None or one.end_ns > at) for one in own
                )
                most[pool] = max(most.get(pool, 0), running)
        return most

    # Stuck

    def references(self) -> dict[tuple[str, str | None], Reference]:
        """Measure finished spans of the last five steps, or of half an hour if that is longer."""
        starts = sorted(row.start_ns for row in self.spans if row.kind is Kind.STEP)[-5:]
        since = min([self.now_ns - 1800 * SECOND, *starts])
        rows = [row for row in self.spans if is_measured(row) and row.start_ns >= since]
        found: dict[tuple[str, str | None], Reference] = {}
        for name, detail in {(row.name, d) for row in rows for d in (row.detail, None)}:
            lengths = [
                self.length(row)
                for row in rows
                if row.name == name and detail in (None, row.detail)
            ]
            found[name, detail] = Reference(len(lengths), rank(lengths, 99) or 0, max(lengths))
        return found

    def progress(self) -> dict[int, int]:
        """Give when each session was last heard of."""
        heard: dict[int, int] = {}
        for row in self.spans:
            if row.session_id is not None:
                at = row.start_ns if row.end_ns is None else row.end_ns
                heard[row.session_id] = max(heard.get(row.session_id, 0), at)
        for event, _ in self.events:
            if event.session_id is not None:
                heard[event.session_id] = max(heard.get(event.session_id, 0), event.time_ns)
        return heard

    def last_errors(self) -> dict[int, str]:
        """What went wrong last in each session, or else in its previous attempt."""
        errors: dict[int, str] = {}
        earlier: dict[tuple[int | None, int | None], str] = {}
        samples = {one.span_id: one.sample for one in self.sessions}
        failed = [row for row in self.spans if row.status is Status.ERROR and row.reason]
        for row in sorted(failed, key=lambda one: one.end_ns or 0):
            if row.session_id is not None and row.reason is not None:
                errors[row.session_id] = row.reason
                if row.span_id in samples:
                    earlier[row.parent_id, samples[row.span_id]] = row.reason
        parents = {row.span_id: row.parent_id for row in self.spans}
        for one in self.sessions:
            before = earlier.get((parents[one.span_id], one.sample))
            if one.attempt > 0 and before is not None:
                errors.setdefault(one.span_id, before)
        return errors

    def latest_stacks(self) -> dict[int, tuple[int, list[str]]]:
        """Give the last stack of each span."""
        ordered = sorted(self.stacks, key=lambda stack: stack.time_ns)
        return {int(stack.span_id, 16): (stack.time_ns, stack.frames) for stack in ordered}

    # Phases and errors

    def phase_lines(self, scope: Scope, by: str) -> list[PhaseLine]:
        """Give how long phases took."""
        groups: dict[tuple[str, str | None], list[SpanRow]] = {}
        for row in self.spans:
            if row.kind is Kind.PHASE and self.is_within(row, scope):
                groups.setdefault((row.name, self._group(row, by)), []).append(row)
        lines = [self._phase_line(name, group, rows) for (name, group), rows in groups.items()]
        return sorted(lines, key=lambda one: (-one.total_ns, one.name, *nulls_last(one.group)))

    def _group(self, row: SpanRow, by: str) -> str | None:
        record, process = self.known[row.span_id].record, self.process_of[row.process]
        groups: dict[str, str | None] = {
            "detail": row.detail,
            "tool": row.detail,
            "family": family(record),
            "worker": record.attrs.get("replica", process.title),
            "host": process.host,
        }
        return groups.get(by)

    def _phase_line(self, name: str, group: str | None, rows: list[SpanRow]) -> PhaseLine:
        measured = [row for row in rows if is_measured(row)]
        lengths = [self.length(row) for row in measured]
        queued = [(row.queue_ns, self.length(row)) for row in measured if row.queue_ns is not None]
        waits = [wait for wait, _ in queued]
        return PhaseLine(
            name=name,
            group=group,
            count=len(rows),
            measured=len(lengths),
            total_ns=sum(map(self.length, rows)),
            p50_ns=rank(lengths, 50) or 0,
            p95_ns=rank(lengths, 95, least=20),
            p99_ns=rank(lengths, 99, least=100),
            max_ns=max(lengths, default=0),
            queue_p50_ns=rank(waits, 50),
            queue_p95_ns=rank(waits, 95, least=20),
            queue_share=sum(waits) / sum(length for _, length in queued) if queued else None,
            errors=sum(row.status is Status.ERROR for row in rows),
            open_now=sum(row.status is Status.OPEN for row in rows),
        )

    def error_kinds(self, scope: Scope) -> list[ErrorKind]:
        """Give the errors that ended spans, by kind and name."""
        groups: dict[tuple[str, str], list[SpanRow]] = {}
        for row in self.spans:
            if row.status is Status.ERROR and self.is_within(row, scope):
                kind = (row.reason or "unknown").split(":")[0]
                groups.setdefault((kind, row.name), []).append(row)
        kinds = []
        for (kind, name), rows in groups.items():
            first = min(rows, key=lambda row: (row.end_ns or 0, row.span_id))
            steps = [row.step for row in rows if row.step is not None]
            kinds.append(
                ErrorKind(
                    kind=kind,
                    name=name,
                    count=len(rows),
                    first_ns=first.end_ns or 0,
                    last_ns=max(row.end_ns or 0 for row in rows),
                    first_step=min(steps, default=None),
                    example=first.reason or "unknown",
                    example_id=first.span_id,
                    example_session=first.session_id,
                )
            )
        return sorted(kinds, key=lambda one: (-one.count, one.kind, one.name))

    # Hotspots

    def hotspots(self, scope: Scope, by: str, *, outside: bool) -> Hotspots:
        """Give where time goes: every span's own time, its children's taken away."""
        rows = [row for row in self.spans if self._is_shown(row, scope, outside=outside)]
        shown = {row.span_id for row in rows}
        below: dict[int, list[tuple[int, int]]] = {}
        for one in self.known.values():
            parent = one.parent if outside else self._parent_anywhere(one)
            if parent is not None:
                below.setdefault(parent, []).append(self._times(one.row))
        groups: dict[tuple[str | None, str], list[SpanRow]] = {}
        roots_ns, roots_self_ns, self_ns = 0, 0, dict[int, int]()
        for row in rows:
            known = self.known[row.span_id]
            low, high = self._times(row)
            inside = [(max(a, low), min(b, high)) for a, b in below.get(row.span_id, [])]
            self_ns[row.span_id] = high - low - union(inside)
            path = known.path if outside else self._path_anywhere(known)
            groups.setdefault((self._group(row, by), path), []).append(row)
            parent = known.parent if outside else self._parent_anywhere(known)
            if row.kind is Kind.SESSION or parent not in shown:
                roots_ns += high - low
                roots_self_ns += self_ns[row.span_id]
        all_self_ns = sum(self_ns.values())
        parts = {key: self._hotspot(*key, rows, self_ns) for key, rows in groups.items()}
        found = by_last_name(parts.values()) if by == "name" else list(parts.values())
        for line in found:
            line.share = line.self_ns / roots_ns if roots_ns else 0.0
            line.error_share = line.errors / line.count
        found.sort(key=lambda line: (-line.self_ns, line.path, line.group or ""))
        overlap_ns = all_self_ns - roots_ns
        footer = Footer(roots_ns, all_self_ns - roots_self_ns, roots_self_ns, overlap_ns)
        return Hotspots(found, footer)

    def _parent_anywhere(self, known: Known) -> int | None:
        """Give the parent, whichever process recorded it."""
        parent = known.row.parent_id
        return parent if parent in self.known else known.parent

    def _path_anywhere(self, known: Known) -> str:
        parent = self._parent_anywhere(known)
        if known.parent is not None or parent is None or known.row.kind is Kind.SESSION:
            return known.path
        return f"{self.known[parent].path} / {known.path}"

    def _is_shown(self, row: SpanRow, scope: Scope, *, outside: bool) -> bool:
        if not outside:
            return row.session_id is not None and self.is_within(row, scope)
        if row.session_id is not None or row.kind in (Kind.TASK, Kind.STATE):
            return False
        return scope is None or (row.step is not None and scope[0] <= row.step <= scope[1])

    def _hotspot(
        self, group: str | None, path: str, rows: Sequence[SpanRow], self_ns: Mapping[int, int]
    ) -> Hotspot:
        lengths = [self.length(row) for row in rows if is_measured(row)]
        return Hotspot(
            path=path,
            group=group,
            count=len(rows),
            measured=len(lengths),
            total_ns=sum(map(self.length, rows)),
            self_ns=sum(self_ns[row.span_id] for row in rows),
            share=0.0,
            p50_ns=rank(lengths, 50),
            p95_ns=rank(lengths, 95, least=20),
            p99_ns=rank(lengths, 99, least=100),
            max_ns=max(lengths, default=None),
            errors=sum(row.status is Status.ERROR for row in rows),
            error_share=0.0,
            open_now=sum(row.status is Status.OPEN for row in rows),
        )


def by_last_name(rows: Iterable[Hotspot]) -> list[Hotspot]:
    """Put paths that end alike together; percentiles are those of a single path or none."""
    joined: dict[str, Hotspot] = {}
    for row in rows:
        name = row.path.split(" / ")[-1]
        known = joined.get(name)
        if known is None:
            joined[name] = replace(row, path=name)
            continue
        for field in ("count", "measured", "total_ns", "self_ns", "errors", "open_now"):
            setattr(known, field, getattr(known, field) + getattr(row, field))
        known.max_ns = max([v for v in (known.max_ns, row.max_ns) if v is not None], default=None)
        known.p50_ns = known.p95_ns = known.p99_ns = None
    return list(joined.values())


def rank(values: Iterable[int], percent: int, *, least: int = 1) -> int | None:
    """Give the value that so many percent of all do not exceed; None if there are too few."""
    ordered = sorted(values)
    if len(ordered) < least:
        return None
    return next(value for n, value in enumerate(ordered, 1) if 100 * n >= percent * len(ordered))


def union(times: Iterable[tuple[int, int]]) -> int:
    """Give how much time intervals cover, edge by edge."""
    real = sorted((low, high) for low, high in times if high > low)
    covered, reached = 0, 0
    for low, high in real:
        covered += max(high - max(low, reached), 0)
        reached = max(reached, high)
    return covered


def total(values: Iterable[int | None]) -> int | None:
    """Add up what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def is_measured(row: SpanRow) -> bool:
    """Say whether a span's length is a measurement."""
    return row.status not in (Status.OPEN, Status.LOST)


def counts_for(session: SessionRow, scope: Scope) -> bool:
    """Say whether a session counts for some steps."""
    step = session.charged_step
    return scope is None or (step is not None and scope[0] <= step <= scope[1])


def nulls_last(text: str | None) -> tuple[bool, str]:
    """Give what sorts texts, and None behind them."""
    return text is None, text or ""


def nanoseconds(seconds: float | None) -> int | None:
    """Give seconds in nanoseconds."""
    return None if seconds is None else round(seconds * 1e9)


def first_of(attrs: Mapping[str, Any], *keys: str) -> Any:
    """Give the first attribute of several that is there."""
    return next((attrs[key] for key in keys if key in attrs), None)


def family(record: SpanRecord) -> str | None:
    """Give what a task is one of."""
    if "family" in record.attrs:
        return str(record.attrs["family"])
    key = record.task_key
    return key.split("/")[0] if key is not None and "/" in key else None


def _names_above(record: SpanRecord, own: Mapping[str, SpanRecord]) -> Iterator[str]:
    at: SpanRecord | None = record
    while at is not None:
        yield at.name
        at = None if at.kind in ROOTS else own.get(at.parent_id or "")


def _span_row(record: SpanRecord, moved_ns: int) -> SpanRow:
    attrs = record.attrs
    return SpanRow(
        span_id=int(record.span_id, 16),
        parent_id=None if record.parent_id is None else int(record.parent_id, 16),
        session_id=None if record.session_id is None else int(record.session_id, 16),
        process=int(record.process, 16),
        kind=record.kind,
        name=record.name,
        detail=first_of(attrs, "tool", "env", "function", "model", "service"),
        start_ns=record.start_ns + moved_ns,
        end_ns=None if record.end_ns is None else record.end_ns + moved_ns,
        status=record.status,
        reason=record.reason,
        step=record.step,
        lane=record.lane,
        tokens=first_of(attrs, "tokens_out", "tokens"),
        queue_ns=nanoseconds(attrs.get("queue_s")),
        link=None,
        version=record.version_start,
    )


def _event_row(record: EventRecord) -> EventRow:
    return EventRow(
        name=record.name,
        time_ns=record.time_ns,
        process=int(record.process, 16),
        session_id=None if record.session_id is None else int(record.session_id, 16),
        version=record.attrs.get("version"),
    )


def _process_row(log: _Process, now_ns: int, offsets: Mapping[str, Offset]) -> ProcessRow:
    header = log.header
    assert header is not None
    offset = offsets.get(header.host, Offset())
    return ProcessRow(
        process=log.id,
        host=header.host,
        pid=header.pid,
        role=header.role,
        rank=header.rank,
        started_ns=header.started_ns + offset.offset_ns,
        last_seen_ns=log.last_seen_ns + offset.offset_ns,
        status=log.status(now_ns),
        heartbeat_ns=round(header.heartbeat_s * 1e9),
        offset_ns=offset.offset_ns,
        offset_error_ns=offset.error_ns,
        dropped=log.dropped,
    )


def _apply(fact: FactRecord, row: SessionRow) -> None:
    """Let a session learn of a late fact."""
    late = dict(fact.facts)
    if "outcome" in late:
        row.outcome = Outcome(late.pop("outcome"))
        row.reason = late.pop("reason", row.reason)
        row.version_end = late.pop("version_end", row.version_end)
    if "consumed_step" in late:
        row.consumed_step = late["consumed_step"]
        row.consumed_ns = fact.time_ns
    row.reward = late.get("reward", row.reward)
    row.attrs |= late
