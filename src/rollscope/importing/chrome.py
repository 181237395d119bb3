"""Chrome's trace JSON: of Ray, torch's profiler, RLinf, viztracer, ourselves, and all others."""

from typing import Final, NamedTuple

from rollscope.importing.accounts import Report
from rollscope.importing.chrome_counters import metrics_of
from rollscope.importing.chrome_events import PHASES, ChromeEvent, read_event
from rollscope.importing.chrome_flows import FLOW_PHASES, Flows, flow_id
from rollscope.importing.chrome_pairs import MOST_HELD_BYTES, Begun, Pairs
from rollscope.importing.chrome_rows import make_row
from rollscope.importing.chrome_spans import DUPLICATE, ChromeSpans
from rollscope.importing.chrome_survey import Survey
from rollscope.importing.chrome_tracks import Track, Tracks
from rollscope.importing.chrome_writers import LEAST_NS, Writer, is_kept_always
from rollscope.importing.formats import Options, Place
from rollscope.importing.writing import RunWriter

__all__ = ["Chrome"]

_BEGINS: Final = "BbS"
_ENDS: Final = "EeF"
_INSIDE: Final = "nTp"
_NO_BEGINNING: Final = "an end without a beginning"
_MOST_OPEN: Final = 10_000
"""Readers of a run keep every open span at hand, and expect few."""
_TOO_MANY_OPEN: Final = f"a beginning without an end, beyond {_MOST_OPEN:,} of them"
_MEMORY_EVENTS: Final = "cpu_instant_event"
"""One for every time that memory is taken or given back."""


class _Start(NamedTuple):
    """A beginning as it stood in its file."""

    place: Place
    track: Track
    raw: bytes
    span_id: int
    """0 if an earlier file has it too."""


class _Held(NamedTuple):
    """A beginning or an end on a track that is out of order."""

    file_number: int
    time_ns: int
    order: int
    place: Place
    raw: bytes


class Chrome:
    """Makes spans, events, links and gauges of a trace."""

    format = "chrome"

    def __init__(self, writer: RunWriter, report: Report, options: Options) -> None:
        self._report = report
        self._min_us = options.min_us
        self._survey = Survey()
        self._tracks = Tracks(writer, self._survey)
        self._flows = Flows()
        self._pairs: Pairs[_Start] = Pairs()
        self._held: list[_Held] = []
        self._held_bytes = 0
        self._open = 0
        self._spans = ChromeSpans(self._flows)

    def claims(self, raw: bytes) -> bool:
        """Look for the phase that every event has."""
        return b'"ph"' in raw

    def survey(self, place: Place, raw: bytes) -> None:
        """Learn who wrote the file, who is in it, and where arrows begin and end."""
        phase = self._survey.look(place, raw)
        if phase and phase in FLOW_PHASES and not self._survey.is_ours(place):
            self._flows.note(place, raw)

    def settle(self) -> None:
        """Give every process its clock domain."""
        self._survey.settle()
        self._tracks.settle()
        self._flows.settle()

    def take(self, place: Place, raw: bytes) -> str:
        """Write one event."""
        self._spans.enter(place.file_number)
        try:
            event = read_event(raw)
            return "bad: no JSON object" if event is None else self._take(place, event, raw)
        except RecursionError:
            return "bad: nested too deep"

    def _take(self, place: Place, event: ChromeEvent, raw: bytes) -> str:
        phase = event.phase
        if phase not in PHASES or not phase:
            return f"an event of phase {phase}" if len(phase) == 1 else "bad: no phase"
        if phase == "M":
            self._report.count("names of a trace")
            return ""
        if phase in FLOW_PHASES:
            self._report.count("arrows")
            return ""
        track = self._track(place, event)
        if track is None:
            return "bad: written while it was read"
        start_ns = event.start_ns
        if start_ns is None:
            return "bad: no time"
        if not track.holds(start_ns, start_ns + (event.length_ns or 0)):
            return "bad: a time that its clock does not give"
        if phase == "C":
            return self._count(track, event, start_ns)
        if phase in "BE" and track.is_unsorted and self._held_bytes < MOST_HELD_BYTES:
            self._held.append(_Held(place.file_number, start_ns, len(self._held), place, raw))
            self._held_bytes += len(raw)
            return ""
        return self._take_timed(place, track, event, raw, start_ns)

    def _take_timed(
        self, place: Place, track: Track, event: ChromeEvent, raw: bytes, start_ns: int
    ) -> str:
        if event.phase in _ENDS:
            return self._end(place, track, event, start_ns)
        is_ours = track.file.writer == Writer.ROLLSCOPE
        if event.phase in _BEGINS and not (is_ours and event.args.get("open") is True):
            return self._begin(place, track, event, raw)
        is_span = event.phase == "X"
        if why := self._is_small(track, event):
            return why
        end_ns = None if event.phase in _BEGINS else start_ns + (event.length_ns or 0)
        if event.phase in _INSIDE:
            begun = self._pairs.newest(_where(place, event))
            parent_id = 0 if begun is None else begun.what.span_id
            return self._spans.write(place, track, event, end_ns, parent_id=parent_id)
        why = self._spans.write(place, track, event, end_ns)
        if not why:
            self._report.count("spans" if is_span or end_ns is None else "instants")
        return why

    def _is_small(self, track: Track, event: ChromeEvent) -> str:
        """Say why something is left out as too small, if it is; of our own, nothing is."""
        if track.file.writer == Writer.ROLLSCOPE:
            return ""
        least_ns = LEAST_NS.get(track.file.writer, 0)
        if self._min_us is not None:
            least_ns = self._min_us * 1000
        if not least_ns or is_kept_always(event.category):
            return ""
        if event.category == _MEMORY_EVENTS:
            return "an event of the profiler's memory log"
        is_short = event.phase == "X" and (event.length_ns or 0) < least_ns
        return f"shorter than {least_ns // 1000} µs" if is_short else ""

    def _begin(self, place: Place, track: Track, event: ChromeEvent, raw: bytes) -> str:
        made = make_row(track, event, None)
        span_id = self._spans.new_id(made.content_id)
        begun = Begun(event.name, _Start(place, track, raw, span_id), len(raw))
        given_up = self._pairs.begin(_where(place, event), begun)
        if given_up is not None:
            self._leave_open(given_up.what)
        return "" if span_id else DUPLICATE

    def _end(self, place: Place, track: Track, event: ChromeEvent, end_ns: int) -> str:
        begun = self._pairs.end(_where(place, event), event.name)
        if begun is None:
            return _NO_BEGINNING
        start = begun.what
        if not start.span_id:
            return DUPLICATE
        first = read_event(start.raw)
        if first is not None and first.start_ns is not None:
            length = first._replace(phase="X", length_ns=end_ns - first.start_ns)
            if why := self._is_small(start.track, length):
                start.place.file.imported -= 1
                start.place.file.leave(why, start.place.line)
                return why
            whole = first._replace(args={**first.args, **event.args})
            self._spans.write(start.place, start.track, whole, end_ns, span_id=start.span_id)
            self._report.count("spans")
        return ""

    def _leave_open(self, start: _Start) -> None:
        event = read_event(start.raw)
        if event is None or not start.span_id:
            return
        if self._open >= _MOST_OPEN:
            start.place.file.imported -= 1
            start.place.file.leave(_TOO_MANY_OPEN, start.place.line)
            return
        self._open += 1
        self._spans.write(start.place, start.track, event, None, span_id=start.span_id)
        self._report.count("spans without an end")

    def _count(self, track: Track, event: ChromeEvent, at_ns: int) -> str:
        metrics = metrics_of(event)
        if not metrics:
            return "bad: a counter without a number"
        track.domain.metric(at_ns, metrics)
        self._report.count("samples of counters", len(metrics))
        return ""

    def _track(self, place: Place, event: ChromeEvent) -> Track | None:
        track = self._tracks.find(place.file_number, event.pid, event.tid)
        if track is not None and track.file.writer == Writer.ROLLSCOPE:
            # What is drawn on a lane names the process that told of it.
            process = event.args.get("process")
            if type(process) is int and process in track.file.processes:
                return self._tracks.find(place.file_number, process, event.tid)
        return track

    def finish(self) -> None:
        """Write what has no end, and what arrows connect."""
        for held in sorted(self._held):
            self._take_late(held)
        self._held = []
        for begun in self._pairs.drain():
            self._leave_open(begun.what)
        self._flows.finish(self._report)

    def _take_late(self, held: _Held) -> None:
        """Take a beginning or an end in the order of times; it was taken for imported before."""
        place, account = held.place, held.place.file
        event = read_event(held.raw)
        track = None if event is None else self._track(place, event)
        if event is None or track is None:
            return
        self._spans.enter(place.file_number)
        why = self._take_timed(place, track, event, held.raw, held.time_ns)
        if why:
            account.imported -= 1
            if why == DUPLICATE:
                account.duplicates += 1
            else:
                account.leave(why, place.line)


def _where(place: Place, event: ChromeEvent) -> tuple[object, ...]:
    """Say where a beginning finds its end: on its track, or under its id."""
    if event.phase in "BE":
        return (place.file_number, event.pid, event.tid)
    shared = flow_id(event.own, event.pid)
    return (place.file_number, event.category, shared)
