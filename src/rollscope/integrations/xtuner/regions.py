"""One traced region: a span of the run, below the session of each rollout that it is about."""

from __future__ import annotations

import json
import time
from contextvars import Context, ContextVar, Token, copy_context
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from urllib.parse import quote, unquote

from rollscope.instrument.guard import guarded
from rollscope.instrument.propagation import Attachment
from rollscope.integrations.xtuner.otlpfile import EndedSpan
from rollscope.integrations.xtuner.producerfile import TraceEvent
from rollscope.integrations.xtuner.stages import phase_of, plain_attributes
from rollscope.integrations.xtuner.states import (
    CARRIER_FIELD,
    Member,
    build_produce_batch_id,
    extra_fields_of,
    initial_attributes,
    members_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from rollscope.instrument.spans import Span
    from rollscope.integrations.xtuner.runtime import TraceRuntime
    from rollscope.integrations.xtuner.sessions import Seat

__all__ = [
    "EVENT_FIELDS",
    "PATH_KEY",
    "Region",
    "current_region",
    "event_of",
    "path_header",
    "path_in",
]

PATH_KEY: Final = "xtuner.span_name_path"
EVENT_FIELDS: Final = frozenset(each.name for each in fields(TraceEvent))
_MEMBER_FIELDS: Final = frozenset(each.name for each in fields(Member))
_ERROR_CHARS: Final = 500

_path: ContextVar[tuple[str, ...]] = ContextVar("rollscope-xtuner-path", default=())
_region: ContextVar[Region | None] = ContextVar("rollscope-xtuner-region", default=None)


class _Part(NamedTuple):
    """What a region is to one rollout."""

    member: Member | None
    span: Span
    seat: Seat | None
    context: Context | None
    """Where the span is current; None for the caller's own."""


class Region:
    """A timed region; `with` and `async with` both serve."""

    def __init__(
        self,
        runtime: TraceRuntime,
        name: str,
        attributes: dict[str, Any],
        *,
        target: object = None,
        carrier: Mapping[str, Any] | None = None,
        event_fields: dict[str, Any] | None = None,
        carries: bool = False,
    ) -> None:
        """Prepare a region.

        Args:
            runtime: Where it is recorded.
            name: What it is called.
            attributes: Cleaned already.
            target: The state, or list of states, that it is about.
            carrier: Of the caller in another process.
            event_fields: Fields of the producer trace that count instead of the state's.
            carries: Whether states carry the context on, for who gets them in another process.
        """
        self.attributes = attributes
        self._runtime, self._name, self._target = runtime, name, target
        self._carrier, self._fields, self._carries = carrier, event_fields or {}, carries
        self._result: object = None
        self._begun: list[Member] = []
        self._parts: list[_Part] = []
        self._attached: list[Attachment] = []
        self._tokens: list[tuple[ContextVar[Any], Token[Any]]] = []
        self._events: list[tuple[str, int, dict[str, Any]]] = []
        self._carried: list[tuple[dict[str, Any], object]] = []
        self.path: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        """Begin."""
        self._wall_ns, self._began_ns = time.time_ns(), time.perf_counter_ns()
        with guarded("beginning a region of XTuner"):
            self._begin()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End; an exception passes on."""
        with guarded("ending a region of XTuner"):
            self._end(error)

    async def __aenter__(self) -> Self:
        """Do as `__enter__`."""
        return self.__enter__()

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Do as `__exit__`."""
        self.__exit__(error_type, error, traceback)

    def returned(self, value: object) -> None:
        """Tell what the traced function gave back; states in it are how the rollouts ended."""
        self._result = value

    def set(self, attributes: dict[str, Any]) -> None:
        """Add attributes."""
        self.attributes.update(attributes)
        for part in self._parts:
            part.span.set(**plain_attributes(attributes))

    def add_event(self, name: str, attributes: dict[str, Any]) -> None:
        """Note an instant for the file of OTLP lines."""
        self._events.append((name, time.time_ns(), attributes))

    def _begin(self) -> None:
        members = self._begun = self._members(self._target)
        if self._runtime.recorder is None:
            self._tell("start", members)
            return
        carrier = self._carrier or self._carrier_of(members)
        outer = _path.get()
        if carrier is not None:
            self._attached.append(self._runtime.tracer.attach(carrier))
            outer = path_in(carrier) or outer
        self.path = (*outer, self._name)
        self._tokens = [(_path, _path.set(self.path)), (_region, _region.set(self))]
        self.attributes.setdefault(PATH_KEY, list(self.path))
        stage = phase_of(self._name, self.attributes)
        is_inner = stage is not None and any(phase_of(name, {}) == stage for name in outer)
        key = _task_key(members)
        for member in members or (None,):
            span = self._new_span(None if is_inner else stage)
            self._open(member, span, key, is_alone=len(members) < 2)
        self._tell("start", members)

    def _new_span(self, stage: str | None) -> Span:
        recorder = self._runtime.recorder
        assert recorder is not None  # noqa: S101  (asked before)
        attrs = plain_attributes(self.attributes)
        if stage is None:
            return recorder.new_span(self._name, "misc", attrs)
        if stage != self._name:
            attrs["span_name"] = self._name
        return recorder.new_phase(stage, attrs)

    def _open(self, member: Member | None, span: Span, key: str, *, is_alone: bool) -> None:
        recorder = self._runtime.recorder
        assert recorder is not None  # noqa: S101
        around = recorder.current.get()
        seat = None
        if member is not None and not self._belongs_elsewhere(around):
            seat = self._runtime.sessions.enter(recorder, member, key)
        if is_alone:
            if seat is not None and around.scope.session_id != seat.session.id:
                self._attached.append(Attachment(recorder.current, seat.below))
            span.__enter__()
            self._parts.append(_Part(member, span, seat, None))
            self._hand_over(member)
            return
        context = copy_context()
        if seat is not None:
            context.run(recorder.current.set, seat.below)
            seat.around.append(span)
        context.run(span.__enter__)
        self._parts.append(_Part(member, span, seat, context))

    def _belongs_elsewhere(self, around: Span) -> bool:
        """Say whether the span around is in a session that is not kept by us here."""
        session_id = around.scope.session_id if around.id else None
        return session_id is not None and not self._runtime.sessions.keeps(session_id)

    def _carrier_of(self, members: list[Member]) -> Mapping[str, Any] | None:
        """Find the context that a state brought from another process."""
        if not self._carries or len(members) != 1:
            return None
        extra = extra_fields_of(members[0].state)
        found = None if extra is None else extra.get(CARRIER_FIELD)
        if not isinstance(found, dict) or self._runtime.sessions.is_open(members[0].trace_id):
            return None
        return found

    def _hand_over(self, member: Member | None) -> None:
        extra = extra_fields_of(member.state) if self._carries and member is not None else None
        if extra is not None:
            self._carried.append((extra, extra.get(CARRIER_FIELD)))
            extra[CARRIER_FIELD] = self._runtime.inject({}, self.path)

    def _take_back(self) -> None:
        for extra, before in self._carried:
            if before is None:
                extra.pop(CARRIER_FIELD, None)
            else:
                extra[CARRIER_FIELD] = before
        if self._carried:
            for member in members_of(self._result):
                extra_of_result = extra_fields_of(member.state) or {}
                if all(extra_of_result is not extra for extra, _ in self._carried):
                    extra_of_result.pop(CARRIER_FIELD, None)

    def _end(self, error: BaseException | None) -> None:
        for variable, token in reversed(self._tokens):
            try:
                variable.reset(token)
            except ValueError:  # left in another context than it was entered in
                variable.set(token.old_value if token.old_value is not Token.MISSING else None)
        self._take_back()
        now = {member.trace_id: member for member in self._members(self._target)}
        returned = self._members(self._result)
        now |= {member.trace_id: member for member in returned}
        if error is not None:
            self._note_error(error)
        kind = None if error is None else type(error)
        for part in self._parts:
            leave = part.span.__exit__
            if part.context is None:
                leave(kind, error, None)
            else:
                part.context.run(leave, kind, error, None)
            self._write(part, error)
            if part.seat is not None and part.member is not None:
                if part.span in part.seat.around:
                    part.seat.around.remove(part.span)
                member = now.get(part.member.trace_id)
                self._runtime.sessions.leave(part.seat, self._name, member, error)
        for attached in reversed(self._attached):
            attached.__exit__(None, None, None)
        begun = [member.trace_id for member in self._begun]
        ended = [now[key] for key in begun if key in now] if begun else returned
        self._tell("end" if error is None else "error", ended, error)

    def _note_error(self, error: BaseException) -> None:
        text = _text_of(error)
        noted = {"error": True, "error.type": type(error).__name__, "error.message": text}
        self.attributes.update(noted)
        for part in self._parts:
            part.span.set(**{key: noted[key] for key in ("error.type", "error.message")})

    def _members(self, target: object) -> list[Member]:
        members = members_of(target)
        given = {name: item for name, item in self._fields.items() if name in _MEMBER_FIELDS}
        if not given or not members:
            return members
        members = [replace(member, **given) for member in members]
        if "produce_batch_id" in given:
            return members
        return [
            replace(
                member,
                produce_batch_id=build_produce_batch_id(
                    member.train_step, member.model_step, member.producer_future_step
                ),
            )
            for member in members
        ]

    def _tell(self, what: str, members: list[Member], error: BaseException | None = None) -> None:
        """Write the events of the producer trace, one for each rollout."""
        if not self._runtime.wants_events:
            return
        at_s = time.time()
        elapsed_s = None if what == "start" else (time.perf_counter_ns() - self._began_ns) / 1e9
        for member in members:
            text = member.error_msg
            if error is not None:
                text = f"{type(error).__name__}: {_text_of(error)}"[:_ERROR_CHARS]
            self._runtime.record(
                event_of(member, f"{self._name}.{what}", at_s, elapsed_s, text, self._fields)
            )

    def _write(self, part: _Part, error: BaseException | None) -> None:
        """Write the span for the file of OTLP lines."""
        if not self._runtime.wants_spans or part.span.ref is None:
            return
        attributes = dict(self.attributes)
        if part.member is not None:
            attributes = initial_attributes(part.member.state) | attributes
        parent_id = part.span.parent_id
        if part.seat is not None and parent_id == part.seat.session.id:
            parent_id = 0  # the session is told of in the run only
        length_ns = time.perf_counter_ns() - self._began_ns
        self._runtime.write_span(
            EndedSpan(
                part.span.ref.trace_id.hex(),
                f"{part.span.id:016x}",
                f"{parent_id:016x}" if parent_id else "",
                self._name,
                self._wall_ns,
                self._wall_ns + length_ns,
                attributes,
                None if error is None else f"{type(error).__name__}: {_text_of(error)}",
                self._events,
            )
        )


def current_region() -> Region | None:
    """Give the region that the caller is in."""
    return _region.get()


def event_of(
    member: Member,
    stage: str,
    at_s: float,
    elapsed_s: float | None,
    error_msg: str | None,
    given: Mapping[str, Any],
) -> TraceEvent:
    """Make an event of the producer trace."""
    event = TraceEvent(
        member.trace_id,
        stage,
        at_s,
        member.status,
        member.task_name,
        member.uid,
        member.session_uid,
        member.train_step,
        member.model_step,
        member.producer_future_step,
        member.produce_batch_id,
        None,
        elapsed_s,
        error_msg,
    )
    own = {name: item for name, item in given.items() if name in EVENT_FIELDS}
    return replace(event, **own) if own else event


def path_header(path: tuple[str, ...]) -> str:
    """Write the names of the spans around as a member of a baggage header."""
    return f"{PATH_KEY}={quote(json.dumps(list(path), separators=(',', ':')), safe='')}"


def path_in(carrier: Mapping[str, Any]) -> tuple[str, ...]:
    """Read what `path_header` wrote; nothing if it is not there or no list of names."""
    for member in str(carrier.get("baggage", "")).split(","):
        key, _, value = member.strip().partition("=")
        if key == PATH_KEY:
            try:
                names = json.loads(unquote(value))
            except ValueError:
                return ()
            return tuple(str(name) for name in names) if isinstance(names, list) else ()
    return ()


def _task_key(members: list[Member]) -> str:
    """Name what the rollouts are samples of: their group, else the first of them."""
    if not members:
        return ""
    first = members[0]
    return first.trace_id if first.group is None else f"{first.task_name or 'group'}/{first.group}"


def _text_of(error: BaseException) -> str:
    try:
        return str(error)[:_ERROR_CHARS]
    except Exception:  # its __str__ is the program's own code
        return "(its text cannot be had)"
