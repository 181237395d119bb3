"""Episodes of verifiers, as prime-rl and `eval` write them: `traces.jsonl` and its annotations."""

from typing import Any, Final

from rollscope.importing.accounts import Report
from rollscope.importing.formats import Place
from rollscope.importing.tasks import TaskSpans
from rollscope.importing.values import WALL_NS, stable_bytes, stable_id
from rollscope.importing.verifiers_fields import read_time
from rollscope.importing.verifiers_records import Members, Shape, read_record
from rollscope.importing.verifiers_rows import add_trace
from rollscope.importing.verifiers_sessions import (
    Episode,
    judge_episode,
    read_episode,
    session_attrs,
    session_fields,
)
from rollscope.importing.verifiers_survey import (
    Survey,
    digest_of,
    key_of,
    read_layout,
    read_origin,
)
from rollscope.importing.writing import ZERO_NS, Domain, RunWriter
from rollscope.model.kinds import KIND_CODES, STATUS_CODES, Kind, Status
from rollscope.model.scope import ScopeRow
from rollscope.otlp.rows import Row, fit_attrs

__all__ = ["VerifiersEpisodes"]

_SESSION: Final = KIND_CODES[Kind.SESSION]
_TASK: Final = KIND_CODES[Kind.TASK]
_OK: Final = STATUS_CODES[Status.OK]
_OPEN: Final = STATUS_CODES[Status.OPEN]


class VerifiersEpisodes:
    """Makes a session of each episode, with the span trees of its agents."""

    format = "verifiers"

    def __init__(self, writer: RunWriter, report: Report) -> None:
        self._writer, self._report = writer, report
        self._survey = Survey()
        self._tasks = TaskSpans(report)
        self._updates: set[int] = set()
        self._latest_ns: dict[int, int] = {}
        """By file, the latest time so far: what stands behind it was written later."""

    def claims(self, raw: bytes) -> bool:
        """Look for the names that the three kinds of records have."""
        if b'"traces"' in raw or b'"timing"' in raw:
            return b'"task"' in raw
        return b'"trace_id"' in raw and b'"branches"' in raw

    def survey(self, place: Place, raw: bytes) -> None:
        """Note ids, copies and updates."""
        read = read_record(raw)
        if read is None or read[0].shape is Shape.NONE:
            return
        for trace in self._survey.look(place.number, place.file.path, read[0], raw):
            start_ns = read_time(trace.inside("timing").get("start"))
            if start_ns >= WALL_NS:
                self._writer.note_wall(start_ns)

    def settle(self) -> None:
        """Number the samples."""
        self._survey.settle()

    def take(self, place: Place, raw: bytes) -> str:
        """Write an episode."""
        read = read_record(raw)
        if read is None:
            return "bad: no JSON object"
        record, is_odd = read
        if record.shape is Shape.NONE:
            return "of no format that is read"
        digest = digest_of(raw)
        if record.shape is Shape.UPDATE:
            return self._take_update(record, digest)
        chosen = self._survey.find(record, digest)
        if chosen is None:  # it stands in an episode too
            return "duplicate"
        layout = read_layout(place.file.path)
        if chosen.place != place.number:
            is_copy = digest == chosen.digest or layout.is_effective != chosen.is_effective
            return "duplicate" if is_copy else "an older version of an episode"
        origin = read_origin(record, layout)._replace(
            step=chosen.step, is_step_told=chosen.is_step_told
        )
        self._write(
            place,
            read_episode(record, origin, chosen, self._survey),
            key_of(record, digest),
            is_odd,
        )
        return ""

    def _take_update(self, record: Members, digest: int) -> str:
        if not self._survey.knows_trace(record):
            return "an update of a trace that is not here"
        if digest in self._updates:
            return "duplicate"
        self._updates.add(digest)
        self._report.count("updates")
        return ""

    def _write(self, place: Place, episode: Episode, session_id: int, is_odd: bool) -> None:
        attrs = session_attrs(episode, self._report)
        if is_odd:
            attrs["source_not_finite"] = True
        start_ns, end_ns = self._times(place, episode, attrs)
        is_open = episode.is_running
        verdict = judge_episode(episode)
        domain = self._domain(start_ns)
        if domain.account.clock == "unanchored":
            attrs["clock"] = "unanchored"
        scope, task_id = self._scope(episode, session_id)
        shown_ns = 0 if is_open else end_ns
        fields = session_fields(episode, verdict)
        row = (_SESSION, verdict.status, "session", scope, session_id, task_id, start_ns, shown_ns)
        domain.add(Row(*row, fit_attrs(attrs), fields))
        number = 0
        for trace, later in zip(episode.traces, episode.later, strict=True):
            if later.advantage is not None:
                trace.attrs["advantage"] = later.advantage
            number = add_trace(domain, scope, session_id, trace, shown_ns, number)
        self._add_consumed(domain, scope, session_id, end_ns, episode)
        self._note_session(session_id, domain, scope, episode)
        self._note_task(task_id, domain, scope, start_ns, shown_ns)
        self._report.count(f"sessions {verdict.outcome or ('open' if is_open else 'completed')}")

    def _times(self, place: Place, episode: Episode, attrs: dict[str, Any]) -> tuple[int, int]:
        starts = [trace.start_ns for trace in episode.traces if trace.start_ns]
        latest = self._latest_ns.get(place.file_number, 0)
        if not starts:
            # It was written when it was over, and so after what stands before it.
            guess = latest or self._writer.zero_ns or place.file.modified_ns or ZERO_NS
            attrs["time_guessed"] = True
            self._report.guess("time of a session")
            return guess, guess
        start_ns = min(starts)
        end_ns = max((trace.end_ns for trace in episode.traces), default=start_ns)
        self._latest_ns[place.file_number] = max(latest, end_ns, start_ns)
        return start_ns, max(start_ns, end_ns)

    def _domain(self, start_ns: int) -> Domain:
        is_wall = start_ns >= WALL_NS
        return self._writer.domain(
            "verifiers" if is_wall else "verifiers.monotonic", is_wall=is_wall
        )

    def _scope(self, episode: Episode, session_id: int) -> tuple[ScopeRow, int]:
        origin, sample = episode.origin, episode.chosen.sample
        trace_id, task_id = stable_bytes(16, *origin.task), stable_id(*origin.task)
        place = (origin.step, origin.key, origin.group, session_id, sample)
        return (trace_id, *place), task_id

    def _add_consumed(
        self, domain: Domain, scope: ScopeRow, session_id: int, end_ns: int, episode: Episode
    ) -> None:
        told = [one.consumed_step for one in episode.later if one.consumed_step is not None]
        step = told[-1] if told else episode.chosen.consumed_step
        if step is not None:
            # Nobody says when; not before the episode was over.
            domain.fact(scope[0], session_id, end_ns, {"consumed_step": step})

    def _note_session(
        self, session_id: int, domain: Domain, scope: ScopeRow, episode: Episode
    ) -> None:
        """Learn that a session was written; for those who add to it later."""

    def _note_task(
        self, task_id: int, domain: Domain, scope: ScopeRow, start_ns: int, end_ns: int
    ) -> bool:
        """Learn that a session of a task was written, and say whether it is the first one."""
        return self._tasks.note(task_id, domain, scope, start_ns, end_ns)

    def finish(self) -> None:
        """Write the tasks."""
        self._tasks.write()
