"""Sessions and tasks of a producer trace as rows."""

import re
from typing import Any, Final

from rollscope.importing.accounts import Report
from rollscope.importing.statuses import Verdict, read_status
from rollscope.importing.values import stable_bytes, stable_id
from rollscope.importing.writing import Domain
from rollscope.importing.xtuner_producer_survey import Fate, Survey
from rollscope.instrument.sanitise import clean_text
from rollscope.model.kinds import KIND_CODES, STATUS_CODES, Kind, Outcome, Status
from rollscope.model.scope import ScopeRow
from rollscope.otlp.rows import Row, fit_attrs

__all__ = ["TEXT_BYTES", "Sessions", "error_attrs"]

TEXT_BYTES: Final = 512
_STATUS: Final = STATUS_CODES
_MOST_RECENT: Final = 8192
"""Sessions whose ids are remembered: events of many come mixed."""
_ERROR_TYPE: Final = re.compile(r"([A-Za-z_][\w.]{0,127}): ")


class Sessions:
    """Writes them, by what a survey has found."""

    def __init__(self, survey: Survey, report: Report) -> None:
        self._survey, self._report = survey, report
        self.names: list[str] = []
        """By number."""
        self._tasks: dict[int, Domain] = {}
        """By the first session of each: where it is written."""
        self._recent: dict[int, tuple[int, int, bytes, str]] = {}

    def settle(self) -> None:
        """Take the names, which are known now."""
        self.names = list(self._survey.pairs.sessions)

    def own_id(self, session: int) -> int:
        """Give the id of a session."""
        return self._ids_of(session)[0]

    def scope(self, session: int, told: Fate, *, is_own: bool) -> tuple[ScopeRow, int]:
        """Give the scope of a session, or of its task, and the id of the one that it is of."""
        session_id, task_id, trace_id, key = self._ids_of(session)
        step = self._survey.batches[told.first].step
        if not is_own:
            return (trace_id, step, key, None, None, None), task_id
        return (trace_id, step, key, None, session_id, self._survey.sample[session]), session_id

    def _ids_of(self, session: int) -> tuple[int, int, bytes, str]:
        """Give the ids of a session, its task and its trace, and the key of its task."""
        found = self._recent.get(session)
        if found is None:
            if len(self._recent) >= _MOST_RECENT:
                self._recent.clear()
            first = self.names[self._survey.group[session]]
            found = self._recent[session] = (
                stable_id("xtuner-producer", "session", self.names[session]),
                stable_id("xtuner-producer", "task", first),
                stable_bytes(16, "xtuner-producer", first),
                clean_text(first, TEXT_BYTES),
            )
        return found

    def add(self, domain: Domain, session: int, told: Fate, event: dict[str, Any]) -> None:
        """Write a session, by the event that says most about it."""
        scope, session_id = self.scope(session, told, is_own=True)
        _, task_id = self.scope(session, told, is_own=False)
        verdict = self._verdict(told)
        batches = self._survey.batches
        given = {
            "session_id": self.names[session],
            "family": event.get("task_name"),
            "engine.session_id": event.get("session_uid"),
            "uid": event.get("uid"),
            "produce_batch_id": batches[told.first].name or None,
            "producer_future_step": batches[told.first].future_step,
            "source_status": self._survey.words[told.word] if told.word >= 0 else None,
        }
        attrs = {key: item for key, item in given.items() if item is not None}
        if verdict.status == _STATUS[Status.ERROR]:
            attrs |= error_attrs(event.get("error_msg"))
            # Where the sample's own span failed, that is to blame, or one inside of it.
            attrs |= {"error.copied": True} if told.is_failed else {}
        if self._survey.group[session] in self._survey.crowded:
            attrs["group_inferred"] = True
            self._report.guess("group of a sample")
        if told.is_guessed:
            attrs["end_guessed"] = True
            self._report.guess("end of a session")
        if domain.account.clock == "unanchored":
            attrs["clock"] = "unanchored"
        fields: dict[str, Any] = {}
        if told.worker >= 0:
            fields["lane"] = f"worker-r{told.worker}"
        versions = (batches[told.first].version, batches[told.last].version)
        named = zip(("version_start", "version_end"), versions, strict=True)
        fields |= {field: version for field, version in named if version is not None}
        if verdict.outcome is not None:
            fields["outcome"] = str(verdict.outcome)
        if "error.message" in attrs:
            fields["reason"] = clean_text(attrs["error.message"], TEXT_BYTES)
        kind, end = KIND_CODES[Kind.SESSION], told.end_ns
        row = (kind, verdict.status, "session", scope, session_id, task_id, told.start_ns, end)
        domain.add(Row(*row, fit_attrs(attrs), fields))
        self._tasks.setdefault(self._survey.group[session], domain)
        fate = verdict.outcome or ("completed" if end else Status.OPEN)
        self._report.count(f"sessions {fate}")

    def _verdict(self, told: Fate) -> Verdict:
        """Say how a session ended: in its own words, unless they say that it did not."""
        word = self._survey.words[told.word] if told.word >= 0 else None
        verdict = read_status(word, has_end=bool(told.end_ns))
        if not verdict.is_known:
            self._report.wonder(word)
        is_silent = not verdict.is_known or word is None
        if not told.end_ns:
            return Verdict(_STATUS[Status.OPEN], None)
        if told.is_failed and (is_silent or verdict.status == _STATUS[Status.OPEN]):
            return Verdict(_STATUS[Status.ERROR], Outcome.FAILED)
        if verdict.status == _STATUS[Status.OPEN]:
            return Verdict(_STATUS[Status.OK], None)
        return verdict

    def finish(self) -> None:
        """Write tasks, which last from their first session to the end of their last one."""
        bounds: dict[int, tuple[int, int, bool]] = {}
        for session in range(len(self.names)):
            told, first = self._survey.fate(session), self._survey.group[session]
            begin, last, is_open = bounds.get(first, (told.first_ns, 0, False))
            is_open = is_open or not told.last_ns
            bounds[first] = (min(begin, told.first_ns), max(last, told.last_ns), is_open)
        for first, (begin, last, is_open) in bounds.items():
            if first not in self._tasks:
                continue
            scope, task_id = self.scope(first, self._survey.fate(first), is_own=False)
            attrs = {"group_inferred": True} if first in self._survey.crowded else {}
            status, end = (_STATUS[Status.OPEN], 0) if is_open else (_STATUS[Status.OK], last)
            row = (KIND_CODES[Kind.TASK], status, "task", scope, task_id, 0, begin, end)
            self._tasks[first].add(Row(*row, fit_attrs(attrs), {}))
            self._report.count("tasks")


def error_attrs(message: object) -> dict[str, Any]:
    """Give what the text of an error says, as attributes."""
    if message is None or message == "":
        return {}
    text = message if isinstance(message, str) else str(message)
    found = _ERROR_TYPE.match(text)
    kind = {"error.type": found[1]} if found else {}
    return {**kind, "error.message": text}
