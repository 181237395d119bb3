"""Chrome's trace JSON, which chrome://tracing, Perfetto and many others read.

Times are made of whole nanoseconds, digit by digit, after `baseTimeNanoseconds`: a reader that
keeps them as floating-point numbers still gets every nanosecond of a run of weeks.
"""

import heapq
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from rollscope._version import __version__
from rollscope.exporting.counters import CounterPoint
from rollscope.exporting.facts import categories_of, facts_of, hex_id
from rollscope.exporting.naming import process_title
from rollscope.exporting.reading import BY_TIME, PlacedRun
from rollscope.exporting.rows import EVENT, Process, TraceRow

__all__ = ["ByteSink", "write_chrome"]

_LINES: Final = 4096
"""Written at once."""
_NEVER: Final = 2**63
_Pids = dict[int | None, int]
"""By process, its number in the export."""
_encode = msgspec.json.Encoder().encode
_encode_name = lru_cache(maxsize=8192)(_encode)


class ByteSink(Protocol):
    """Where an export is written."""

    def write(self, data: bytes, /) -> object:
        """Take some bytes."""


class _Timed(NamedTuple):
    """An entry, or several that must follow each other, by when they stand in the file."""

    time_ns: int
    order: int
    text: bytes


def write_chrome(run: PlacedRun, sink: ByteSink, *, as_async: bool = False) -> None:
    """Write a run.

    Args:
        run: What is written.
        sink: Where to.
        as_async: Write pairs with an id of their own on the process, instead of tracks.
    """
    pids = {process.process: process.pid for process in run.processes}
    rows = run.rows(BY_TIME)
    make = _as_pairs if as_async else _on_tracks
    spans = make(rows, run.first_ns, pids)
    counters = (_counter(point, pids, run.first_ns) for point in run.points())
    names = _names(run, with_tracks=not as_async)
    entries = heapq.merge(spans, counters, key=lambda entry: entry[:2])
    sink.write(_head(run))
    _write_all(sink, names, (entry.text for entry in entries))
    sink.write(b"\n]}\n")


def _write_all(sink: ByteSink, *parts: Iterable[bytes]) -> None:
    separator, lines = b"\n", list[bytes]()
    for part in parts:
        for line in part:
            lines.append(line)
            if len(lines) >= _LINES:
                sink.write(separator + b",\n".join(lines))
                separator, lines = b",\n", []
    if lines:
        sink.write(separator + b",\n".join(lines))


def _head(run: PlacedRun) -> bytes:
    head = {
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": run.first_ns,
        "otherData": {"writer": "rollscope", "version": __version__, "run": run.name},
    }
    return _encode(head)[:-1] + b',"traceEvents":['


def _names(run: PlacedRun, *, with_tracks: bool) -> Iterator[bytes]:
    for process in run.processes:
        yield from _process_names(process)
    for track in run.tracks() if with_tracks else ():
        yield _told("thread_name", track.pid, track.tid, "name", track.title)
        yield _told("thread_sort_index", track.pid, track.tid, "sort_index", track.tid)


def _process_names(process: Process) -> Iterator[bytes]:
    yield _told("process_name", process.pid, None, "name", process_title(process))
    yield _told("process_sort_index", process.pid, None, "sort_index", process.pid)
    if process.host:
        yield _told("process_labels", process.pid, None, "labels", process.host)


def _told(what: str, pid: int, tid: int | None, name: str, value: str | int) -> bytes:
    where: dict[str, Any] = {"pid": pid} if tid is None else {"pid": pid, "tid": tid}
    return _encode({"name": what, "ph": "M", **where, "args": {name: value}})


def _us(ns: int) -> bytes:
    """Write microseconds with all digits of the nanoseconds."""
    return b"%d.%03d" % divmod(ns, 1000)


def _on_tracks(rows: Iterable[TraceRow], base_ns: int, pids: _Pids) -> Iterator[_Timed]:
    for row in rows:
        ts = _us(row.start_ns - base_ns)
        where = b'"pid":%d,"tid":%d' % (row.pid, row.tid)
        if row.kind == EVENT:
            shape = b'"ph":"i","s":"t","ts":' + ts
        elif row.end_ns is None:
            shape = b'"ph":"B","ts":' + ts
        else:
            shape = b'"ph":"X","ts":%b,"dur":%b' % (ts, _us(row.end_ns - row.start_ns))
        text = _entry(row, shape, where, pids)
        # Arrows bind to what began last on a track, so nothing may come between.
        if row.is_linked:
            text += _arrow(b'"ph":"f","bp":"e"', row.span_id, ts, where)
        for child in row.children or ():
            text += _arrow(b'"ph":"s"', child, ts, where)
        yield _Timed(row.start_ns, 0, text)


def _entry(row: TraceRow, shape: bytes, where: bytes, pids: _Pids) -> bytes:
    category = _encode_name(",".join(categories_of(row)))
    facts = facts_of(row)
    # What an import of the file needs beside what is shown.
    if row.trace_id is not None:
        facts["trace_id"] = row.trace_id.hex()
    if row.consumed_ns is not None:
        facts["consumed_ns"] = row.consumed_ns
    if pids[row.process] != row.pid:
        facts["process"] = pids[row.process]
    return b'{"name":%b,"cat":%b,%b,%b,"args":%b}' % (
        _encode_name(row.name), category, shape, where, _encode(facts),
    )  # fmt: skip


def _arrow(shape: bytes, span_id: int, ts: bytes, where: bytes) -> bytes:
    return b',\n{"name":"parent","cat":"parent",%b,"id":"0x%x","ts":%b,%b}' % (
        shape, span_id, ts, where,
    )  # fmt: skip


def _as_pairs(rows: Iterable[TraceRow], base_ns: int, pids: _Pids) -> Iterator[_Timed]:
    """Give beginnings and ends by time; those to come are as many as spans are open at once."""
    ends: list[_Timed] = []
    for number, row in enumerate(rows):
        while ends and ends[0].time_ns <= row.start_ns:
            yield heapq.heappop(ends)
        where = b'"pid":%d,"tid":%d' % (row.pid, row.pid)
        ts = _us(row.start_ns - base_ns)
        if row.kind == EVENT:
            yield _Timed(row.start_ns, 0, _entry(row, b'"ph":"i","s":"p","ts":' + ts, where, pids))
            continue
        key = b'"id":"0x%b"' % hex_id(row.span_id).encode()
        begin = b'"ph":"b",%b,"ts":%b' % (key, ts)
        yield _Timed(row.start_ns, 0, _entry(row, begin, where, pids))
        if row.end_ns is not None:
            shape = b'"ph":"e",%b,"ts":%b,%b' % (key, _us(row.end_ns - base_ns), where)
            category = _encode_name(",".join(categories_of(row)))
            text = b'{"name":%b,"cat":%b,%b}' % (_encode_name(row.name), category, shape)
            heapq.heappush(ends, _Timed(row.end_ns, number, text))
    while ends:
        yield heapq.heappop(ends)


def _counter(point: CounterPoint, pids: _Pids, base_ns: int) -> _Timed:
    text = b'{"name":%b,"ph":"C","ts":%b,"pid":%d,"args":%b}' % (
        _encode_name(point.title),
        _us(point.time_ns - base_ns),
        pids[point.process],
        _encode(point.values),
    )
    return _Timed(point.time_ns, _NEVER, text)
