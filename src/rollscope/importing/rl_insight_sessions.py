"""Sessions of agent loops as RL-Insight tells of them: by lanes of spans, and by gauges of titles.

Both the events and the exposition speak of the same sessions; one that both name is written once.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from rollscope.importing.accounts import Report
from rollscope.importing.statuses import Verdict, read_status
from rollscope.importing.tasks import TaskSpans
from rollscope.importing.values import seconds_to_ns, stable_bytes, stable_id
from rollscope.importing.writing import Domain, RunWriter
from rollscope.instrument.sanitise import clean_text
from rollscope.model.kinds import KIND_CODES, STATUS_CODES, Kind, Status
from rollscope.model.scope import ScopeRow
from rollscope.otlp.aliases import first_number, whole_number
from rollscope.otlp.rows import Row, fit_attrs

__all__ = ["TEXT_BYTES", "AgentSessions", "SessionKey", "run_of", "session_key"]

TEXT_BYTES: Final = 512
_STATUS: Final = STATUS_CODES
_LANE: Final = re.compile(r"experiment=(.*)/sample=(.*)/session=(.*)/traj=(.*)", re.DOTALL)
_SOURCES: Final = frozenset(("session", "task", "gateway"))
_GAUGE: Final = re.compile(
    r"(?:.*_)?agent_loop_(?:(run|sample|session|traj)_info|(first|last)_turn_unixtime)"
)
_TITLE: Final = re.compile(r"reward (\S{1,32}) .{0,8}?(\d{1,9}) turns")


class SessionKey(NamedTuple):
    """What a session is known by."""

    project: str
    experiment: str
    step: int | None
    sample: str
    session: str


def _text(value: object) -> str:
    return "" if value is None or isinstance(value, list | dict) else str(value)


def session_key(said: Mapping[str, Any]) -> SessionKey | None:
    """Find the session that attributes or labels name; None if they name none."""
    lane = said.get("state_lane_id")
    found = _LANE.fullmatch(lane) if isinstance(lane, str) else None
    source = said.get("monitor.trace_source")
    is_told = isinstance(source, str) and source in _SOURCES
    sample, session = _text(said.get("sample")), _text(said.get("session"))
    if found is not None:
        sample, session = sample or found[2], session or found[3]
    elif not is_told and lane is not None:
        return None
    if not sample or not session:
        return None
    experiment = _text(said.get("experiment_name")) or (found[1] if found else "")
    step = whole_number(said.get("global_steps"))
    return SessionKey(_text(said.get("project")), experiment, step, sample, session)


def run_of(said: Mapping[str, Any]) -> str:
    """Give what attributes or labels call the run; empty if they do not."""
    parts = [_text(said.get(name)) for name in ("project", "experiment_name")]
    return clean_text("-".join(filter(None, parts)), TEXT_BYTES) if parts[1] else ""


class _Known(msgspec.Struct, gc=False):
    """What is known of a session."""

    first_ns: int = 0
    last_ns: int = 0
    group: str | None = None
    teller: int = -1
    """The record that tells how it ended."""
    rank: int = -1
    """How much that record has to say."""
    turns: int = 0
    rewards: tuple[tuple[str, float | None], ...] = ()
    """By trajectory, as titles have them."""
    is_written: bool = False


class AgentSessions:
    """Gathers what is told of them, and writes each once."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._known: dict[SessionKey, _Known] = {}
        self._turns: dict[tuple[str, str, int | None], list[int]] = {}
        """By run and step: the first and the last turn."""
        self._tasks = TaskSpans(report)

    def note_span(
        self, key: SessionKey, place: int, start_ns: int, end_ns: int, said: Mapping[str, Any]
    ) -> None:
        """Learn of a span that belongs to a session, before anything is written."""
        known = self._known.setdefault(key, _Known())
        known.first_ns = min(known.first_ns or start_ns, start_ns)
        known.last_ns = max(known.last_ns, start_ns, end_ns)
        known.group = known.group or _text(said.get("uid")) or None
        source = said.get("monitor.trace_source")
        rank = {"task": 0, "session": 1}.get(source, -1) if isinstance(source, str) else -1
        if rank >= 0 and rank >= known.rank and end_ns:
            known.teller, known.rank = place, rank

    def note_gauge(self, name: str, labels: Mapping[str, Any], value: object) -> bool:
        """Learn from a gauge, before anything is written; False if it is of no session."""
        found = _GAUGE.fullmatch(name)
        if found is None:
            return False
        key = session_key(labels)
        if found[2]:
            at_ns = seconds_to_ns(value)
            step = whole_number(labels.get("global_steps"))
            run = (_text(labels.get("project")), _text(labels.get("experiment_name")), step)
            if at_ns is not None and 0 < at_ns < 2**62:
                bounds = self._turns.setdefault(run, [at_ns, at_ns])
                bounds[:] = min(bounds[0], at_ns), max(bounds[1], at_ns)
        elif key is not None:
            self._note_title(self._known.setdefault(key, _Known()), labels)
        return True

    def _note_title(self, known: _Known, labels: Mapping[str, Any]) -> None:
        title, traj = _TITLE.search(_text(labels.get("title"))), _text(labels.get("traj"))
        if title is None or any(name == traj for name, _ in known.rewards):
            return
        reward = first_number(title[1])
        known.rewards = (*known.rewards[:63], (traj, None if reward is None else float(reward)))
        known.turns += int(title[2])

    def is_gauge(self, name: str) -> bool:
        """Say whether a gauge tells of sessions, and is no series."""
        return _GAUGE.fullmatch(name) is not None

    def scope(self, key: SessionKey) -> tuple[ScopeRow, int]:
        """Give the scope of a session and its id."""
        known = self._known.get(key)
        session_id = stable_id("rl-insight", *key)
        trace_id = stable_bytes(16, "rl-insight", *key[:4])
        group = known.group if known is not None else None
        group = None if group is None else clean_text(group, TEXT_BYTES)
        task_key, sample = clean_text(key.sample, TEXT_BYTES), whole_number(key.session)
        return (trace_id, key.step, task_key, group, session_id, sample), session_id

    def is_teller(self, key: SessionKey, place: int) -> bool:
        """Say whether a record is the one that tells how a session ended."""
        known = self._known.get(key)
        return known is not None and known.teller == place

    def write(
        self,
        domain: Domain,
        key: SessionKey,
        start_ns: int,
        said: Mapping[str, Any],
        attrs: Mapping[str, Any],
    ) -> None:
        """Write a session, which holds all that is of it, by the record that tells how it ended.

        Args:
            domain: Where it is written.
            key: Which one.
            start_ns: When that record begins.
            said: What it says.
            attrs: The same as attributes of ours.
        """
        word = said.get("status")
        verdict = read_status(word, has_end=True)
        if verdict.status == _STATUS[Status.OPEN]:
            verdict = Verdict(_STATUS[Status.OK], None)
        if not verdict.is_known:
            self._report.wonder(word)
        own = {name: item for name, item in attrs.items() if name not in ("status", "error")}
        if word is not None:
            own["source_status"] = word
        if verdict.status == _STATUS[Status.ERROR]:
            own["error.copied"] = True  # the span that tells it has failed too
        fields: dict[str, Any] = {}
        if said.get("error"):
            own["error.message"] = str(said["error"])
            fields["reason"] = clean_text(own["error.message"], TEXT_BYTES)
        known = self._known[key]
        if known.first_ns < start_ns:
            own["source_start_ns"] = start_ns
        self._add(domain, key, verdict, own, fields, known.first_ns, known.last_ns)

    def finish(self, writer: RunWriter, fallback_ns: int) -> None:
        """Write those of which no record tells how they ended, and the tasks.

        Args:
            writer: Where they are written.
            fallback_ns: When they were, where nothing else says so.
        """
        for key, known in self._known.items():
            if known.is_written:
                continue
            domain = writer.domain("sessions", role="rl-insight")
            attrs: dict[str, Any] = {}
            if known.first_ns:
                verdict, start, end = Verdict(_STATUS[Status.OPEN], None), known.first_ns, 0
            else:
                # A title is shown when its session is over.
                verdict, attrs = Verdict(_STATUS[Status.OK], None), {"end_guessed": True}
                run = (key.project, key.experiment, key.step)
                start, end = self._turns.get(run, (fallback_ns, fallback_ns))
                self._report.guess("times of a session")
            self._add(domain, key, verdict, attrs, {}, start, end)
        self._tasks.write()

    def _add(
        self,
        domain: Domain,
        key: SessionKey,
        verdict: Verdict,
        attrs: dict[str, Any],
        fields: dict[str, Any],
        start: int,
        end: int,
    ) -> None:
        known = self._known[key]
        known.is_written = True
        scope, session_id = self.scope(key)
        task_id = stable_id("rl-insight", "task", *key[:4])
        named = (("project", key.project), ("experiment_name", key.experiment))
        attrs |= {name: item for name, item in named if item}
        if scope[5] is None:
            attrs["source_session"] = key.session
        if known.rewards:
            rewards = [reward for _, reward in known.rewards if reward is not None]
            attrs.setdefault("turns", known.turns)
            if rewards:
                attrs.setdefault("reward", sum(rewards) / len(rewards))
        if domain.account.clock == "unanchored":
            attrs["clock"] = "unanchored"
        if verdict.outcome is not None:
            fields["outcome"] = str(verdict.outcome)
        row = (KIND_CODES[Kind.SESSION], verdict.status, "session", scope, session_id, task_id)
        domain.add(Row(*row, start, end, fit_attrs(attrs), fields))
        fate = verdict.outcome or ("completed" if end else Status.OPEN)
        self._report.count(f"sessions {fate}")
        self._tasks.note(task_id, domain, scope, start, end)
