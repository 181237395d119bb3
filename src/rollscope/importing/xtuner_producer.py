"""XTuner's producer trace: `producer_trace_{pid}_{writer}_{shard}.jsonl`.

Two lines a span, so that what is open is seen. What a whole group goes through is written for each
of its samples; it is kept below their task, since a sample lasts no longer than itself.
"""

import re
from pathlib import PurePath
from typing import Any, Final

from rollscope.importing.accounts import Report
from rollscope.importing.formats import Place
from rollscope.importing.values import WALL_NS, decode_object, derived_id
from rollscope.importing.writing import Domain, RunWriter
from rollscope.importing.xtuner_pairs import (
    DUPLICATE,
    INSTANT,
    LONELY,
    OPEN,
    PART,
    What,
)
from rollscope.importing.xtuner_producer_sessions import TEXT_BYTES, Sessions, error_attrs
from rollscope.importing.xtuner_producer_stages import LABELS, split_stage
from rollscope.importing.xtuner_producer_survey import Fate, Survey
from rollscope.instrument.sanitise import clean_text
from rollscope.model.kinds import (
    EVENT_CODE,
    KIND_CODES,
    SPAN_CODES,
    STATUS_CODES,
    Kind,
    Status,
)
from rollscope.otlp.aliases import whole_number
from rollscope.otlp.rows import Row, fit_attrs

__all__ = ["XtunerProducer"]

_STATUS: Final = STATUS_CODES
_MISC: Final = SPAN_CODES["misc"]
_FILE: Final = re.compile(r"producer_trace_(\d{1,9})_\d+_\d+\.")
_SAID: Final = frozenset(
    (
        "trace_id",
        "stage",
        "timestamp_s",
        "status",
        "task_name",
        "uid",
        "session_uid",
        "train_step",
        "model_step",
        "elapsed_s",
        "worker_rank",
        "error_msg",
    )
)
"""What is kept under another name, or as a field."""


class XtunerProducer:
    """Makes sessions, tasks, phases and spans of it."""

    format = "xtuner-producer"

    def __init__(self, writer: RunWriter, report: Report) -> None:
        self._writer, self._report = writer, report
        self._survey = Survey()
        self._sessions = Sessions(self._survey, report)
        self._domains: dict[tuple[int, bool], Domain] = {}
        """By file, and whether its times are those of a wall clock."""

    def claims(self, raw: bytes) -> bool:
        """Look for what no other format has."""
        return b'"timestamp_s"' in raw and b'"stage"' in raw

    def survey(self, place: Place, raw: bytes) -> None:
        """Note the event."""
        self._survey.look(place.number, raw)

    def settle(self) -> None:
        """Pair starts and ends, find sessions and groups."""
        self._survey.settle()
        self._sessions.settle()
        first = min((time for time in self._survey.pairs.times if time >= WALL_NS), default=None)
        if first is not None:
            self._writer.note_wall(first)
        if self._survey.batches:
            self._report.count("batches", len(self._survey.batches))

    def take(self, place: Place, raw: bytes) -> str:
        """Write what an event tells: a span that it ends or leaves open, an instant, a session."""
        pairs = self._survey.pairs
        at = pairs.find(place.number)
        if at < 0:
            is_object = decode_object(raw) is not None
            return f"bad: no {'trace id, no stage or no time' if is_object else 'JSON object'}"
        fate, session = pairs.fate[at], pairs.owners[at]
        if fate == DUPLICATE:
            return "duplicate"
        told = self._survey.fate(session)
        if fate == PART and told.teller != at:
            return ""
        read = decode_object(raw)
        if read is None:
            return "bad: no JSON object"
        event, is_odd = read
        domain = self._domain(place, pairs.times[at])
        if told.teller == at:
            self._sessions.add(domain, session, told, event)
        if fate == LONELY:
            return "an end that has neither a start nor a length"
        if fate != PART:
            self._add(domain, at, told, event, is_odd=is_odd)
        return ""

    def _domain(self, place: Place, at_ns: int) -> Domain:
        key = (place.file_number, at_ns >= WALL_NS)
        found = self._domains.get(key)
        if found is None:
            found = self._domains[key] = self._new_domain(place, is_wall=key[1])
        return found

    def _new_domain(self, place: Place, *, is_wall: bool) -> Domain:
        name = PurePath(place.file.path).name
        found = _FILE.match(name)
        pid = int(found[1]) if found else 0
        known = f"producer-{pid}" if found else name.partition(".")[0] or name
        known = known if is_wall else f"{known}.monotonic"
        return self._writer.domain(known, role="producer", pid=pid, is_wall=is_wall)

    def _add(
        self, domain: Domain, at: int, told: Fate, event: dict[str, Any], *, is_odd: bool
    ) -> None:
        """Write a span or an instant."""
        pairs, session = self._survey.pairs, self._survey.pairs.owners[at]
        is_own = not pairs.stage(at).is_shared
        scope, holder = self._sessions.scope(session, told, is_own=is_own)
        name = split_stage(event["stage"])[0]
        attrs = self._attrs(event, name, at, is_odd=is_odd)
        fields: dict[str, Any] = {}
        if (rank := whole_number(event.get("worker_rank"))) is not None:
            fields["lane"] = f"worker-r{rank}"
        ids = self._sessions.own_id(session)
        own_id = derived_id(ids, pairs.number[at])
        parent = derived_id(ids, pairs.above[at]) if pairs.above[at] >= 0 else holder
        if not is_own:
            attrs["session_id"] = self._sessions.names[session]
        if domain.account.clock == "unanchored":
            attrs["clock"] = "unanchored"
        if pairs.fate[at] == INSTANT:
            now = pairs.times[at]
            row = (EVENT_CODE, _STATUS[Status.OK], _name(name), scope, own_id, parent, now, now)
            domain.add(Row(*row, fit_attrs(attrs), {}))
            self._report.count("instants")
            return
        status, end = self._ending(at, told, attrs, fields, is_own=is_own)
        what, shown = _MISC, name
        if pairs.is_phase[at]:
            what, shown = KIND_CODES[Kind.PHASE], pairs.stage(at).phase
            attrs["source_name"] = name
        row = (what, status, _name(shown), scope, own_id, parent, pairs.begin[at], end)
        domain.add(Row(*row, fit_attrs(attrs), fields))
        self._report.count("spans" if end else "spans open")

    def _ending(
        self,
        at: int,
        told: Fate,
        attrs: dict[str, Any],
        fields: dict[str, Any],
        *,
        is_own: bool,
    ) -> tuple[int, int]:
        """Say how a span ended, and when; 0 while it is open."""
        pairs = self._survey.pairs
        begin = pairs.begin[at]
        if pairs.fate[at] == OPEN:
            # Nothing is written for what is cancelled; it cannot outlast its sample.
            if not (is_own and told.end_ns):
                return _STATUS[Status.OPEN], 0
            attrs["end_guessed"] = True
            self._report.guess("end of a span")
            return _STATUS[Status.LOST], max(told.end_ns, begin)
        end = pairs.end(at)
        if pairs.is_set_back[at] or end < begin:
            attrs["clock_suspect"], attrs["source_end_ns"] = True, pairs.times[at]
        if pairs.whats[at] == What.ERROR:
            if pairs.is_copied[at]:
                attrs["error.copied"] = True
            if "error.message" in attrs:
                fields["reason"] = clean_text(attrs["error.message"], TEXT_BYTES)
            return _STATUS[Status.ERROR], max(end, begin)
        return _STATUS[Status.OK], max(end, begin)

    def _attrs(self, event: dict[str, Any], name: str, at: int, *, is_odd: bool) -> dict[str, Any]:
        attrs = {key: item for key, item in event.items() if key not in _SAID and item is not None}
        attrs.pop("produce_batch_id", None)
        attrs.pop("producer_future_step", None)
        if name in LABELS:
            attrs["label"] = LABELS[name]
        if event.get("status") is not None:
            attrs["source_status"] = event["status"]
        attrs |= error_attrs(event.get("error_msg"))
        if is_odd:
            attrs["source_not_finite"] = True
        return attrs

    def finish(self) -> None:
        """Write the tasks."""
        self._sessions.finish()


def _name(name: str) -> str:
    return clean_text(name, TEXT_BYTES) or "span"
