"""Which rollout has which session: opened by its first span, closed after its last.

A rollout is known by its id only; its spans come from functions that know nothing of each other,
and a function over a list is about several rollouts at once. So sessions are kept here by key, each
entered in a context of its own, where it is current for nobody; a span finds the session of its
rollout and goes below it. Rollouts of one group share a task.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextvars import Context, copy_context
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument import default
from rollscope.instrument.pastends import end_at
from rollscope.instrument.spans import NOOP
from rollscope.integrations.xtuner.stages import is_final
from rollscope.integrations.xtuner.verdicts import tell_verdict

if TYPE_CHECKING:
    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Session, Span
    from rollscope.integrations.xtuner.states import Member

__all__ = ["Seat", "Sessions"]

_MOST_ENDED: Final = 4096
"""Sessions and groups that are remembered after their end, for what comes late."""
_MOST_RESTING: Final = 10_000
_ONLY_CHOSEN: Final = frozenset({"xtuner.producer.sample_group"})
"""Spans that come before the work of a rollout and do not end its session."""
_UNDER_WAY: Final = frozenset(
    ("init", "pending", "queued", "scheduled", "started", "running", "open")
)
"""Statuses of a rollout that waits for what comes next while no span of it is open."""


class _Task:
    """The task span of a group, open while a session of it is."""

    def __init__(self, span: Span, context: Context) -> None:
        self.span = span
        self.context = context
        self.users = 0


class Seat:
    """The session of one rollout."""

    def __init__(self, key: str, session: Session, context: Context, task: _Task | None) -> None:
        self.key = key
        self.session = session
        self.context = context
        self.task = task
        self.step: int | None = None
        self.attempt = 0
        self.users = 0
        self.is_over = False
        self.carrier: dict[str, str] | None = None
        """Headers that a span of it is carried by, once one was asked for."""
        self.rested_ns: int | None = None
        """When its last span was left, while more of it is to come."""
        self.around: list[Span] = []
        """Spans over several rollouts, this one among them, that are open; the innermost last."""

    @property
    def below(self) -> Span:
        """What a span of the rollout goes below if none of its own is open around it."""
        return self.around[-1] if self.around else self.session


class Sessions:
    """The sessions of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids: set[int] = set()
        self._open: dict[str, Seat] = {}
        self._resting: OrderedDict[str, Seat] = OrderedDict()
        self._ended: OrderedDict[str, Seat] = OrderedDict()
        self._tasks: dict[str, _Task] = {}
        self._samples: OrderedDict[str, int] = OrderedDict()

    def enter(self, recorder: Recorder, member: Member, task_key: str) -> Seat:
        """Take part in the session of a rollout; open it if there is none.

        Args:
            recorder: Where it is recorded.
            member: The rollout.
            task_key: What its group is called.
        """
        key = member.trace_id
        with self._lock:
            self._resting.pop(key, None)
            seat = self._open.get(key)
            if seat is None:
                seat = self._late(member)
            if seat is None:
                seat = self._begin(recorder, member, task_key)
                self._open[key] = seat
            seat.users += 1
            seat.rested_ns = None
            return seat

    def leave(
        self, seat: Seat, name: str, member: Member | None, error: BaseException | None
    ) -> None:
        """Take part no longer; the last to leave ends the session.

        Args:
            seat: The session.
            name: Of the span that is left.
            member: The rollout as it is now.
            error: What the span is left by.
        """
        with self._lock:
            seat.users -= 1
            tell_verdict(seat.session, member)
            if seat.users or seat.is_over:
                return
            if error is None and _goes_on(name, member):
                seat.rested_ns = perf_counter_ns()
                self._resting[seat.key] = seat
                if len(self._resting) > _MOST_RESTING:
                    self._end(self._resting.popitem(last=False)[1], None)
                return
            self._end(seat, error)

    def add_event(
        self, recorder: Recorder, member: Member, name: str, attrs: dict[str, Any]
    ) -> None:
        """Record an instant of a rollout, below its session if that is open here."""
        seat = self._open.get(member.trace_id)
        around = recorder.current.get()
        if seat is None or around.scope.session_id == seat.session.id:
            recorder.types.add_event(name, {"session_id": member.uid} | attrs)
            return
        context = copy_context()
        context.run(recorder.current.set, seat.below)
        context.run(recorder.types.add_event, name, attrs)

    def keeps(self, session_id: int) -> bool:
        """Say whether a session that is open, by its id, was opened here."""
        return session_id in self._ids

    def is_open(self, key: str) -> bool:
        """Say whether a rollout has a session here that is open."""
        return key in self._open

    def restart_after_fork(self) -> None:
        """Go on in a forked child, where the thread that held the lock may not be."""
        self._lock = threading.Lock()

    def close(self) -> None:
        """End every session that is open; their verdicts stay unknown."""
        with self._lock:
            self._resting.clear()
            for seat in list(self._open.values()):
                self._end(seat, None)

    def _late(self, member: Member) -> Seat | None:
        """Find the session that has ended already, if this is a span after its end."""
        seat = self._ended.get(member.trace_id)
        if seat is None or not is_final(member.status) or seat.step != member.step:
            return None
        return seat

    def _begin(self, recorder: Recorder, member: Member, task_key: str) -> Seat:
        before = self._ended.pop(member.trace_id, None)
        attempt = 0 if before is None or before.step != member.step else before.attempt + 1
        attrs = {
            "session_id": member.uid,
            "engine.session_id": member.session_uid,
            "family": member.task_name,
            "batch": member.produce_batch_id,
            "attempt": attempt or None,
        }
        group = None if member.group is None else str(member.group)
        task = None
        around = recorder.current.get()
        is_of_program = around.id and around.scope.session_id not in self._ids
        if is_of_program and around.scope.task_key is not None:
            context = copy_context()  # the program has opened a task of its own
        else:
            task = self._task(recorder, task_key, group, member)
            context = task.context.copy()
        session = recorder.types.new_session(
            self._sample(task_key),
            member.model_step,
            group,
            member.step,
            {name: item for name, item in attrs.items() if item is not None},
        )
        context.run(session.__enter__)
        self._ids.add(session.id)
        seat = Seat(member.trace_id, session, context, task)
        seat.step, seat.attempt = member.step, attempt
        return seat

    def _task(self, recorder: Recorder, key: str, group: str | None, member: Member) -> _Task:
        task = self._tasks.get(key)
        if task is None:
            attrs: dict[str, Any] = {}
            if member.task_name is not None:
                attrs["family"] = member.task_name
            span = recorder.types.new_task(key, group, member.step, attrs)
            context = copy_context()
            if recorder.current.get().scope.session_id is not None:
                context.run(recorder.current.set, NOOP)  # one rollout asks for another
            context.run(span.__enter__)
            task = self._tasks[key] = _Task(span, context)
        task.users += 1
        return task

    def _sample(self, task_key: str) -> int:
        number = self._samples.pop(task_key, 0)
        self._samples[task_key] = number + 1
        if len(self._samples) > _MOST_ENDED:
            self._samples.popitem(last=False)
        return number

    def _end_in_the_past(self, seat: Seat, end_ns: int) -> bool:
        recorder = default._tracer._recorder
        return recorder is not None and end_at(recorder, seat.session, end_ns)

    def _end(self, seat: Seat, error: BaseException | None) -> None:
        seat.is_over = True
        self._open.pop(seat.key, None)
        self._ids.discard(seat.session.id)
        if seat.rested_ns is None or not self._end_in_the_past(seat, seat.rested_ns):
            seat.context.run(seat.session.__exit__, _type(error), error, None)
        seat.context = Context()  # what the program has in it may be large
        self._ended[seat.key] = seat
        if len(self._ended) > _MOST_ENDED:
            self._ended.popitem(last=False)
        task, seat.task = seat.task, None
        if task is None:
            return
        task.users -= 1
        if not task.users:
            key = task.span.own_scope[1]
            if key is not None and self._tasks.get(key) is task:
                del self._tasks[key]
            task.context.run(task.span.__exit__, None, None, None)


def _goes_on(name: str, member: Member | None) -> bool:
    """Say whether more of a rollout is to come when its last span is left."""
    status = None if member is None else member.status
    if status is not None and status.lower() in _UNDER_WAY:
        return True
    return name in _ONLY_CHOSEN and not is_final(status)


def _type(error: BaseException | None) -> type[BaseException] | None:
    return None if error is None else type(error)
