"""What a runner records of itself: sessions with their waits, and what held work back.

Nothing is asked of the user; where nothing is recorded, nothing is done. A session is recorded once
it is handed over, when all of its waits are known, or most of a second after its end if nobody
has fetched it by then; what is learned later is added to it.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument import default
from rollscope.instrument.buffers import Host
from rollscope.model.loops import BLOCKED_EVENT, LAG_METRIC
from rollscope.runner.lane import Lane
from rollscope.runner.recording import (
    announce_sessions,
    learn_late,
    record_attempt,
    record_sessions,
)
from rollscope.runner.sessionfacts import StartFacts, facts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rollscope.instrument.binding import SpanTypes
    from rollscope.instrument.hosted import Begin, HostedSession
    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.tracer import Tracer
    from rollscope.runner.gates import Gate
    from rollscope.runner.outcome import Outcome
    from rollscope.runner.task import Task
    from rollscope.runner.timers import Timer, Timers

__all__ = ["Trace"]

_UNFETCHED_S: Final = 0.75


class Trace:
    """Records for one runner, with the tracer given or the default one as it is at the time."""

    def __init__(self, name: str, tracer: Tracer | None, gates: Sequence[Gate] = ()) -> None:
        self._name = name
        self._tracer = tracer
        self._recorder: Recorder | None = None
        self._types: SpanTypes | None = None
        self._lane = Lane(name, gates)
        self.is_on = False
        """Whether tasks are recorded."""
        self._ending: dict[HostedSession, Outcome] = {}
        """Sessions that have ended and are not recorded yet; the recorder's own."""
        self._hosted: list[Any] = []
        """What the writer is to record; the recorder's own."""
        self._late: list[Any] = []
        """What it recorded before it was fetched; the recorder's own."""
        self._begin: Begin | None = None
        self._start_facts = StartFacts(name)
        self._timers: Timers | None = None
        self._timer: Timer | None = None

    def run_on(self, thread_id: int) -> None:
        """Note the thread of the loop that tasks run on."""
        self._start_facts.thread_id = thread_id

    def use_timers(self, timers: Timers) -> None:
        """Use these for what is recorded a little later."""
        self._timers = timers
        self._lane.timers = timers

    def refresh(self) -> None:
        """See whether something is recorded now, and with what."""
        recorder = (self._tracer or default._tracer)._recorder
        if recorder is not self._recorder:
            self._recorder = recorder
            self._types = None if recorder is None else recorder.types
            self._begin = None if recorder is None else recorder.types.hosted.begin
            self._ending = {} if recorder is None else recorder.buffers.ending
            self._hosted = [] if recorder is None else recorder.buffers.hosted
            self._late = [] if recorder is None else recorder.buffers.late
            if recorder is not None:
                types = recorder.types
                recorder.buffers.host = Host(
                    partial(record_sessions, types), partial(announce_sessions, types), learn_late
                )
            self.is_on = recorder is not None
            self._lane.record_with(self._types, self._tracer or default._tracer)

    def started(self, task: Task) -> None:
        """Begin the session of a task, in the context that its code runs in."""
        begin = self._begin
        if begin is not None:
            task.span = begin(
                task.fn,
                task.id,
                task.options,
                task.version_start,
                task.attempt_ns or time.perf_counter_ns(),
                self._start_facts,
                task.span,
            )

    def ended_unstarted(self, task: Task) -> None:
        """Begin a session for an attempt that ends without having started: one without length.

        It belongs to what its task was submitted in, or to the attempts before it.
        """
        self.refresh()  # nothing may have started yet
        span: HostedSession | None = task.span
        if span is None or span.is_over:
            task.origin.copy().run(Trace.started, self, task)
            span = task.span
        if span is not None:
            span.start_ns = task.finished_ns or span.start_ns

    def attempt_ended(self, task: Task) -> None:
        """Record an attempt that is followed by another."""
        span: HostedSession | None = task.span
        if span is None or span.is_over or self._types is None:
            return
        if self._recorder is not None:
            span.is_over = True
            self._recorder.buffers.open.pop(span.id, None)
        record_attempt(self._types, task)

    def ended(self, outcomes: Sequence[Outcome]) -> None:
        """Note outcomes that were made, to be recorded soon even if nobody fetches them."""
        if self._types is None or self._recorder is None:
            return
        if self._timer is None and outcomes and self._timers is not None:
            self._timer = self._timers.after(_UNFETCHED_S, self._record_unfetched)
        ending, no_longer_open = self._ending, self._recorder.buffers.open.pop
        for outcome in outcomes:
            span = outcome.span
            if span is not None:
                ending[span] = outcome
                span.is_over = True
                if span.has_id:  # and so may be among the open ones
                    no_longer_open(span.id, None)

    def ended_without_loop(self, outcomes: Sequence[Outcome]) -> None:
        """Record outcomes at once that were made when the loop turned no more."""
        if self._recorder is None:
            return
        for outcome in outcomes:
            span = outcome.span
            if span is not None:
                span.is_over = True
                self._recorder.buffers.open.pop(span.id, None)
                self._hosted.extend(facts_of(outcome))

    def _record_unfetched(self) -> None:
        """Record what has ended a while ago; what has ended just now may still be fetched."""
        self._timer = None
        if self._timers is None:
            return
        latest_ns = self._timers.now_ns() - int(_UNFETCHED_S / 2 * 1e9)
        waiting: list[Outcome] = []
        for outcome in list(self._ending.values()):
            if outcome.finished_ns > latest_ns:
                self._timer = self._timers.after(_UNFETCHED_S / 2, self._record_unfetched)
                break
            waiting.append(outcome)
        self._record_ended(waiting)

    def _record_ended(self, outcomes: Iterable[Outcome]) -> None:
        """Record sessions, but for those whose outcomes another thread has fetched meanwhile."""
        take = self._ending.pop
        ending = [outcome for outcome in outcomes if take(outcome.span, None) is not None]
        self._hosted.extend(_all_facts_of(ending))

    def delivered(self, outcomes: Sequence[Outcome]) -> None:
        """Record sessions whose outcomes are handed over."""
        if self._types is None:
            return
        take = self._ending.pop
        if len(outcomes) == 1:  # the way of most, where each is waited for
            (outcome,) = outcomes
            if take(outcome.span, None) is not None:
                self._hosted.extend(facts_of(outcome))
            elif outcome.span is not None:
                self._late.extend(facts_of(outcome))
            return
        ending: list[Outcome] = []
        late: list[Outcome] = []
        for outcome in outcomes:
            if take(outcome.span, None) is not None:
                ending.append(outcome)
            elif outcome.span is not None:
                late.append(outcome)
        self._hosted.extend(_all_facts_of(ending))
        self._late.extend(_all_facts_of(late))

    def consumed(self, outcomes: Sequence[Outcome], step: int | None) -> None:
        """Note that the trainer has used outcomes."""
        tracer = self._tracer or default._tracer
        for outcome in outcomes:
            if outcome.span is not None:
                tracer.annotate(outcome.span, consumed_step=step)

    def innermost(self, task: Task) -> int:
        """Give the id of the span that a task is in; it changes as phases come and go."""
        recorder, context = self._recorder, task.context
        if recorder is None or context is None:
            return 0
        span = context.get(recorder.current)
        return 0 if span is None else span.id

    def phase_of(self, task: Task) -> str | None:
        """Name the innermost span that a task is in, below its session."""
        recorder, context = self._recorder, task.context
        if recorder is None or context is None:
            return None
        span = context.get(recorder.current)
        return None if span is None or span is task.span else span.name

    def lagged(self, lags_s: Sequence[float]) -> None:
        """Record how long the loop took to answer, each time it was asked."""
        if self._recorder is not None:
            observe = (self._tracer or default._tracer).observe
            for lag_s in lags_s:
                observe(LAG_METRIC, lag_s)

    def blocked(self, task_id: int | None, frames: Sequence[str], blocked_s: float) -> None:
        """Record that user code has blocked the loop."""
        if self._recorder is not None:
            (self._tracer or default._tracer).event(
                BLOCKED_EVENT,
                runner=self._name,
                task=task_id,
                culprit=frames[-1] if frames else "",
                frames=list(frames),
                blocked_s=blocked_s,
            )

    def slots_changed(self, running: int) -> None:
        """Record how many tasks run."""
        self._lane.running = running
        if self._lane.is_quiet:
            self._lane.look_soon()

    def held_by(self, holder: str | None, detail: str = "") -> None:
        """Record what holds the next task back, as an interval; for a pause, whose it is."""
        self.refresh()
        self._lane.held_by(holder, detail)

    def close(self) -> None:
        """End what is open."""
        self._record_ended(list(self._ending.values()))
        self._lane.close()


def _all_facts_of(outcomes: Iterable[Outcome]) -> list[Any]:
    """Give the entries of many, to be added by one call, since other threads add theirs."""
    return list(chain.from_iterable(map(facts_of, outcomes)))
