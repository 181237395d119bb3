"""Spans, metrics and log records of OpenTelemetry in files, read as the live endpoint reads them.

The first pass notes of every span what decides where it belongs; then all of them are placed,
parents before children whatever their order; the second pass writes them. Every span, point or log
record is a record of the account, and a line without any is one.
"""

import time
from collections.abc import Callable
from itertools import count
from typing import Final
from zlib import crc32

from rollscope.importing.accounts import Report
from rollscope.importing.formats import Place
from rollscope.importing.otlp_reading import read_requests
from rollscope.importing.otlp_senders import Senders, note_siblings
from rollscope.importing.otlp_settling import DOUBLED, KEPT, Settled, settle_spans
from rollscope.importing.otlp_sketch import Sketches
from rollscope.importing.values import derived_id
from rollscope.importing.writing import RunWriter
from rollscope.model.kinds import EVENT_CODE, STATUS_CODES, STATUS_OF_CODE, Status
from rollscope.otlp.aliases import Meaning
from rollscope.otlp.answering import Signal
from rollscope.otlp.endings import is_known_word
from rollscope.otlp.forms import LogForm, Request, SpanForm
from rollscope.otlp.logs import UNKNOWN_SESSION, LogUse, log_use, reward_fact, started_span
from rollscope.otlp.placing import MadeSession, Placer
from rollscope.otlp.placing import Place as Belonging
from rollscope.otlp.points import Points
from rollscope.otlp.spankinds import plain_kind, span_kind
from rollscope.otlp.spanrows import PlacedSpan, event_rows, made_row, session_facts, span_row
from rollscope.otlp.told import meaning_of
from rollscope.otlp.traces import EARLIEST_NS, LATEST_AHEAD_NS, admit
from rollscope.otlp.writing import Books

__all__ = ["OtlpFiles"]

Read = Callable[[bytes], tuple[dict[Signal, Request], str]]
_OK: Final = STATUS_CODES[Status.OK]
_REPLACED: Final = "another span of its id is longer"
_NO_VALUE: Final = "has no value"
_NOTHING: Final = "holds nothing"
Key = tuple[bytes, int]


class OtlpFiles:
    """Makes a run of them."""

    format = "otlp"

    def __init__(self, writer: RunWriter, report: Report, read: Read = read_requests) -> None:
        self._writer, self._report, self._read = writer, report, read
        self._now_ns = time.time_ns()
        self._sketches = Sketches()
        self._settled = Settled(0)
        self._senders = Senders(writer)
        self._next = 0
        self._made = {"spans": 0, "events": 0}
        self._judged: dict[Key, Belonging | None] = {}
        """Spans that log records tell of."""
        self._files: set[int] = set()
        self._books = Books()
        self._points = Points(Placer(report.run), self._books, 0, same_time_ns=1)

    def claims(self, raw: bytes) -> bool:
        """Look for the name that every line has."""
        head = raw[:64]
        return b'"resourceSpans"' in head or b'"resourceMetrics"' in head

    def survey(self, place: Place, raw: bytes) -> None:
        """Note what decides where spans belong."""
        if place.file_number not in self._files:
            self._files.add(place.file_number)
            note_siblings(place.file, self._report)
        for signal, request in self._read(raw)[0].items():
            if signal is Signal.LOGS:
                self._survey_logs(request)
            earliest = self._now_ns
            for at, form in enumerate(request.spans):
                meaning = meaning_of(form, only_place=True)
                if admit(form, meaning, self._now_ns) is not None:
                    continue
                if "parent" in meaning.place:
                    form.parent_id = 0  # it is in another trace
                _break_ring(form)
                sender = self._senders.key(form.sender)
                digest = request.digests[at] if at < len(request.digests) else 0
                self._sketches.add(form, meaning, sender, digest, _error_of(form))
                earliest = min(earliest, form.start_ns)
            if request.spans:
                self._writer.note_wall(earliest)

    def _survey_logs(self, request: Request) -> None:
        for record in request.logs:
            use = log_use(record)
            if use is LogUse.REWARD:
                self._judged[record.trace_id, record.span_id] = None
            elif use is LogUse.START:
                request.spans.append(started_span(record))

    def settle(self) -> None:
        """Place every span."""
        sketches = self._sketches
        self._settled = settled = settle_spans(sketches, self._report.run)
        if self._judged:
            for at, span_id in enumerate(sketches.span_id):
                key = (sketches.traces[sketches.trace[at]], span_id)
                if key in self._judged and settled.fate[at] == KEPT:
                    self._judged[key] = settled.place(at)
        sketches.forget_words()

    def take(self, place: Place, raw: bytes) -> str:
        """Write what a line holds."""
        found, trouble = self._read(raw)
        if trouble:
            return trouble
        seen = doubled = 0
        rejected: dict[str, int] = {}
        for signal, request in found.items():
            if signal is Signal.METRICS:
                self._take_points(request)
            elif signal is Signal.LOGS:
                self._take_logs(request)
            doubled += self._take_spans(request)
            seen += request.seen
            for why, number in request.rejected.items():
                rejected[why] = rejected.get(why, 0) + number
        return _account(place, seen, doubled, rejected)

    def _take_spans(self, request: Request) -> int:
        """Write spans; give how many were there already."""
        settled, doubled = self._settled, 0
        for form in request.spans:
            meaning = meaning_of(form)
            why = admit(form, meaning, self._now_ns)
            if why is not None:
                request.reject(why)
                continue
            at, self._next = self._next, self._next + 1
            _break_ring(form)
            fate = settled.fate[at]
            if fate == KEPT:
                self._write(at, form, meaning)
            elif fate == DOUBLED or form.is_open:
                doubled += 1
                self._report.count("open spans that ended later", int(fate != DOUBLED))
            else:
                request.reject(_REPLACED)
        return doubled

    def _write(self, at: int, form: SpanForm, meaning: Meaning) -> None:
        settled, report = self._settled, self._report
        place, phase_above = settled.place(at), settled.phase_above(at)
        kind = span_kind(form, meaning, place.session_id, phase_above)
        domain = self._senders.domain(form.sender)
        details = meaning.details
        parent_id = form.parent_id
        if settled.is_orphan[at]:
            details["parent_missing"] = True
            report.count("parents missing")
        if settled.is_copied[at] and not meaning.is_told:
            details["error.copied"] = True
            report.count("errors copied from below")
        if at in settled.callers:
            parent_id = settled.callers[at]
            details["source_trace_id"] = form.trace_id.hex()
            report.count("requests attached by their ids")
        if len(settled.runs) > 1:
            details["source_run"] = place.run
        if at in settled.made_roots:
            session = settled.made_roots[at]
            owner = self._senders.domain(settled.made[session.session_id].sender)
            owner.add(made_row(MadeSession(session, form, meaning)))
            kind, parent_id = plain_kind(form), parent_id or session.session_id
        said = meaning.place.get("outcome")
        if isinstance(said, str) and not meaning.is_told and not is_known_word(said):
            report.wonder(said)
        span = PlacedSpan(form, meaning, place, kind, parent_id)
        row = span_row(span)
        domain.add(row)
        self._made["events" if kind.code == EVENT_CODE else "spans"] += 1
        if span.is_session:
            late = meaning.place["late"] if meaning.is_told else {}
            self._count_session(late.get("outcome") or row.fields.get("outcome"), row.status)
        if form.events:
            ids = (derived_id(form.span_id, number) for number in count())
            for event in event_rows(span, EARLIEST_NS, self._now_ns + LATEST_AHEAD_NS, ids):
                domain.add(event)
                self._made["events"] += 1
        for fact in session_facts(span):
            domain.fact(fact.trace_id, fact.span_id, fact.mono_ns, fact.facts)
        if meaning.content:
            report.count("messages that are not kept", len(meaning.content))

    def _count_session(self, outcome: str | None, status: int) -> None:
        word = outcome or ("completed" if status == _OK else str(STATUS_OF_CODE[status]))
        self._report.count(f"sessions {word}")

    def _take_points(self, request: Request) -> None:
        unsaid = request.seen - len(request.points) - sum(request.rejected.values())
        if unsaid > 0:
            request.reject(_NO_VALUE, unsaid)
        self._points.take(request, self._now_ns)
        self._report.count("points", request.seen - sum(request.rejected.values()))
        for book in self._books.gathered():
            domain = self._senders.domain(book.sender)
            for time_ns, metrics in sorted(book.metrics.items()):
                domain.metric(time_ns, metrics)

    def _take_logs(self, request: Request) -> None:
        for record in request.logs:
            use = log_use(record)
            if use is LogUse.START:
                request.spans.append(started_span(record))
            elif use is not LogUse.REWARD:
                request.reject(use)
            elif not self._reward(record):
                request.reject(UNKNOWN_SESSION)

    def _reward(self, record: LogForm) -> bool:
        place = self._judged.get((record.trace_id, record.span_id))
        fact = reward_fact(record, place, self._now_ns)
        if fact is None:
            return False
        domain = self._senders.domain(record.sender)
        domain.fact(fact.trace_id, fact.span_id, fact.mono_ns, fact.facts)
        return True

    def finish(self) -> None:
        """Write the sessions that no span stands for."""
        for name, number in self._made.items():
            if number:
                self._report.count(name, number)
        for whole in self._settled.made.values():
            session = whole.session
            if session.is_over:
                continue
            noted = {"end_guessed": True} if whole.is_loop else {"root_missing": True}
            row = made_row(MadeSession(session, None, None), noted)
            if whole.is_loop:
                row = row._replace(status=_OK, end_ns=max(whole.last_ns, row.start_ns))
                self._report.guess("end of a session without a span of its own")
            self._senders.domain(whole.sender).add(row)
            self._count_session(None, _OK if whole.is_loop else 0)
            self._report.count("sessions without a span of their own")
        for run in sorted(self._settled.runs - {self._report.run}):
            self._report.name_run(run)


def _account(place: Place, seen: int, doubled: int, rejected: dict[str, int]) -> str:
    """Make the account one of spans; what is returned is counted once more by the caller."""
    file = place.file
    imported = seen - doubled - sum(rejected.values())
    if not seen:
        return _NOTHING
    file.read += seen - 1
    answer = ""
    if imported:
        file.imported += imported - 1
    elif rejected:
        answer = next(iter(rejected))
        rejected[answer] -= 1
    else:
        answer, doubled = "duplicate", doubled - 1
    file.duplicates += doubled
    for why, number in rejected.items():
        for _ in range(number):
            file.leave(why, place.line)
    return answer


def _break_ring(form: SpanForm) -> None:
    if form.parent_id == form.span_id:
        form.parent_id = 0


def _error_of(form: SpanForm) -> int:
    """Give the same number for two that failed for the same reason; 0 for one that did not."""
    message = form.attrs.get("error.message") or form.message
    return crc32(str(message).encode("utf-8", "replace")) + 1 if message else 0
