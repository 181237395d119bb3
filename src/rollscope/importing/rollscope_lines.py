"""Rollscope's own JSON lines, as `rollscope export --format jsonl` writes them."""

from array import array
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.importing.accounts import Report
from rollscope.importing.formats import Place
from rollscope.importing.rollscope_fields import (
    LINES_SCHEMA,
    Line,
    cut_text,
    fields_of,
    number_of,
    read_id,
    read_line,
    read_number,
    read_trace,
)
from rollscope.importing.writing import Domain, RunWriter
from rollscope.model.batch import Metric
from rollscope.model.kinds import (
    EVENT_CODE,
    KIND_CODES,
    SPAN_CODES,
    STATUS_CODES,
    Category,
    Kind,
    Status,
)
from rollscope.model.scope import ScopeRow
from rollscope.otlp.rows import Row, fit_attrs

__all__ = ["RollscopeLines"]

_MOST_PROCESSES: Final = 10_000
_MOST_TEXT: Final = 4096
_OK: Final = STATUS_CODES[Status.OK]
_NO_TRACE: Final = bytes(16)
_KEPT, _DUPLICATE, _OLDER = range(3)
_FATES: Final = ("", "duplicate", "an older line of a span")
_unpack: Final = msgspec.msgpack.Decoder(dict[str, Any]).decode


class _Process(NamedTuple):
    name: str
    host: str
    pid: int
    role: str
    rank: int | None


class RollscopeLines:
    """Writes what the lines say as it was recorded."""

    format = "rollscope-jsonl"

    def __init__(self, writer: RunWriter, report: Report) -> None:
        self._writer, self._report = writer, report
        self._hashes, self._ids, self._files = array("q"), array("Q"), array("i")
        """Of every line that names a process, 20 bytes: what it says, of what, and where."""
        self._processes: dict[str, _Process] = {}
        self._names: set[str] = set()
        self._fates: npt.NDArray[np.int8] = np.empty(0, np.int8)
        self._at = -1

    def claims(self, raw: bytes) -> bool:
        """Look for the first two keys."""
        return raw.startswith(b'{"kind":"') and b'","process":"' in raw[:32]

    def survey(self, place: Place, raw: bytes) -> None:
        """Note who recorded, and what each line is of."""
        line, _ = read_line(raw)
        if line is None or line.kind == "run" or not line.process:
            return
        self._hashes.append(number_of(raw))
        self._ids.append(read_id(line.span_id) if line.is_span else 0)
        self._files.append(place.file_number)
        if line.start_ns or line.time_ns:
            self._writer.note_wall(line.start_ns or line.time_ns)
        if line.kind == "process" and line.process not in self._processes:
            self._know(line)

    def _know(self, line: Line) -> None:
        if len(self._processes) >= _MOST_PROCESSES:
            return
        base = f"{line.role or 'process'}-r{line.rank}" if line.rank is not None else line.role
        base = (base or line.host or line.process)[:100]
        name, number = base, 1
        while name in self._names:
            number += 1
            name = f"{base}.{number}"
        self._names.add(name)
        known = (name, line.host, line.pid, line.role, line.rank)
        self._processes[line.process] = _Process(*known)

    def settle(self) -> None:
        """Find what stands there more than once: in two files, or first open and then ended."""
        hashes, ids = np.array(self._hashes), np.array(self._ids)
        files, at = np.array(self._files), np.arange(len(self._files))
        self._fates = np.zeros(len(at), np.int8)
        if not len(at):
            return
        order = np.lexsort((at, files, hashes))
        is_first = np.append(True, hashes[order][1:] != hashes[order][:-1])
        first = files[order][np.maximum.accumulate(np.where(is_first, at, 0))]
        self._fates[order[files[order] != first]] = _DUPLICATE
        named = np.nonzero((ids != 0) & (self._fates == _KEPT))[0]
        named = named[np.argsort(ids[named], kind="stable")]
        before, after = named[:-1], named[1:]
        again = ids[before] == ids[after]
        same = hashes[before] == hashes[after]
        self._fates[before[again]] = np.where(same[again], _DUPLICATE, _OLDER)

    def take(self, place: Place, raw: bytes) -> str:
        """Write a line as what it is."""
        line, trouble = read_line(raw)
        if line is None:
            return trouble
        if line.kind == "run":
            return "" if line.schema <= LINES_SCHEMA else "bad: written by a newer version"
        if not line.process:
            return "bad: no process"
        self._at += 1
        return _FATES[self._fates[self._at]] or self._write(line)

    def _write(self, line: Line) -> str:
        domain = self._domain(line.process)
        if line.kind == "process":
            return ""
        if line.kind == "event":
            why = self._add(domain, line, EVENT_CODE, _OK, line.event_id, line.time_ns, None)
        elif line.kind == "fact":
            why = _tell_fact(domain, line)
        elif line.kind == "metric":
            why = _measure(domain, line)
        else:
            if line.status not in STATUS_CODES:
                return "bad: a status that is unknown"
            what = KIND_CODES.get(Kind(line.kind), SPAN_CODES[line.category or Category.MISC])
            status = STATUS_CODES[Status(line.status)]
            times = (line.start_ns, line.end_ns)
            why = self._add(domain, line, what, status, line.span_id, *times)
        if not why:
            self._report.count(f"{line.kind}s")
        return why

    def _domain(self, process: str) -> Domain:
        unknown = _Process(process[:100], "", 0, "", None)
        name, host, pid, role, rank = self._processes.get(process, unknown)
        domain = self._writer.domain(name, role=role, rank=rank, host=host, pid=pid)
        if host:
            domain.header.role = role  # none is as good as any
        return domain

    def _add(
        self,
        domain: Domain,
        line: Line,
        what: int,
        status: int,
        own_id: str,
        start_ns: int,
        end_ns: int | None,
    ) -> str:
        span_id, trace_id = read_id(own_id), read_trace(line.trace_id)
        if not span_id or trace_id is None or not start_ns:
            return "bad: no id or no time"
        if what != EVENT_CODE and (end_ns is None) != (line.status == Status.OPEN):
            return "bad: an end and a status that exclude each other"
        session = read_id(line.session_id) if line.session_id else None
        named = (cut_text(line.task_key), cut_text(line.group))
        scope: ScopeRow = (trace_id, line.step, *named, session, line.sample)
        over = start_ns if what == EVENT_CODE else end_ns or 0
        parent_id = read_id(line.parent_id) if line.parent_id else 0
        row = (what, status, line.name[:_MOST_TEXT], scope, span_id, parent_id, start_ns, over)
        domain.add(Row(*row, fit_attrs(line.attrs), fields_of(line)))
        return ""

    def finish(self) -> None:
        """Leave nothing: every line was written at once."""


def _tell_fact(domain: Domain, line: Line) -> str:
    span_id = read_id(line.span_id)
    if not span_id or not line.time_ns:
        return "bad: no id or no time"
    domain.fact(_NO_TRACE, span_id, line.time_ns, _unpack(fit_attrs(line.facts)))
    return ""


def _measure(domain: Domain, line: Line) -> str:
    value = read_number(line.value)
    if line.type is None or value is None or not line.time_ns:
        return "bad: no type, no value or no time"
    least, most = read_number(line.min), read_number(line.max)
    told = (line.type, line.name, line.labels, value, line.count, least, most, line.buckets)
    domain.metric(line.time_ns, [Metric(*told, step=line.step)])
    return ""
