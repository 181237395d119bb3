"""A region about rollouts: a span below the session of each, and the events of the producer trace.

A function over a list is about several rollouts at once. Each of them gets a span of its own, in a
context where the rollout's session is current.
"""

from __future__ import annotations

from contextvars import Context, copy_context
from dataclasses import fields, replace
from time import perf_counter_ns
from time import time as wall_s
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rollscope.instrument.guard import pass_over
from rollscope.instrument.propagation import Attachment
from rollscope.integrations.xtuner.producerfile import EVENT_FIELDS, event_of
from rollscope.integrations.xtuner.regions import Region, text_of
from rollscope.integrations.xtuner.stages import plain_attributes
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

    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Span
    from rollscope.integrations.xtuner.sessions import Seat
    from rollscope.integrations.xtuner.traceruntime import TraceRuntime

__all__ = ["RolloutRegion"]

_MEMBER_FIELDS: Final = frozenset(each.name for each in fields(Member))
_ERROR_CHARS: Final = 500


class _Part(NamedTuple):
    """What a region is to one rollout."""

    member: Member
    span: Span
    seat: Seat | None
    context: Context | None
    """Where the span is current; None for the caller's own."""


class RolloutRegion(Region):
    """A region about the rollouts of a state, or of a list of them; there may be none in it."""

    __slots__ = (
        "_began_ns",
        "_begun",
        "_carried",
        "_carries",
        "_fields",
        "_moved",
        "_parts",
        "_result",
        "_target",
    )

    def __init__(
        self,
        runtime: TraceRuntime,
        name: str,
        attributes: dict[str, Any],
        target: object,
        *,
        carrier: Mapping[str, Any] | None = None,
        given: dict[str, Any] | None = None,
        carries: bool = False,
    ) -> None:
        """Prepare a region.

        Args:
            runtime: Where it is recorded.
            name: What it is called.
            attributes: Cleaned already.
            target: The state, or list of states, that it is about.
            carrier: Of the caller in another process.
            given: Fields of the producer trace that count instead of the state's.
            carries: Whether states carry the context on, for who gets them in another process.
        """
        super().__init__(runtime, name, attributes, carrier)
        self._began_ns = 0
        self._target, self._carries = target, carries
        self._fields: dict[str, Any] = given or {}
        self._result: object = None
        self._begun: list[Member] = []
        self._parts: list[_Part] = []
        self._moved: list[Attachment] = []
        self._carried: list[tuple[dict[str, Any], object]] = []

    def returned(self, value: object) -> None:
        """Tell what the traced function gave back; states in it are how the rollouts ended."""
        self._result = value

    def set(self, attributes: dict[str, Any]) -> None:
        """Add attributes."""
        super().set(attributes)
        for part in self._parts:
            if part.span is not self._span:
                part.span.set(**plain_attributes(attributes))

    def _begin(self) -> None:
        self._began_ns = perf_counter_ns()
        members = self._begun = self._members(self._target)
        recorder = self._runtime.tracer._recorder
        if recorder is None:
            self._tell("start", members)
            return
        stage = self._take_place(self._carrier or self._carrier_of(members))
        if not members:
            self._span = self._new_span(recorder, stage).__enter__()
            return
        key = _task_key(members[0])
        for member in members:
            span = self._new_span(recorder, stage)
            self._open(recorder, member, span, key, is_alone=len(members) == 1)
        self._tell("start", members)

    def _open(
        self, recorder: Recorder, member: Member, span: Span, key: str, *, is_alone: bool
    ) -> None:
        sessions = self._runtime.sessions
        around = recorder.current.get()
        elsewhere = around.scope.session_id if around.id else None
        seat = None
        if elsewhere is None or sessions.keeps(elsewhere):
            seat = sessions.enter(recorder, member, key)
        if is_alone:
            if seat is not None and elsewhere != seat.session.id:
                self._moved.append(Attachment(recorder.current, seat.below))
            self._span = span.__enter__()
            self._parts.append(_Part(member, span, seat, None))
            self._hand_over(member, seat)
            return
        context = copy_context()
        if seat is not None:
            context.run(recorder.current.set, seat.below)
            seat.around.append(span)
        context.run(span.__enter__)
        self._parts.append(_Part(member, span, seat, context))

    def _carrier_of(self, members: list[Member]) -> Mapping[str, Any] | None:
        """Find the context that a state brought from another process."""
        if not self._carries or len(members) != 1:
            return None
        extra = extra_fields_of(members[0].state)
        found = None if extra is None else extra.get(CARRIER_FIELD)
        if not isinstance(found, dict) or self._runtime.sessions.is_open(members[0].trace_id):
            return None
        return found

    def _hand_over(self, member: Member, seat: Seat | None) -> None:
        extra = extra_fields_of(member.state) if self._carries else None
        if extra is not None:
            self._carried.append((extra, extra.get(CARRIER_FIELD)))
            extra[CARRIER_FIELD] = self._runtime.carrier_of(self._span, seat, self.path)

    def _take_back(self) -> None:
        for extra, before in self._carried:
            if before is None:
                extra.pop(CARRIER_FIELD, None)
            else:
                extra[CARRIER_FIELD] = before
        if self._carried and self._result is not None:
            for member in members_of(self._result):
                extra_of_result = extra_fields_of(member.state) or {}
                if all(extra_of_result is not extra for extra, _ in self._carried):
                    extra_of_result.pop(CARRIER_FIELD, None)

    def _end(self, error: BaseException | None) -> None:
        now: dict[str, Member] = {}
        returned: list[Member] = []
        try:
            self._take_back()
            now = {member.trace_id: member for member in self._members(self._target)}
            returned = [] if self._result is None else self._members(self._result)
            now |= {member.trace_id: member for member in returned}
        except Exception as fault:  # states are the host's; the spans have to end all the same
            pass_over("looking at a state of XTuner", fault)
        if self._parts:
            self._end_parts(now, error)
        else:
            super()._end(error)
        begun = [member.trace_id for member in self._begun]
        ended = [now[key] for key in begun if key in now] if begun else returned
        self._tell("end" if error is None else "error", ended, error)

    def _end_parts(self, now: Mapping[str, Member], error: BaseException | None) -> None:
        self._leave_place()
        told = {} if error is None else self._note_error(error)
        for part in self._parts:
            self._end_part(part, now.get(part.member.trace_id), error, told)
        for moved in reversed(self._moved):
            moved.__exit__(None, None, None)
        if self._attached is not None:
            self._attached.__exit__(None, None, None)

    def _end_part(
        self,
        part: _Part,
        member: Member | None,
        error: BaseException | None,
        told: dict[str, Any],
    ) -> None:
        span, seat, context = part.span, part.seat, part.context
        if told:
            span.set(**told)
        kind = None if error is None else type(error)
        if context is None:
            span.__exit__(kind, error, None)
        else:
            context.run(span.__exit__, kind, error, None)
        if self._runtime.wants_spans and span.id:
            parent_id = span.parent_id
            if seat is not None and parent_id == seat.session.id:
                parent_id = 0  # the session is told of in the run only
            attributes = initial_attributes(part.member.state) | self.attributes
            self._write(span, parent_id, attributes, error)
        if seat is not None:
            if seat.around and span in seat.around:
                seat.around.remove(span)
            self._runtime.sessions.leave(seat, self.name, member, error)

    def _members(self, target: object) -> list[Member]:
        members = members_of(target)
        given = {name: item for name, item in self._fields.items() if name in _MEMBER_FIELDS}
        if not given or not members:
            return members
        members = [replace(member, **given) for member in members]
        if "produce_batch_id" in given:
            return members
        return [replace(member, produce_batch_id=_batch_of(member)) for member in members]

    def _tell(self, what: str, members: list[Member], error: BaseException | None = None) -> None:
        """Write the events of the producer trace, one for each rollout."""
        if not self._runtime.wants_events:
            return
        at_s = wall_s()
        elapsed_s = None if what == "start" else (perf_counter_ns() - self._began_ns) / 1e9
        given = {name: item for name, item in self._fields.items() if name in EVENT_FIELDS}
        for member in members:
            text = member.error_msg
            if error is not None:
                text = f"{type(error).__name__}: {text_of(error)}"[:_ERROR_CHARS]
            stage = f"{self.name}.{what}"
            self._runtime.record(event_of(member, stage, at_s, elapsed_s, text, given))


def _batch_of(member: Member) -> str | None:
    return build_produce_batch_id(member.train_step, member.model_step, member.producer_future_step)


def _task_key(first: Member) -> str:
    """Name what rollouts are samples of: their group, else the first of them."""
    return first.trace_id if first.group is None else f"{first.task_name or 'group'}/{first.group}"
