"""A simulated training run: who does what when, in true time, with no clock and no file.

One trainer and several rollout processes. Each step dispatches its tasks before the previous
update is over, so that sessions straddle policy versions; generation and tools have heavy tails;
some sessions fail, time out or hang; one process may die.
"""

import heapq
from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Any, NamedTuple

from rollscope.model.kinds import EVENT_CODE, KIND_CODES, SPAN_CODES, STATUS_CODES, Kind, Status
from rollscope.model.scope import Scope
from rollscope.testing.shape import RunShape

__all__ = ["Process", "SimFact", "SimSpan", "Simulation"]

_OK, _ERROR = STATUS_CODES[Status.OK], STATUS_CODES[Status.ERROR]
_MS = 1_000_000
_TIMEOUT_NS = 60_000 * _MS
_MODELS = ("policy", "policy-draft")


class SimSpan(NamedTuple):
    """A span, or an event, in true time; one that never ends has no end."""

    what: int
    name: str
    scope: Scope
    span_id: int
    parent_id: int
    start: int
    end: int | None
    status: int
    attrs: dict[str, Any]
    fields: dict[str, Any]


class SimFact(NamedTuple):
    """A late fact, in true time."""

    trace_id: bytes
    span_id: int
    time: int
    facts: dict[str, Any]


class Process:
    """One simulated process and what it recorded."""

    def __init__(self, index: int, role: str, rank: int, host: str) -> None:
        self.index = index
        self.role = role
        self.rank = rank
        self.host = host
        self.spans: list[SimSpan] = []
        self.facts: list[SimFact] = []
        self.dies_at: int | None = None
        self._ids = count((index << 40) + 1)

    def next_id(self) -> int:
        """Give a fresh span id."""
        return next(self._ids)

    def add(
        self,
        what: int,
        name: str,
        scope: Scope,
        parent_id: int,
        start: int,
        end: int | None,
        *,
        status: int = _OK,
        span_id: int | None = None,
        attrs: dict[str, Any] | None = None,
        fields: dict[str, Any] | None = None,
    ) -> int:
        """Record a span and give its id."""
        own_id = self.next_id() if span_id is None else span_id
        self.spans.append(
            SimSpan(
                what, name, scope, own_id, parent_id, start, end, status, attrs or {}, fields or {}
            )
        )
        return own_id


class Simulation:
    """Runs the steps one by one, so that a run of any size fits into memory."""

    def __init__(self, shape: RunShape) -> None:
        self.shape = shape
        self.random = Random(shape.seed)  # noqa: S311  (wants repetition, not secrecy)
        self.trainer = Process(1, "trainer", 0, "host-00")
        self.workers = [
            Process(n + 2, "rollout", n, f"host-{n % 3 + 1:02d}")
            for n in range(shape.rollout_processes)
        ]
        self.now = 0
        self._published: list[int] = [0]
        self._free_at: list[list[int]] = [[0] * shape.slots for _ in self.workers]
        """Per worker, a heap of the times at which its slots are free."""
        self._stuck_left = shape.stuck_sessions
        self._traces = count(1)

    @property
    def processes(self) -> list[Process]:
        """Every process, the trainer first."""
        return [self.trainer, *self.workers]

    def steps(self) -> Iterator[int]:
        """Simulate step after step; the caller takes the records after each."""
        dispatch = 0
        for step in range(self.shape.steps):
            dispatch = self._step(step, dispatch)
            yield step

    def _trace(self) -> bytes:
        return self.random.randbytes(8) + next(self._traces).to_bytes(8)

    def _heavy(self, median_ms: float, spread: float = 0.8) -> int:
        """Draw a duration with a heavy tail."""
        value = self.random.lognormvariate(0.0, spread) * median_ms
        if self.random.random() < 0.01:
            value *= self.random.uniform(4, 12)
        return max(int(value * _MS), 20_000)

    def _version_at(self, time: int) -> int:
        return sum(published <= time for published in self._published[-4:]) + max(
            len(self._published) - 4, 0
        )

    def _step(self, step: int, dispatch: int) -> int:
        """Simulate one step and give when the next one is dispatched."""
        start = self.now
        is_last = step == self.shape.steps - 1
        if is_last and self.shape.dying_process and len(self.workers) > 1:
            self.workers[-1].dies_at = dispatch + 4_000 * _MS
        scope = Scope(self._trace(), step)
        trainer = self.trainer
        step_id = trainer.next_id()
        sent = trainer.add(
            SPAN_CODES["scheduler"],
            "rollout.dispatch",
            Scope(self._trace(), step),
            0,
            dispatch,
            dispatch + self.random.randrange(1, 3 * _MS),
        )
        ends = [
            end
            for task in range(self.shape.tasks_per_step)
            for end in self._task(step, task, dispatch, sent, is_last=is_last)
        ]
        batch_ready = max([*ends, start])
        trainer.add(SPAN_CODES["sync"], "batch.wait", scope, step_id, start, batch_ready)
        train_end = batch_ready + self._heavy(3_000, 0.15)
        update = trainer.add(
            SPAN_CODES["compute"], "trainer.update", scope, step_id, batch_ready, train_end
        )
        self._minibatches(scope, update, batch_ready, train_end)
        synced = train_end + self._heavy(800, 0.2)
        trainer.add(
            SPAN_CODES["comm"],
            "weights.publish",
            scope,
            step_id,
            train_end,
            synced,
            attrs={"bytes": 15_000_000_000},
        )
        for name, begin, end in (
            ("rollout", start, batch_ready),
            ("train", batch_ready, train_end),
            ("sync", train_end, synced),
        ):
            fields = {"lane": "trainer_0"}
            trainer.add(KIND_CODES[Kind.STATE], name, scope, step_id, begin, end, fields=fields)
        trainer.add(
            EVENT_CODE,
            "weights.published",
            scope,
            step_id,
            synced,
            synced,
            attrs={"version": step + 1},
        )
        trainer.add(
            KIND_CODES[Kind.STEP],
            "step",
            scope,
            0,
            start,
            synced,
            span_id=step_id,
            fields={"version_start": step},
        )
        self._published.append(synced)
        self.now = synced
        return batch_ready + (train_end - batch_ready) // 3

    def _minibatches(self, scope: Scope, update: int, start: int, end: int) -> None:
        width = (end - start) // 4
        for number in range(4):
            at = start + number * width
            self.trainer.add(
                SPAN_CODES["compute"],
                "trainer.minibatch",
                scope,
                update,
                at,
                at + width,
                attrs={"number": number, "tokens": 65_536},
            )

    def _task(
        self, step: int, number: int, dispatch: int, sent_by: int, *, is_last: bool
    ) -> list[int]:
        """Roll out one task and give when its sessions end, those that do."""
        key = f"{('gsm8k', 'swe', 'aime')[number % 3]}/{step * self.shape.tasks_per_step + number}"
        scope = Scope(self._trace(), step, key, f"g{step}-{number}")
        slots, worker = min(zip(self._free_at, self.workers, strict=True), key=_first_free)
        task_id = worker.next_id()
        ends: list[int] = []
        is_open = False
        for sample in range(self.shape.group_size):
            start = max(slots[0], dispatch) + self.random.randrange(_MS, 5 * _MS)
            is_stuck = is_last and self._stuck_left > 0 and worker.dies_at is None
            session_id = worker.next_id()
            end = self._session(
                worker, scope, task_id, session_id, sample, dispatch, start, is_stuck=is_stuck
            )
            heapq.heapreplace(slots, start + _TIMEOUT_NS if end is None else end)
            if end is None:
                self._stuck_left -= 1
                is_open = True
            elif worker.dies_at is None or end < worker.dies_at:
                ends.append(end)
                self._consume(scope.trace_id, session_id, step, end)
        arrived = dispatch + self.random.randrange(1, _MS)
        last = None if is_open else max(ends, default=dispatch + _MS)
        code = KIND_CODES[Kind.TASK]
        worker.add(code, "task", scope, sent_by, arrived, last, span_id=task_id)
        return ends

    def _consume(self, trace_id: bytes, session_id: int, step: int, end: int) -> None:
        facts = {"consumed_step": step, "reward": round(self.random.random(), 3)}
        heard = end + self.random.randrange(1, 100 * _MS)
        self.trainer.facts.append(SimFact(trace_id, session_id, heard, facts))

    def _session(
        self,
        worker: Process,
        outer: Scope,
        task_id: int,
        session_id: int,
        sample: int,
        dispatch: int,
        start: int,
        *,
        is_stuck: bool,
    ) -> int | None:
        scope = Scope(outer.trace_id, outer.step, outer.task_key, outer.group, session_id, sample)
        fate = self.random.random()
        at = start
        turns = self.random.randint(1, self.shape.max_turns)
        for turn in range(turns):
            at = self._turn(worker, scope, session_id, turn, at)
        end: int | None
        status, fields = _OK, {"version_start": self._version_at(start)}
        if is_stuck:
            tool = self.random.choice(self.shape.tools)
            self._phase(worker, scope, session_id, "toolcall", at, None, {"tool": tool})
            end = None
        else:
            reward_end = at + self._heavy(120)
            self._phase(worker, scope, session_id, "reward", at, reward_end, {"function": "judge"})
            end = reward_end + self.random.randrange(1, 2 * _MS)
            status, verdict = self._verdict(fate)
            fields |= {**verdict, "version_end": self._version_at(end)}
        worker.add(
            KIND_CODES[Kind.SESSION],
            "session",
            scope,
            task_id,
            start,
            end,
            status=status,
            span_id=session_id,
            attrs={"queue_wait_s": (start - dispatch) / 1e9, "turns": turns},
            fields=fields,
        )
        return end

    def _verdict(self, fate: float) -> tuple[int, dict[str, Any]]:
        shape = self.shape
        if fate < shape.failure_share:
            reason = self.random.choice(("ToolError: sandbox gone", "ValueError: bad JSON"))
            return _ERROR, {"outcome": "failed", "reason": reason}
        fate -= shape.failure_share
        if fate < shape.timeout_share:
            return _ERROR, {"outcome": "timeout", "reason": "TimeoutError"}
        fate -= shape.timeout_share
        if fate < shape.rejected_share:
            return _OK, {"outcome": "rejected", "reason": "equal_rewards"}
        return _OK, {"outcome": "accepted"}

    def _turn(self, worker: Process, scope: Scope, session: int, turn: int, at: int) -> int:
        """One turn: generation with its request inside, then perhaps a tool."""
        done = at + self._heavy(900)
        tokens = max((done - at) // (8 * _MS), 1)
        attrs = {"model": _MODELS[turn % 7 == 6], "turn": turn, "tokens": tokens}
        phase = self._phase(worker, scope, session, "generate", at, done, attrs)
        inside = {"bytes": int(tokens) * 4}
        worker.add(
            SPAN_CODES["io"], "http.request", scope, phase, at + 10_000, done - 5_000, attrs=inside
        )
        if self.random.random() < 0.6:
            tool = self.random.choice(self.shape.tools)
            tool_end = done + self._heavy(250 if tool == "python" else 600, 1.0)
            self._phase(worker, scope, session, "toolcall", done, tool_end, {"tool": tool})
            done = tool_end
        return done

    def _phase(
        self,
        worker: Process,
        scope: Scope,
        session: int,
        name: str,
        start: int,
        end: int | None,
        attrs: dict[str, Any],
    ) -> int:
        code = KIND_CODES[Kind.PHASE]
        return worker.add(code, name, scope, session, start, end, attrs=attrs)


def _first_free(candidate: tuple[list[int], Process]) -> tuple[int, int]:
    slots, worker = candidate
    return slots[0], worker.index
