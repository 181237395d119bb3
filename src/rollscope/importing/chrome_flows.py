"""Arrows of Chrome traces, as links between the spans that they lead from and to."""

from array import array
from bisect import bisect_left, bisect_right
from typing import Any, Final

from rollscope.importing.accounts import Report
from rollscope.importing.chrome_events import Key, key_of, name_of
from rollscope.importing.chrome_tracks import Track
from rollscope.importing.formats import Place
from rollscope.importing.values import decode_object, micros_to_ns, stable_id
from rollscope.otlp.rows import Row

__all__ = ["FLOW_PHASES", "Flows", "flow_id"]

FLOW_PHASES: Final = "stf"
_MOST_POINTS: Final = 1_000_000
_MOST_INSIDE: Final = 16
"""Of one span: the points further inside belong to shorter spans, or to none that is known."""
_MOST_LINKS: Final = 16
_NONE: Final = 2**62
_Where = tuple[int, Key, Key]


def flow_id(event: dict[str, Any], pid: Key) -> tuple[object, ...] | None:
    """Give what the ends of an arrow, or the parts of an asynchronous span, have in common."""
    own = event.get("id")
    both = event.get("id2")
    if isinstance(both, dict):
        if "global" in both:
            return ("global", key_of(both["global"]))
        own = both.get("local", own)
    if own is None:
        return None
    return (key_of(event.get("scope")), pid, key_of(own))


class Flows:
    """The points of arrows: noted first, then bound to the shortest spans that hold them."""

    def __init__(self) -> None:
        self._keys = array("Q")
        self._times = array("q")
        self._tracks: dict[_Where, list[int]] = {}
        self._lengths = array("q")
        self._spans: dict[int, tuple[Track, bytes, int]] = {}
        self._sorted: dict[_Where, array[int]] = {}
        self.dropped = 0

    def note(self, place: Place, raw: bytes) -> None:
        """Look at the point of an arrow."""
        read = decode_object(raw)
        event = read[0] if read is not None else {}
        pid, time_ns = key_of(event.get("pid")), micros_to_ns(event.get("ts"))
        name = flow_id(event, None)
        if name is None or time_ns is None or abs(time_ns) >= _NONE:
            return
        if len(self._keys) >= _MOST_POINTS:
            self.dropped += 1
            return
        where = (place.file_number, pid, key_of(event.get("tid")))
        self._tracks.setdefault(where, []).append(len(self._keys))
        kind = (place.file_number, name_of(event.get("cat")), name_of(event.get("name")))
        self._keys.append(stable_id(*kind, name))
        self._times.append(time_ns)
        self._lengths.append(_NONE)

    def settle(self) -> None:
        """Put the points of every track in the order of their times."""
        for where, points in self._tracks.items():
            points.sort(key=self._times.__getitem__)
            self._sorted[where] = array("q", (self._times[point] for point in points))

    def bind(self, where: _Where, track: Track, row: Row) -> None:
        """Bind the points that lie in a span, unless a shorter one has them."""
        times = self._sorted.get(where)
        if times is None or row.end_ns < row.start_ns:
            return
        first = bisect_left(times, row.start_ns)
        last = min(bisect_right(times, row.end_ns), first + _MOST_INSIDE)
        length_ns = row.end_ns - row.start_ns
        for point in self._tracks[where][first:last]:
            if length_ns < self._lengths[point]:
                self._lengths[point] = length_ns
                self._spans[point] = (track, row.scope[0], row.span_id)

    def finish(self, report: Report) -> None:
        """Write what every arrow connects, as facts of the spans that arrows lead to."""
        before: dict[int, int] = {}
        links: list[tuple[int, int]] = []
        for point in sorted(range(len(self._keys)), key=self._times.__getitem__):
            if point not in self._spans:
                report.count("arrows without a span")
                continue
            source = before.get(self._keys[point])
            before[self._keys[point]] = point
            if source is not None and self._spans[source][2] != self._spans[point][2]:
                links.append((source, point))
        self._write(links, report)

    def _write(self, links: list[tuple[int, int]], report: Report) -> None:
        by_span: dict[int, tuple[Track, bytes, int, list[str]]] = {}
        for source, point in links:
            track, trace_id, span_id = self._spans[point]
            at_ns = self._times[point]
            names = by_span.setdefault(span_id, (track, trace_id, at_ns, []))[3]
            _, source_trace, source_id = self._spans[source]
            if len(names) < _MOST_LINKS:
                names.append(f"00-{source_trace.hex()}-{source_id:016x}-01")
            report.count("links")
        for span_id, (track, trace_id, at_ns, names) in by_span.items():
            track.domain.fact(trace_id, span_id, at_ns, {"links": names})
