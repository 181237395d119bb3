"""Prometheus' text as it was saved from a program: its metrics, as of when the file was written.

Counters and histograms show all since the start of their program. Two files of one program, which
`process_start_time_seconds` tells, are two readings: of the later one only what was added counts.
"""

import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

import msgspec

from rollscope.collect.engineseries import SeriesChoice
from rollscope.collect.exposition import Exposition, read_point
from rollscope.collect.increments import Increments
from rollscope.importing.accounts import Report
from rollscope.importing.formats import Place
from rollscope.importing.rl_insight_sessions import AgentSessions, run_of
from rollscope.importing.values import decode_object
from rollscope.importing.writing import RunWriter

__all__ = ["PrometheusText"]

_MOST_POINTS: Final = 50_000
_MOST_TYPES: Final = 20_000
_LINE_BYTES: Final = 64 * 1024
_OWN: Final = ("python_", "process_")
_STARTED: Final = b"process_start_time_seconds "
_EVERYTHING: Final = SeriesChoice(("*",))


class _Reading(msgspec.Struct):
    """What one file shows."""

    name: str
    at_ns: int
    program: str = ""
    shown: Any = None


class PrometheusText:
    """Makes metrics of it, and sessions of what RL-Insight shows as gauges."""

    format = "prometheus"

    def __init__(self, writer: RunWriter, report: Report, sessions: AgentSessions) -> None:
        self._writer, self._report, self._sessions = writer, report, sessions
        self._readings: dict[int, _Reading] = {}

    def claims(self, raw: bytes) -> bool:
        """Claim every line that is no JSON."""
        return raw[:1] != b"{" or decode_object(raw) is None

    def survey(self, place: Place, raw: bytes) -> None:
        """Learn whose metrics a file shows, and which sessions."""
        if raw.startswith(_STARTED):
            self._reading(place).program = raw.decode("utf-8", "replace")
        elif b"agent_loop_" in raw and raw[:1] != b"#" and len(raw) <= _LINE_BYTES:
            try:
                point = read_point(raw.decode("utf-8", "replace"))
            except ValueError:
                return
            self._sessions.note_gauge(point.name, point.labels, point.value)

    def settle(self) -> None:
        """Take the earliest reading for a wall time that is known."""
        times = [reading.at_ns for reading in self._readings.values()]
        if times:
            self._writer.note_wall(min(times))

    def take(self, place: Place, raw: bytes) -> str:
        """Take one line; what it comes to is written at the end."""
        shown = self._reading(place).shown
        if raw[:1] == b"#":
            self._note_type(shown, raw)
            self._report.count("lines of metadata")
            return ""
        if len(raw) > _LINE_BYTES:
            return "bad: longer than 64 KiB"
        try:
            point = read_point(raw.decode("utf-8", "replace"))
        except ValueError:
            return "bad: no value of a series"
        if point.name.startswith(_OWN):
            return "about the process itself"
        if _is_creation(point.name, shown.types):
            return "when a series began"
        if run := run_of(point.labels):
            self._report.name_run(run)
        if self._sessions.is_gauge(point.name):
            self._report.count("gauges of sessions")
            return ""
        if not math.isfinite(point.value):
            return "a value without a size"
        if len(shown.points) >= _MOST_POINTS:
            return "more series than are read"
        shown.points.append(point)
        return ""

    def _reading(self, place: Place) -> _Reading:
        found = self._readings.get(place.file_number)
        if found is None:
            name = PurePath(place.file.path).name
            at_ns = max(place.file.modified_ns, 1)
            found = self._readings[place.file_number] = _Reading(name, at_ns, shown=Exposition())
        return found

    def _note_type(self, shown: Exposition, raw: bytes) -> None:
        words = raw.decode("utf-8", "replace").split(None, 4)
        if words[:2] == ["#", "TYPE"] and len(words) == 4 and len(shown.types) < _MOST_TYPES:
            shown.types[words[2].strip('"')] = words[3].lower()

    def finish(self) -> None:
        """Write the metrics, reading by reading in the order of time, and the sessions."""
        programs: dict[str, Increments] = {}
        for number, reading in sorted(self._readings.items(), key=lambda one: one[1].at_ns):
            program = reading.program or f"file {number}"
            counted = programs.get(program)
            if counted is None:
                counted = programs[program] = Increments(
                    _EVERYTHING, _no_labels, from_start=True, most=_MOST_POINTS
                )
            found = counted.read(reading.shown)
            counted.accept(found)
            if found.metrics:
                domain = self._writer.domain(f"metrics/{reading.name}", role="metrics")
                domain.metric(reading.at_ns, found.metrics)
                self._report.count("metrics", len(found.metrics))
        if self._readings:
            latest = max(reading.at_ns for reading in self._readings.values())
            self._sessions.finish(self._writer, latest)
        self._readings.clear()


def _is_creation(name: str, types: Mapping[str, str]) -> bool:
    """Say whether a line only tells when a counter or histogram began."""
    base = name.removesuffix("_created")
    return base != name and (base in types or f"{base}_total" in types)


def _no_labels(_: Mapping[str, str]) -> dict[str, str]:
    return {}
