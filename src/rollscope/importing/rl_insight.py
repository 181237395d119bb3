"""RL-Insight's events: `{"kind": "trace" | "counter" | "gauge" | "histogram", ...}`."""

import re
from collections.abc import Mapping
from typing import Any, Final

from rollscope.importing.accounts import Report
from rollscope.importing.formats import Place
from rollscope.importing.rl_insight_sessions import (
    TEXT_BYTES,
    AgentSessions,
    SessionKey,
    run_of,
    session_key,
)
from rollscope.importing.statuses import read_status
from rollscope.importing.values import WALL_NS, decode_object, stable_bytes, stable_id
from rollscope.importing.writing import Domain, RunWriter
from rollscope.instrument.sanitise import clean_text
from rollscope.metrics.buckets import bucket_of
from rollscope.model.batch import Metric
from rollscope.model.kinds import KIND_CODES, SPAN_CODES, STATUS_CODES, Kind, MetricType, Status
from rollscope.model.scope import ScopeRow
from rollscope.otlp.aliases import first_number, read_aliases, whole_number
from rollscope.otlp.rows import Row, fit_attrs

__all__ = ["RlInsight"]

_STATUS: Final = STATUS_CODES
_MOST_NS: Final = 2**62
_KINDS: Final = (b"counter", b"gauge", b"histogram", b"trace")
_TURN: Final = re.compile(r"gateway_generation|turn_\d+")
_SEGMENT: Final = "monitor.trace_segment"
_CONTENT: Final = ("content", "reasoning", "tool_args")
_TOLD: Final = frozenset(
    (
        "process_id",
        "sample",
        "session",
        "traj",
        "uid",
        "global_steps",
        "state_lane_id",
        "state_name",
        "step",
        "stage",
        _SEGMENT,
        "monitor.trace_source",
    )
)
_MOST_LABELS: Final = 16
_LABEL_CHARACTERS: Final = 200


class RlInsight:
    """Makes states, spans, sessions and metrics of them."""

    format = "rl-insight"

    def __init__(self, writer: RunWriter, report: Report, sessions: AgentSessions) -> None:
        self._writer, self._report, self._sessions = writer, report, sessions
        self._seen: set[int] = set()
        self._times: dict[int, int] = {}
        """By file, the time that a metric in it is of: that of the span before it."""

    def claims(self, raw: bytes) -> bool:
        """Look for the kind, which stands first."""
        return b'"kind"' in raw[:64] and any(kind in raw[:64] for kind in _KINDS)

    def survey(self, place: Place, raw: bytes) -> None:
        """Learn which sessions there are, and when."""
        read = decode_object(raw)
        if read is None or not isinstance(read[0].get("name"), str):
            return
        event = read[0]
        if event.get("kind") == "gauge":
            labels = event.get("labels")
            if isinstance(labels, dict):
                self._sessions.note_gauge(event["name"], labels, event.get("value"))
            return
        times, said = _times_of(event), _attributes(event)
        if times is None or event.get("kind") != "trace":
            return
        first = self._times.get(place.file_number, times[0])
        self._times[place.file_number] = min(first, times[0])
        if times[0] >= WALL_NS:
            self._writer.note_wall(times[0])
        key = session_key(said)
        if key is not None:
            self._sessions.note_span(key, place.number, *times, said)

    def settle(self) -> None:
        """Nothing is left to conclude."""

    def take(self, place: Place, raw: bytes) -> str:
        """Write one event."""
        read = decode_object(raw)
        if read is None:
            return "bad: no JSON object"
        event, is_odd = read
        if not isinstance(event.get("name"), str) or not event["name"]:
            return "bad: no name"
        if event.get("kind") != "trace":
            return self._take_metric(place, event)
        times = _times_of(event)
        if times is None:
            return "bad: no time"
        said = _attributes(event)
        if is_odd:
            said["source_not_finite"] = True
        self._times[place.file_number] = max(times)
        self._name_run(said)
        return self._take_span(place, event["name"], *times, said)

    def _name_run(self, said: Mapping[str, Any]) -> None:
        run = run_of(said)
        if run:
            self._report.name_run(run)

    def _take_span(
        self, place: Place, name: str, start_ns: int, end_ns: int, said: dict[str, Any]
    ) -> str:
        domain = self._domain(said, start_ns)
        attrs, key = _attrs(said), session_key(said)
        if key is not None and self._sessions.is_teller(key, place.number):
            self._sessions.write(domain, key, start_ns, said, attrs)
        content = sorted(said.items(), key=lambda item: item[0])
        own_id = stable_id("rl-insight", domain.name, name, start_ns, end_ns, content)
        if own_id in self._seen:
            return "duplicate"
        self._seen.add(own_id)
        status, end = self._ending(start_ns, end_ns, said, attrs)
        if domain.account.clock == "unanchored":
            attrs["clock"] = "unanchored"
        if key is not None:
            what, shown, scope, parent = self._in_session(key, name, said, attrs)
            fields: dict[str, Any] = {}
        else:
            what, shown, fields = self._on_lane(domain, name, said, attrs)
            step = whole_number(said.get("step", said.get("global_steps")))
            scope, parent = (stable_bytes(16, domain.name), step, None, None, None, None), 0
        if "error.message" in attrs:
            fields["reason"] = clean_text(attrs["error.message"], TEXT_BYTES)
        row = (what, status, clean_text(shown, TEXT_BYTES) or "span", scope, own_id, parent)
        domain.add(Row(*row, start_ns, end, fit_attrs(attrs), fields))
        reward = first_number(attrs.get("reward"))
        if reward is not None and scope[4] is not None:
            domain.fact(scope[0], scope[4], end or start_ns, {"reward": float(reward)})
        return ""

    def _domain(self, said: dict[str, Any], start_ns: int) -> Domain:
        pid = whole_number(said.get("process_id"))
        name = "process" if pid is None else f"process-{pid}"
        is_wall = start_ns >= WALL_NS
        name = name if is_wall else f"{name}.monotonic"
        return self._writer.domain(name, role="rl-insight", pid=pid or 0, is_wall=is_wall)

    def _ending(
        self, start_ns: int, end_ns: int, said: dict[str, Any], attrs: dict[str, Any]
    ) -> tuple[int, int]:
        if not end_ns:
            return _STATUS[Status.OPEN], 0
        if end_ns < start_ns:
            attrs["clock_suspect"], attrs["source_end_ns"], end_ns = True, end_ns, start_ns
        if said.get("error"):
            attrs["error.message"] = str(said["error"])
            return _STATUS[Status.ERROR], end_ns
        status = read_status(said.get("status"), has_end=True).status
        return (_STATUS[Status.OK] if status == _STATUS[Status.OPEN] else status), end_ns

    def _in_session(
        self, key: SessionKey, name: str, said: dict[str, Any], attrs: dict[str, Any]
    ) -> tuple[int, str, ScopeRow, int]:
        """Say what a span of a session is, and where it belongs."""
        scope, session_id = self._sessions.scope(key)
        chain, traj = whole_number(said.get("chain_id")), said.get("traj")
        branch = chain - 1 if traj is None and chain is not None else traj
        if branch is not None:
            number = whole_number(branch)
            attrs["branch"] = branch if number is None else number
        if _TURN.fullmatch(name):
            attrs["source_name"] = name
            self._report.count("turns")
            return KIND_CODES[Kind.PHASE], "generate", scope, session_id
        self._report.count("spans of sessions")
        return SPAN_CODES["misc"], name, scope, session_id

    def _on_lane(
        self, domain: Domain, name: str, said: dict[str, Any], attrs: dict[str, Any]
    ) -> tuple[int, str, dict[str, Any]]:
        """Say what a span of a process is, and which lane it lies on."""
        lane = said.get("state_lane_id")
        if said.get(_SEGMENT) == "state_interval":
            # Equal states that overlapped were written as one, and hidden ones not at all.
            attrs["lane_merged"] = True
            shown = clean_text(domain.name if lane is None else str(lane), TEXT_BYTES)
            self._report.count("states")
            return KIND_CODES[Kind.STATE], str(said.get("state_name") or name), {"lane": shown}
        shown = clean_text(str(said.get("process_id") or domain.name), TEXT_BYTES)
        self._report.count("spans")
        return SPAN_CODES["misc"], name, {"lane": shown}

    def _take_metric(self, place: Place, event: dict[str, Any]) -> str:
        kind, name = event.get("kind"), clean_text(event["name"], TEXT_BYTES)
        value = first_number(event.get("value"))
        at_ns = self._times.setdefault(place.file_number, max(place.file.modified_ns, 1))
        if kind not in ("counter", "gauge", "histogram"):
            return "bad: no kind that is known"
        if value is None:
            return "bad: a metric without a value"
        if kind == "gauge" and self._sessions.is_gauge(name):
            self._report.count("gauges of sessions")
            return ""
        if kind == "counter" and value < 0:
            return "a counter that goes down"
        self._report.guess("time of a metric")
        labels = _labels(event.get("labels"))
        self._name_run(labels)
        metric = Metric(MetricType(kind), name, labels, float(value), 1)
        if kind == "histogram":
            metric.min = metric.max = float(value)
            metric.buckets = {bucket_of(float(value)): 1}
        self._writer.domain("metrics", role="rl-insight").metric(at_ns, [metric])
        self._report.count("metrics")
        return ""

    def finish(self) -> None:
        """Write the sessions that have not ended, and the tasks."""
        if self._times:
            self._sessions.finish(self._writer, max(self._times.values()))


def _times_of(event: dict[str, Any]) -> tuple[int, int] | None:
    """Give start and end, 0 while open; None if there is no start."""
    start = whole_number(event.get("start_time_ns"))
    end = whole_number(event.get("end_time_ns")) or 0
    if start is None or not 0 < start < _MOST_NS:
        return None
    return start, end if 0 < end < _MOST_NS else 0


def _attributes(event: dict[str, Any]) -> dict[str, Any]:
    """Give the attributes that say anything: empty text means that there is none."""
    given = event.get("attributes")
    if not isinstance(given, dict):
        return {}
    return {name: item for name, item in given.items() if item is not None and item != ""}


def _attrs(said: dict[str, Any]) -> dict[str, Any]:
    """Give what is kept, under our names; of texts, how long they are."""
    rest = {name: item for name, item in said.items() if name not in _TOLD}
    for name in _CONTENT:
        if name in rest:
            rest[f"{name}_chars"] = len(str(rest.pop(name)))
    rest.pop("chain_id", None)
    session_id, error = rest.pop("session_id", None), rest.pop("error", None)
    attrs = dict(read_aliases(rest).details)
    kept = {"session_id": session_id, "error": error, "stage": said.get("stage")}
    return attrs | {name: item for name, item in kept.items() if item is not None}


def _labels(given: object) -> dict[str, str]:
    if not isinstance(given, dict):
        return {}
    return {
        clean_text(name, _LABEL_CHARACTERS): clean_text(str(value), _LABEL_CHARACTERS)
        for name, value in list(given.items())[:_MOST_LABELS]
    }
