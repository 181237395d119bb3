"""Where a span belongs: its run, step, task and session.

A span says it itself, or its parent did, or the caller's `tracestate` does, or its trace. Spans are
exported when they end, so children come before their parents, often minutes before: what is known
of a trace is kept from request to request, and a session whose root has not come yet is *made*: it
gets an id of its own, opens with the first span that belongs to it, and ends with the root.
"""

import hashlib
import re
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from rollscope.instrument.sanitise import clean_text
from rollscope.instrument.tracestate import StateMember, parse_tracestate
from rollscope.model.scope import ScopeRow
from rollscope.otlp.aliases import Meaning, whole_number
from rollscope.otlp.forms import Sender, SpanForm
from rollscope.otlp.naming import run_name, sender_run
from rollscope.otlp.pairs import LOOP
from rollscope.otlp.remembering import Recent
from rollscope.otlp.spankinds import is_agent, is_engine, is_model_work, is_monitor

__all__ = ["Known", "MadeSession", "Place", "Placer", "Session"]

_MOST_SPANS: Final = 200_000
_MOST_SESSIONS: Final = 50_000
_TEXT_BYTES: Final = 512
_OURS: Final = "rollscope.session_id"
"""Holds the id of a session itself where one of us has sent it."""
_SPAN_ID: Final = re.compile("[0-9a-f]{16}")
_TOPMOST: Final = "xtuner.rollout_id"
"""Says the same all the way down, but where a rollout starts another one."""
_PLACING: Final = frozenset({"run", "task_key", "group", "session", "sample", "step"})

_parse = lru_cache(maxsize=4096)(parse_tracestate)


class Place(NamedTuple):
    """What a span belongs to."""

    run: str
    trace_id: bytes
    step: int | None = None
    task_key: str | None = None
    group: str | None = None
    session_id: int | None = None
    sample: int | None = None
    session: str | None = None
    """What the sender calls the session; empty for a trace that is one, None for one of ours."""

    @property
    def scope(self) -> ScopeRow:
        """The place as a frame keeps it."""
        return self[1:7]


class Session(msgspec.Struct):
    """A session of a foreign trace."""

    session_id: int
    is_made: bool
    """Whether its root came after the first span that belongs to it."""
    place: Place
    sender: str = ""
    """Whose log it was opened in, which has to be the one that it ends in."""
    start_ns: int = 0
    is_over: bool = False


class MadeSession(NamedTuple):
    """A made session to be written: as open, or ended with its root."""

    session: Session
    root: SpanForm | None
    meaning: Meaning | None
    """Of the root."""


class Known(msgspec.Struct, gc=False):
    """What is remembered of a span."""

    place: Place
    phase: str
    """The phase that it is, or is inside of; empty if none."""
    start_ns: int
    end_ns: int
    """0 while open."""
    is_kept: bool = True
    """Whether it stands in a log; if not, it may come again."""


class _Trace(msgspec.Struct):
    run: str
    has_sessions: bool = False
    """Whether spans in it say themselves which session they belong to."""


class Placer:
    """Places spans; remembers what later ones may need."""

    def __init__(self, only_run: str | None = None, most_sessions: int = _MOST_SESSIONS) -> None:
        """Remember nothing yet.

        Args:
            only_run: The run of what names none; else it gets one named after its sender.
            most_sessions: How many are remembered.
        """
        self.only_run = only_run
        self.spans: Recent[tuple[bytes, int], Known] = Recent(_MOST_SPANS)
        self._traces: Recent[bytes, _Trace] = Recent(_MOST_SPANS)
        self._sessions: Recent[tuple[str, bytes, str], Session] = Recent(most_sessions)
        self.made: list[MadeSession] = []
        """Made sessions that are to be written; whoever writes them takes them out."""

    def place(self, form: SpanForm, meaning: Meaning, parent: Known | None) -> Place:
        """Find where a span belongs.

        Args:
            form: The span.
            meaning: What its attributes say.
            parent: Its parent, if that is known.
        """
        above = parent.place if parent is not None else None
        state = _parse(form.tracestate) if "rollscope=" in form.tracestate else None
        is_inside = above is not None and above.session_id is not None
        if above is not None and is_inside and not state and _PLACING.isdisjoint(meaning.place):
            return above
        run = self._run(form, meaning, above, state)
        if meaning.is_told:
            return _same(_told_place(run, form.trace_id, meaning, state), above)
        own = _own_place(run, form.trace_id, meaning, above, state)
        if state is not None and state.session_id is not None:
            return _same(own._replace(session_id=state.session_id, session=None), above)
        placed = self._into_session(own, form, meaning, above)
        return _same(placed, above)

    def place_of(self, trace_id: bytes, span_id: int) -> Place | None:
        """Give the place of a span that came lately."""
        known = self.spans.get((trace_id, span_id))
        return None if known is None else known.place

    def _run(
        self, form: SpanForm, meaning: Meaning, above: Place | None, state: StateMember | None
    ) -> str:
        named = meaning.place.get("run") or (state.run if state else None)
        if named is None and above is not None:
            return above.run
        trace = self._traces.get(form.trace_id)
        run = self.run_of(form.sender) if named is None else run_name(named)
        if trace is None:
            self._traces.put(form.trace_id, _Trace(run))
        elif named is None and not form.sender.names_run:
            return trace.run
        return run

    def run_of(self, sender: Sender) -> str:
        """Give the run of what a sender sends without naming one."""
        run = sender_run(sender)
        is_free = self.only_run is not None and not sender.names_run
        return self.only_run if is_free and self.only_run else run

    def _into_session(
        self, own: Place, form: SpanForm, meaning: Meaning, above: Place | None
    ) -> Place:
        name = _text(meaning.place.get("session"))
        if name is not None and LOOP in meaning.place:
            return self._into_loop(name, own, form, meaning)
        if name is not None and meaning.session_alias == _OURS and _SPAN_ID.fullmatch(name):
            return own._replace(session_id=int(name, 16), session=None)
        inherited = above if above is not None and above.session_id is not None else None
        if inherited is not None and not _leaves(inherited, name, meaning):
            return own._replace(session_id=inherited.session_id, session=inherited.session)
        trace = self._traces.get(form.trace_id) or _Trace(own.run)
        is_root = form.parent_id == 0 or above is not None
        if name is not None:
            trace.has_sessions = True
            return self._join(name, own, form, meaning, is_root=is_root)
        whole = self._sessions.get((own.run, form.trace_id, ""))
        if is_agent(meaning):
            if whole is None or not whole.is_made or whole.is_over:
                trace.has_sessions = True
                return self._join(f"{form.span_id:016x}", own, form, meaning, is_root=True)
            return self._join("", own, form, meaning, is_root=True)
        if form.parent_id == 0:
            is_told = "kind" in meaning.place or is_monitor(form)
            claims = own.step is None and not trace.has_sessions and not is_told
            if (whole is None and is_engine(form)) or not claims:
                return own
            return self._join("", own, form, meaning, is_root=True)
        if whole is not None or is_model_work(meaning):
            return self._join("", own, form, meaning, is_root=False)
        return own

    def expect_sessions(self, form: SpanForm) -> None:
        """Learn beforehand that spans of a trace say themselves which session they belong to."""
        self._traces.put(form.trace_id, _Trace(self.run_of(form.sender), has_sessions=True))

    def _into_loop(self, name: str, own: Place, form: SpanForm, meaning: Meaning) -> Place:
        """Put a part of an agent's loop into its session: every part has a trace of its own."""
        key = f"{own.run}/{own.task_key}/{own.step}".encode("utf-8", "replace")
        trace_id = hashlib.blake2b(key, digest_size=16).digest()
        is_root = meaning.place[LOOP] == "session"
        return self._join(name, own._replace(trace_id=trace_id), form, meaning, is_root=is_root)

    def _join(
        self, name: str, own: Place, form: SpanForm, meaning: Meaning, *, is_root: bool
    ) -> Place:
        """Put a span into a session of that name, which may have to be opened."""
        key = (own.run, own.trace_id, name)
        session = self._sessions.get(key)
        if session is None:
            session_id = form.span_id if is_root else _made_id(own.trace_id, name)
            place = own._replace(session_id=session_id, session=name)
            session = Session(session_id, not is_root, place, start_ns=form.start_ns)
            self._sessions.put(key, session)
            if not is_root:
                self.made.append(MadeSession(session, None, None))
            return place
        place = _filled(own, session.place)._replace(
            session_id=session.session_id, session=session.place.session
        )
        if session.is_made:
            session.place = _filled(session.place, place)
            session.start_ns = min(session.start_ns, form.start_ns)
            if is_root and not session.is_over and not form.is_open:
                session.is_over = True
                session.place = place
                self.made.append(MadeSession(session, form, meaning))
        return place


def _leaves(above: Place, name: str | None, meaning: Meaning) -> bool:
    """Say whether a span starts another session than its parent's."""
    if name is None or above.session is None or name == above.session:
        return False
    return above.session == "" or meaning.session_alias != _TOPMOST


def _own_place(
    run: str, trace_id: bytes, meaning: Meaning, above: Place | None, state: StateMember | None
) -> Place:
    given = meaning.place
    group = _text(given.get("group"))
    said = Place(
        run,
        trace_id,
        whole_number(given.get("step")),
        _text(given.get("task_key")) or group,
        group,
        None,
        whole_number(given.get("sample")),
    )
    if state is not None:
        # The caller knows best which task it works on.
        caller = Place(run, trace_id, state.step, state.task_key, state.group, None, state.sample)
        said = _filled(caller, said)
    return said if above is None else _filled(said, above)


def _told_place(run: str, trace_id: bytes, meaning: Meaning, state: StateMember | None) -> Place:
    """Give the place of a span of ours: neither its parent nor its trace has to be asked."""
    own = _own_place(run, trace_id, meaning, None, state)
    name = _text(meaning.place.get("session"))
    if state is not None and state.session_id is not None:
        return own._replace(session_id=state.session_id)
    is_id = name is not None and _SPAN_ID.fullmatch(name)
    return own._replace(session_id=int(name, 16)) if name and is_id else own


def _filled(place: Place, other: Place) -> Place:
    """Take what a place lacks from another one."""
    return place._replace(
        step=place.step if place.step is not None else other.step,
        task_key=place.task_key if place.task_key is not None else other.task_key,
        group=place.group if place.group is not None else other.group,
        sample=place.sample if place.sample is not None else other.sample,
    )


def _same(place: Place, above: Place | None) -> Place:
    """Share the parent's place if it is the same, which saves memory for every span."""
    return above if above is not None and above == place else place


def _made_id(trace_id: bytes, name: str) -> int:
    digest = hashlib.blake2b(trace_id + name.encode("utf-8", "replace"), digest_size=8).digest()
    return (int.from_bytes(digest) >> 1) | 1


def _text(value: object) -> str | None:
    if value is None or value == "" or isinstance(value, (list, dict)):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # another spelling of it
    return clean_text(value if isinstance(value, str) else str(value), _TEXT_BYTES)
