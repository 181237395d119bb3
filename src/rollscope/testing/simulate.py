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

from rollscope.model.batch import Metric
from rollscope.model.kinds import (
    EVENT_CODE,
    KIND_CODES,
    SPAN_CODES,
    STATUS_CODES,
    Kind,
    MetricType,
    Status,
)
from rollscope.model.scope import Scope
from rollscope.testing.shape import RunShape

__all__ = ["Process", "SimFact", "SimSpan", "SimStack", "Simulation"]

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


class SimStack(NamedTuple):
    """Where a span hung, in true time."""

    span_id: int
    time: int
    frames: list[str]


class _Attempt(NamedTuple):
    """A session to be simulated."""

    worker: "Process"
    scope: Scope
    task_id: int
    session_id: int
    number: int
    dispatch: int
    start: int
    is_stuck: bool


class Process:
    """One simulated process and what it recorded."""

    def __init__(self, index: int, role: str, rank: int, host: str) -> None:
        self.index = index
        self.role = role
        self.rank = rank
        self.host = host
        self.spans: list[SimSpan] = []
        self.facts: list[SimFact] = []
        self.stacks: list[SimStack] = []
        self.metrics: list[tuple[int, Metric]] = []
        self.dies_at: int | None = None
        self._ids = count((index << 40) + 1)

    def clear(self) -> None:
        """Forget what was recorded, once it has been taken."""
        self.spans.clear()
        self.facts.clear()
        self.stacks.clear()
        self.metrics.clear()

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
        self.judge = Process(shape.rollout_processes + 2, "judge", 0, "host-04")
        self._odd = Random(shape.seed)  # noqa: S311  (apart, so that oddities change nothing else)
        self.now = 0
        self._published: list[int] = [0]
        self._free_at: list[list[int]] = [[0] * shape.slots for _ in self.workers]
        """Per worker, a heap of the times at which its slots are free."""
        self._stuck_left = shape.stuck_sessions
        self._traces = count(1)

    @property
    def processes(self) -> list[Process]:
        """Every process, the trainer first."""
        judges = [self.judge] if self.shape.remote_rewards else []
        return [self.trainer, *self.workers, *judges]

    def _happens(self, share: float) -> bool:
        return share > 0 and self._odd.random() < share

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
        self._tell_pools(step, dispatch)
        batch_ready = max([*ends, start])
        if is_last and not self.shape.ends_last_step:
            trainer.add(SPAN_CODES["sync"], "batch.wait", scope, step_id, start, None)
            self._add_step(scope, step_id, start, None)
            self.now = batch_ready
            return batch_ready
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
        self._add_step(scope, step_id, start, synced)
        if self.shape.gates:
            for worker, lane in self._lanes():
                self._state(worker, "paused", lane, train_end, synced)
        self._published.append(synced)
        self.now = synced
        return batch_ready + (train_end - batch_ready) // 3

    def _add_step(self, scope: Scope, step_id: int, start: int, end: int | None) -> None:
        if self.shape.records_steps:
            fields = {"version_start": scope.step}
            code = KIND_CODES[Kind.STEP]
            self.trainer.add(code, "step", scope, 0, start, end, span_id=step_id, fields=fields)

    def _lanes(self) -> Iterator[tuple[Process, str]]:
        """Give the pools of each worker."""
        for worker in self.workers:
            pools = [f"{worker.role} {worker.rank}"]
            if self.shape.replicas:
                pools = [_replica(worker, number) for number in range(self.shape.replicas)]
            for pool in pools:
                yield worker, pool

    def _state(self, worker: Process, name: str, lane: str, start: int, end: int) -> None:
        code, scope = KIND_CODES[Kind.STATE], Scope(self._trace_apart())
        worker.add(code, name, scope, 0, start, end, fields={"lane": lane})

    def _trace_apart(self) -> bytes:
        return self._odd.randbytes(8) + bytes(8)

    def _tell_pools(self, step: int, dispatch: int) -> None:
        """Let pools tell of their slots, gates and event loops."""
        for worker, lane in self._lanes():
            if self.shape.declares_slots:
                slots = (self.shape.slots + step) // (self.shape.replicas or 1)
                gauge = Metric(MetricType.GAUGE, "slots", {"pool": lane}, float(slots))
                worker.metrics.append((dispatch, gauge))
            if self.shape.gates:
                at = dispatch
                for name in ("gate:staleness", "gate:outbox", "queue_empty"):
                    end = at + self._odd.randrange(100 * _MS, 2_000 * _MS)
                    self._state(worker, name, lane, at, end)
                    at = end - 50 * _MS
        if self.shape.loop_lag:
            for worker in self.workers:
                late = [self._odd.random() for _ in range(3)]
                lag = Metric(
                    *(MetricType.HISTOGRAM, "event_loop_lag_seconds", {}, sum(late), len(late)),
                    *(min(late), max(late), {0: len(late)}),
                )
                worker.metrics.append((dispatch + 1_000 * _MS, lag))

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
        is_assigned = not self._happens(self.shape.unassigned_share)
        scope = Scope(self._trace(), step if is_assigned else None, key, f"g{step}-{number}")
        slots, worker = min(zip(self._free_at, self.workers, strict=True), key=_first_free)
        task_id = worker.next_id()
        ends: list[int] = []
        is_open = False
        for sample in range(self.shape.group_size):
            start = max(slots[0], dispatch) + self.random.randrange(_MS, 5 * _MS)
            is_stuck = is_last and self._stuck_left > 0 and worker.dies_at is None
            for attempt in range(2):
                session_id = worker.next_id()
                outer = (scope.trace_id, scope.step, scope.task_key, scope.group)
                inner = Scope(*outer, session_id, sample)
                end, has_failed = self._session(
                    _Attempt(worker, inner, task_id, session_id, attempt, dispatch, start, is_stuck)
                )
                heapq.heapreplace(slots, start + _TIMEOUT_NS if end is None else end)
                is_retried = has_failed and not attempt and self._happens(self.shape.retry_share)
                if end is None:
                    self._stuck_left -= 1
                    is_open = True
                elif worker.dies_at is None or end < worker.dies_at:
                    ends.append(end)
                    if not is_retried and is_assigned:
                        self._consume(scope.trace_id, session_id, step, end)
                if not is_retried or end is None:
                    break
                start = end + self._odd.randrange(_MS, 50 * _MS)
        arrived = dispatch + self.random.randrange(1, _MS)
        last = None if is_open else max(ends, default=dispatch + _MS)
        code = KIND_CODES[Kind.TASK]
        worker.add(code, "task", scope, sent_by, arrived, last, span_id=task_id)
        return ends

    def _consume(self, trace_id: bytes, session_id: int, step: int, end: int) -> None:
        facts = {"consumed_step": step, "reward": round(self.random.random(), 3)}
        heard = end + self.random.randrange(1, 100 * _MS)
        if self._happens(self.shape.late_share):
            del facts["consumed_step"]
            if step < self.shape.steps - 1:
                later = {"consumed_step": step + 1}
                self.trainer.facts.append(SimFact(trace_id, session_id, heard + 3_000 * _MS, later))
        self.trainer.facts.append(SimFact(trace_id, session_id, heard, facts))

    def _session(self, attempt: _Attempt) -> tuple[int | None, bool]:
        """Simulate a session; give when it ends, if it does, and whether it failed."""
        worker, scope, start = attempt.worker, attempt.scope, attempt.start
        fate = self.random.random()
        at = start
        turns = self.random.randint(1, self.shape.max_turns)
        for turn in range(turns):
            at = self._turn(worker, scope, attempt.session_id, turn, at)
        end: int | None
        status, fields = _OK, {"version_start": self._version_at(start)}
        if attempt.is_stuck:
            self._hang(attempt, at)
            end = None
        else:
            reward_end = at + self._heavy(120)
            self._reward(worker, scope, attempt.session_id, at, reward_end)
            end = reward_end + self.random.randrange(1, 2 * _MS)
            status, verdict = self._verdict(fate)
            told = self._told_in_time(attempt, end, verdict)
            fields |= {**told, "version_end": self._version_at(end)}
        worker.add(
            KIND_CODES[Kind.SESSION],
            "session",
            scope,
            attempt.task_id,
            start,
            end,
            status=status,
            span_id=attempt.session_id,
            attrs=self._session_attrs(attempt, turns),
            fields=fields,
        )
        return end, status == _ERROR

    def _session_attrs(self, attempt: _Attempt, turns: int) -> dict[str, Any]:
        shape = self.shape
        waited_s = (attempt.start - attempt.dispatch) / 1e9
        attrs: dict[str, Any] = {"queue_wait_s": waited_s, "turns": turns}
        if shape.retry_share:
            attrs["attempt"] = attempt.number
        if attempt.number:
            attrs["tokens_out"] = 100 * turns
        if shape.replicas:
            attrs["replica"] = _replica(attempt.worker, attempt.session_id % shape.replicas)
        if shape.deadline_s:
            attrs["deadline_s"] = shape.deadline_s
        if self._happens(shape.family_share):
            attrs["family"] = "chosen"
        return attrs

    def _hang(self, attempt: _Attempt, at: int) -> None:
        worker, tools = attempt.worker, self.shape.tools
        leaf = 0
        for number in range(self.shape.parallel_tools):
            name, attrs = "generate", dict[str, Any]()
            if tools:
                name, attrs = "toolcall", {"tool": self.random.choice(tools)}
            begin = at + number * 30 * _MS
            leaf = self._phase(worker, attempt.scope, attempt.session_id, name, begin, None, attrs)
        if self.shape.stacks:
            frames = ["rollout.py:10 roll", f"tools.py:{20 + attempt.session_id % 2} call"]
            for time in (at + 1_000 * _MS, at + 2_000 * _MS):
                worker.stacks.append(SimStack(leaf, time, frames))
                worker.stacks.append(SimStack(attempt.session_id, time, frames[:1]))

    def _reward(self, worker: Process, scope: Scope, session: int, start: int, end: int) -> None:
        attrs = {"function": "judge"}
        phase = self._phase(worker, scope, session, "reward", start, end, attrs)
        is_asked = worker.dies_at is None or start < worker.dies_at
        if self.shape.remote_rewards and is_asked:
            middle = start + (end - start) // 2
            code = SPAN_CODES["compute"]
            self.judge.add(code, "judge.score", scope, phase, start + 10_000, middle)

    def _told_in_time(self, attempt: _Attempt, end: int, verdict: dict[str, Any]) -> dict[str, Any]:
        """Give what is known of a session when it ends, and let the rest be told later."""
        worker, scope = attempt.worker, attempt.scope
        if self._happens(self.shape.straggling_share):
            begin = end + self._odd.randrange(_MS, 800 * _MS)
            done = begin + self._odd.randrange(_MS, 500 * _MS)
            attrs = {"service": "disk", "tokens": 5}
            self._phase(worker, scope, attempt.session_id, "upload", begin, done, attrs)
        if not self._happens(self.shape.late_verdict_share):
            return verdict
        if worker.dies_at is None or end < worker.dies_at:
            told = end + self._odd.randrange(_MS, 900 * _MS)
            fact = SimFact(scope.trace_id, attempt.session_id, told, verdict)
            self.trainer.facts.append(fact)
        return {}

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
        sent, answered = at + 10_000, done - 5_000
        if self._happens(self.shape.outliving_share):
            answered = done + self._odd.randrange(_MS, 3_000 * _MS)
        worker.add(SPAN_CODES["io"], "http.request", scope, phase, sent, answered, attrs=inside)
        if self.random.random() < 0.6 and self.shape.tools:
            done = max(
                self._tool(worker, scope, session, done) for _ in range(self.shape.parallel_tools)
            )
        return done

    def _tool(self, worker: Process, scope: Scope, session: int, at: int) -> int:
        """Call a tool and give when it is done."""
        tool = self.random.choice(self.shape.tools)
        end = at + self._heavy(250 if tool == "python" else 600, 1.0)
        phase = self._phase(worker, scope, session, "toolcall", at, end, {"tool": tool})
        if self._happens(self.shape.nested_share):
            code, third = KIND_CODES[Kind.PHASE], (end - at) // 3
            attrs = {"env": "sandbox", "tokens_in": 12}
            worker.add(code, "env", scope, phase, at + third, end - third, attrs=attrs)
        return end

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
        if end is not None and self._happens(self.shape.queue_share):
            attrs = {**attrs, "queue_s": self._odd.random() * (end - start) / 1e9}
        return worker.add(code, name, scope, session, start, end, attrs=attrs)


def _replica(worker: Process, number: int) -> str:
    return f"replica-{worker.rank}-{number}"


def _first_free(candidate: tuple[list[int], Process]) -> tuple[int, int]:
    slots, worker = candidate
    return slots[0], worker.index
