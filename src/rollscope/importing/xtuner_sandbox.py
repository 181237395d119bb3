"""XTuner's sandbox: `spans.{actor}.{pid}.jsonl`, `fates. …`, and `llm_calls.{pid}.jsonl`.

Spans stand on two lines each, verdicts in a file of their own. Calls of the model name no session;
they are spans of their process.
"""

import re
from pathlib import PurePath
from typing import Any, Final

from rollscope.importing.accounts import Report
from rollscope.importing.formats import Place
from rollscope.importing.statuses import Verdict, read_reason, read_status
from rollscope.importing.tasks import TaskSpans
from rollscope.importing.values import (
    WALL_NS,
    decode_object,
    derived_id,
    millis_to_ns,
    stable_bytes,
    stable_id,
)
from rollscope.importing.writing import Domain, RunWriter
from rollscope.importing.xtuner_pairs import DUPLICATE, INSTANT, LONELY, OPEN, PART, What
from rollscope.importing.xtuner_sandbox_survey import (
    VERDICT,
    Ended,
    Survey,
    is_call,
    read_time,
)
from rollscope.instrument.sanitise import clean_text
from rollscope.model.kinds import (
    EVENT_CODE,
    KIND_CODES,
    SPAN_CODES,
    STATUS_CODES,
    Kind,
    Outcome,
    Status,
)
from rollscope.model.scope import ScopeRow
from rollscope.otlp.rows import Row, fit_attrs

__all__ = ["XtunerSandbox"]

_STATUS: Final = STATUS_CODES
_TEXT_BYTES: Final = 512
_FILE: Final = re.compile(r"(?:spans|fates|(llm_calls))\.(?:(.{1,128})\.)?(\d{1,9})\.")
_SAID: Final = frozenset(("ts", "event", "uid", "stage", "duration_ms", "ok", "err", "final"))
_TOKENS: Final = {"prompt_tokens": "tokens_in", "completion_tokens": "tokens_out"}


class XtunerSandbox:
    """Makes sessions, tasks, phases and spans of them."""

    format = "xtuner-sandbox"

    def __init__(self, writer: RunWriter, report: Report) -> None:
        self._writer, self._report = writer, report
        self._survey = Survey()
        self._names: list[str] = []
        """Of sessions, by number."""
        self._calls: set[int] = set()
        self._tasks = TaskSpans(report)

    def claims(self, raw: bytes) -> bool:
        """Look for what no other format has, and for what its writer could not write."""
        return (
            b'"_encode_error"' in raw
            or (b'"stage"' in raw and b'"event"' in raw and b'"uid"' in raw)
            or b'"rollout_ms"' in raw
        )

    def survey(self, place: Place, raw: bytes) -> None:
        """Note the line."""
        self._survey.look(place.number, raw)

    def settle(self) -> None:
        """Pair starts and ends, and find out how sessions ended."""
        self._survey.settle()
        self._names = list(self._survey.pairs.sessions)
        first = min((time for time in self._survey.pairs.times if time >= WALL_NS), default=None)
        if first is not None:
            self._writer.note_wall(first)

    def take(self, place: Place, raw: bytes) -> str:
        """Write what a line tells."""
        read = decode_object(raw)
        if read is None:
            return "bad: no JSON object"
        record, is_odd = read
        if "_encode_error" in record:
            return "bad: its writer could not encode it"
        at_ns = read_time(record)
        if at_ns is None:
            return "bad: no time"
        domain = self._domain(place, at_ns)
        pairs = self._survey.pairs
        at = pairs.find(place.number)
        if at < 0:
            if not is_call(record):
                return "bad: no uid, stage or verdict"
            return self._add_call(domain, at_ns, raw, record, is_odd=is_odd)
        fate = pairs.fate[at]
        if fate == DUPLICATE:
            return "duplicate"
        ended = self._survey.ended(pairs.owners[at])
        if ended.teller == at:
            self._add_session(domain, pairs.owners[at], ended, record)
        if fate == LONELY:
            return "an end that has neither a start nor a length"
        if fate != PART:
            self._add(domain, at, ended, record, is_odd=is_odd)
        return ""

    def _domain(self, place: Place, at_ns: int) -> Domain:
        name = PurePath(place.file.path).name
        found = _FILE.match(name)
        known, role, pid = name.partition(".")[0] or name, "sandbox", 0
        if found is not None:
            role, pid = "llm" if found[1] else found[2] or "sandbox", int(found[3])
            known = f"{role}-{pid}"
        is_wall = at_ns >= WALL_NS
        known = known if is_wall else f"{known}.monotonic"
        return self._writer.domain(known, role=role, pid=pid, is_wall=is_wall)

    def _add_call(
        self, domain: Domain, at_ns: int, raw: bytes, record: dict[str, Any], *, is_odd: bool
    ) -> str:
        """Write a call of the model; its line is written when it is over."""
        length = millis_to_ns(record["total_ms"])
        if length is None or length < 0:
            return "bad: a call without a length"
        key = stable_id(domain.name, "call", raw)
        if key in self._calls:
            return "duplicate"
        self._calls.add(key)
        attrs = self._plain(domain, record, is_odd=is_odd)
        attrs = {_TOKENS.get(name, name): item for name, item in attrs.items()}
        start = at_ns - length
        if start < (WALL_NS if at_ns >= WALL_NS else 1):
            attrs["clock_suspect"], start = True, at_ns
        scope: ScopeRow = (stable_bytes(16, domain.name), None, None, None, None, None)
        row = (SPAN_CODES["compute"], _STATUS[Status.OK], "llm_call", scope, key, 0, start, at_ns)
        domain.add(Row(*row, fit_attrs(attrs), {"lane": domain.name}))
        self._report.count("model calls")
        return ""

    def _scope(self, session: int) -> tuple[ScopeRow, int, int]:
        """Give the scope of a session, its id, and that of its task."""
        uid = self._names[session]
        key, group = self._survey.tasks.get(session, (uid, None))
        task_id = stable_id("xtuner-sandbox", "task", key)
        session_id = stable_id("xtuner-sandbox", "session", uid)
        shown = None if group is None else clean_text(group, _TEXT_BYTES)
        trace_id = stable_bytes(16, "xtuner-sandbox", key)
        sample = self._survey.sample[session]
        key = clean_text(key, _TEXT_BYTES)
        return (trace_id, None, key, shown, session_id, sample), session_id, task_id

    def _plain(self, domain: Domain, record: dict[str, Any], *, is_odd: bool) -> dict[str, Any]:
        attrs = {key: item for key, item in record.items() if key not in _SAID and item is not None}
        if is_odd:
            attrs["source_not_finite"] = True
        if domain.account.clock == "unanchored":
            attrs["clock"] = "unanchored"
        return attrs

    def _add(
        self, domain: Domain, at: int, ended: Ended, record: dict[str, Any], *, is_odd: bool
    ) -> None:
        """Write a span or the verdict."""
        pairs = self._survey.pairs
        scope, session_id, _ = self._scope(pairs.owners[at])
        attrs = self._plain(domain, record, is_odd=is_odd)
        own_id = derived_id(session_id, pairs.number[at])
        above = pairs.above[at]
        parent = derived_id(session_id, above) if above >= 0 else session_id
        if pairs.fate[at] == INSTANT:
            attrs["status"] = record["final"]
            now = pairs.times[at]
            row = (EVENT_CODE, _STATUS[Status.OK], VERDICT, scope, own_id, session_id, now, now)
            domain.add(Row(*row, fit_attrs(attrs), {}))
            return
        status, end = self._ending(at, ended, attrs)
        fields = _failure(record.get("err"), attrs) if pairs.whats[at] == What.ERROR else {}
        what, name = SPAN_CODES["misc"], str(record["stage"])
        if pairs.is_phase[at]:
            what, phase = KIND_CODES[Kind.PHASE], pairs.stage(at).phase
            attrs |= {"source_name": name} if phase != name else {}
            name = phase
        name = clean_text(name, _TEXT_BYTES) or "span"
        row = (what, status, name, scope, own_id, parent, pairs.begin[at], end)
        domain.add(Row(*row, fit_attrs(attrs), fields))
        self._report.count("spans" if end else "spans open")

    def _ending(self, at: int, ended: Ended, attrs: dict[str, Any]) -> tuple[int, int]:
        """Say how a span ended, and when; 0 while it is open."""
        pairs = self._survey.pairs
        begin = pairs.begin[at]
        if pairs.fate[at] == OPEN:
            if not ended.end_ns:
                return _STATUS[Status.OPEN], 0
            attrs["end_guessed"] = True
            self._report.guess("end of a span")
            return _STATUS[Status.LOST], max(ended.end_ns, begin)
        end = pairs.end(at)
        if pairs.is_set_back[at] or end < begin:
            attrs["clock_suspect"], attrs["source_end_ns"] = True, pairs.times[at]
        if pairs.is_copied[at]:
            attrs["error.copied"] = True
        is_failed = pairs.whats[at] == What.ERROR
        return _STATUS[Status.ERROR if is_failed else Status.OK], max(end, begin)

    def _add_session(
        self, domain: Domain, session: int, ended: Ended, record: dict[str, Any]
    ) -> None:
        scope, session_id, task_id = self._scope(session)
        attrs: dict[str, Any] = {"session_id": self._names[session]}
        if domain.account.clock == "unanchored":
            attrs["clock"] = "unanchored"
        if ended.is_guessed:
            attrs["end_guessed"] = True
            self._report.guess("end of a session")
        verdict, fields = self._verdict(ended, record, attrs)
        if verdict.outcome is not None:
            fields["outcome"] = str(verdict.outcome)
        start, end = ended.start_ns, ended.end_ns
        row = (KIND_CODES[Kind.SESSION], verdict.status, "session", scope, session_id, task_id)
        domain.add(Row(*row, start, end, fit_attrs(attrs), fields))
        fate = verdict.outcome or ("completed" if end else Status.OPEN)
        self._report.count(f"sessions {fate}")
        self._tasks.note(task_id, domain, scope, start, end)

    def _verdict(
        self, ended: Ended, record: dict[str, Any], attrs: dict[str, Any]
    ) -> tuple[Verdict, dict[str, Any]]:
        """Say how a session ended, by its verdict or else by the run as a whole."""
        if "final" not in record:
            if not ended.end_ns:
                return Verdict(_STATUS[Status.OPEN], None), {}
            if not ended.is_failed:
                return Verdict(_STATUS[Status.OK], None), {}
            failed = Verdict(_STATUS[Status.ERROR], Outcome.FAILED)
            attrs["error.copied"] = True  # the span of the whole run has it too
            return failed, _failure(record.get("err"), attrs)
        verdict = read_status(record["final"], has_end=True)
        if not verdict.is_known:
            self._report.wonder(record["final"])
        said = {name: record.get(name) for name in ("task_id", "group_id", "failed_stage")}
        said |= {"source_status": record["final"], "source_reason": record.get("reason")}
        attrs |= {name: item for name, item in said.items() if item is not None}
        reason = read_reason(record.get("reason"))
        return verdict, {} if reason is None else {"reason": clean_text(reason, _TEXT_BYTES)}

    def finish(self) -> None:
        """Write the tasks."""
        self._tasks.write()


def _failure(text: object, attrs: dict[str, Any]) -> dict[str, Any]:
    """Note why something failed, and give the field that says so."""
    if text is None or text == "":
        return {}
    attrs["error.message"] = text if isinstance(text, str) else str(text)
    return {"reason": clean_text(attrs["error.message"], _TEXT_BYTES)}
