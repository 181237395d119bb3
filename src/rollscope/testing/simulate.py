"""A simulated training run: who does what when, in true time, with no clock and no file.

One trainer and several rollout processes. Each step dispatches its tasks before the previous
update is over, so that sessions straddle policy versions; generation and tools have heavy tails;
some sessions fail, time out or hang; one process may die.
"""

import heapq
from collections.abc import Iterator
from itertools import pairwise

from rollscope.model.batch import Metric
from rollscope.model.kinds import EVENT_CODE, KIND_CODES, SPAN_CODES, Kind, MetricType
from rollscope.model.loops import LAG_METRIC
from rollscope.model.scope import Scope
from rollscope.testing.chance import MS, Chance
from rollscope.testing.shape import RunShape
from rollscope.testing.simprocess import Process, SimFact
from rollscope.testing.simsession import Attempt, Sessions, replica_name

__all__ = ["Simulation"]

_TIMEOUT_NS = 60_000 * MS


class Simulation:
    """Runs the steps one by one, so that a run of any size fits into memory."""

    def __init__(self, shape: RunShape) -> None:
        self.shape = shape
        self.trainer = Process(1, "trainer", 0, "host-00")
        self.workers = [
            Process(n + 2, "rollout", n, f"host-{n % 3 + 1:02d}")
            for n in range(shape.rollout_processes)
        ]
        self.judge = Process(shape.rollout_processes + 2, "judge", 0, "host-04")
        self.now = 0
        self._published: list[int] = [0]
        self._free_at: list[list[int]] = [[0] * shape.slots for _ in self.workers]
        """Per worker, a heap of the times at which its slots are free."""
        self._stuck_left = shape.stuck_sessions
        self._chance = Chance(shape.seed)
        self._sessions = Sessions(shape, self._chance, self.trainer, self.judge, self._version_at)

    @property
    def processes(self) -> list[Process]:
        """Every process, the trainer first."""
        judges = [self.judge] if self.shape.remote_rewards else []
        return [self.trainer, *self.workers, *judges]

    def steps(self) -> Iterator[int]:
        """Simulate step after step; the caller takes the records after each."""
        dispatch = 0
        for step in range(self.shape.steps):
            dispatch = self._step(step, dispatch)
            yield step

    def _version_at(self, time: int) -> int:
        return sum(published <= time for published in self._published[-4:]) + max(
            len(self._published) - 4, 0
        )

    def _step(self, step: int, dispatch: int) -> int:
        """Simulate one step and give when the next one is dispatched."""
        start = self.now
        is_last = step == self.shape.steps - 1
        if is_last and self.shape.dying_process and len(self.workers) > 1:
            self.workers[-1].dies_at = dispatch + 4_000 * MS
        scope = Scope(self._chance.trace(), step)
        step_id = self.trainer.next_id()
        ends = self._roll_out(step, dispatch, is_last=is_last)
        batch_ready = max([*ends, start])
        is_over = not is_last or self.shape.ends_last_step
        waited_to = batch_ready if is_over else None
        self.trainer.add(SPAN_CODES["sync"], "batch.wait", scope, step_id, start, waited_to)
        if not is_over:
            self._add_step(scope, step_id, start, None)
            self.now = batch_ready
            return batch_ready
        train_end = self._update(scope, step_id, batch_ready)
        synced = self._publish(scope, step_id, train_end)
        self._tell_trainer(step, scope, step_id, [start, batch_ready, train_end, synced])
        self._add_step(scope, step_id, start, synced)
        if self.shape.gates:
            for worker, lane in self._lanes():
                self._state(worker, "paused", lane, train_end, synced)
        self._published.append(synced)
        self.now = synced
        return batch_ready + (train_end - batch_ready) // 3

    def _roll_out(self, step: int, dispatch: int, *, is_last: bool) -> list[int]:
        """Dispatch the tasks of a step and give when their sessions end, those that do."""
        sent = self.trainer.add(
            SPAN_CODES["scheduler"],
            "rollout.dispatch",
            Scope(self._chance.trace(), step),
            0,
            dispatch,
            dispatch + self._chance.usual.randrange(1, 3 * MS),
        )
        ends = [
            end
            for task in range(self.shape.tasks_per_step)
            for end in self._task(step, task, dispatch, sent, is_last=is_last)
        ]
        self._tell_pools(step, dispatch)
        return ends

    def _update(self, scope: Scope, step_id: int, start: int) -> int:
        """Train on a batch and give when that is done."""
        end = start + self._chance.heavy(3_000, 0.15)
        code = SPAN_CODES["compute"]
        update = self.trainer.add(code, "trainer.update", scope, step_id, start, end)
        width = (end - start) // 4
        for number in range(4):
            at = start + number * width
            attrs = {"number": number, "tokens": 65_536}
            self.trainer.add(code, "trainer.minibatch", scope, update, at, at + width, attrs=attrs)
        return end

    def _publish(self, scope: Scope, step_id: int, start: int) -> int:
        """Send new weights out and give when they are there."""
        end = start + self._chance.heavy(800, 0.2)
        attrs = {"bytes": 15_000_000_000}
        self.trainer.add(
            SPAN_CODES["comm"], "weights.publish", scope, step_id, start, end, attrs=attrs
        )
        return end

    def _tell_trainer(self, step: int, scope: Scope, step_id: int, edges: list[int]) -> None:
        """Let the trainer tell of its states, and of the version that they led to."""
        code, fields = KIND_CODES[Kind.STATE], {"lane": "trainer_0"}
        names = ("rollout", "train", "sync")
        for name, (begin, end) in zip(names, pairwise(edges), strict=True):
            self.trainer.add(code, name, scope, step_id, begin, end, fields=fields)
        attrs, at = {"version": step + 1}, edges[-1]
        self.trainer.add(EVENT_CODE, "weights.published", scope, step_id, at, at, attrs=attrs)

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
                pools = [replica_name(worker, number) for number in range(self.shape.replicas)]
            for pool in pools:
                yield worker, pool

    def _state(self, worker: Process, name: str, lane: str, start: int, end: int) -> None:
        code, scope = KIND_CODES[Kind.STATE], Scope(self._chance.odd_trace())
        worker.add(code, name, scope, 0, start, end, fields={"lane": lane})

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
                    end = at + self._chance.odd.randrange(100 * MS, 2_000 * MS)
                    self._state(worker, name, lane, at, end)
                    at = end - 50 * MS
        if self.shape.loop_lag:
            for worker in self.workers:
                late = [self._chance.odd.random() for _ in range(3)]
                lag = Metric(
                    *(MetricType.HISTOGRAM, LAG_METRIC, {}, sum(late), len(late)),
                    *(min(late), max(late), {0: len(late)}),
                )
                worker.metrics.append((dispatch + 1_000 * MS, lag))

    def _task(
        self, step: int, number: int, dispatch: int, sent_by: int, *, is_last: bool
    ) -> list[int]:
        """Roll out one task and give when its sessions end, those that do."""
        key = f"{('gsm8k', 'swe', 'aime')[number % 3]}/{step * self.shape.tasks_per_step + number}"
        is_assigned = not self._chance.happens(self.shape.unassigned_share)
        scope = Scope(self._chance.trace(), step if is_assigned else None, key, f"g{step}-{number}")
        slots, worker = min(zip(self._free_at, self.workers, strict=True), key=_first_free)
        task_id = worker.next_id()
        ends: list[int] = []
        is_open = False
        for sample in range(self.shape.group_size):
            start = max(slots[0], dispatch) + self._chance.usual.randrange(MS, 5 * MS)
            is_stuck = is_last and self._stuck_left > 0 and worker.dies_at is None
            for attempt in range(2):
                session_id = worker.next_id()
                outer = (scope.trace_id, scope.step, scope.task_key, scope.group)
                inner = Scope(*outer, session_id, sample)
                end, has_failed = self._sessions.run(
                    Attempt(worker, inner, task_id, session_id, attempt, dispatch, start, is_stuck)
                )
                heapq.heapreplace(slots, start + _TIMEOUT_NS if end is None else end)
                is_retried = (
                    has_failed and not attempt and self._chance.happens(self.shape.retry_share)
                )
                if end is None:
                    self._stuck_left -= 1
                    is_open = True
                elif worker.dies_at is None or end < worker.dies_at:
                    ends.append(end)
                    if not is_retried and is_assigned:
                        self._consume(scope.trace_id, session_id, step, end)
                if not is_retried or end is None:
                    break
                start = end + self._chance.odd.randrange(MS, 50 * MS)
        arrived = dispatch + self._chance.usual.randrange(1, MS)
        last = None if is_open else max(ends, default=dispatch + MS)
        code = KIND_CODES[Kind.TASK]
        worker.add(code, "task", scope, sent_by, arrived, last, span_id=task_id)
        return ends

    def _consume(self, trace_id: bytes, session_id: int, step: int, end: int) -> None:
        facts = {"consumed_step": step, "reward": round(self._chance.usual.random(), 3)}
        heard = end + self._chance.usual.randrange(1, 100 * MS)
        if self._chance.happens(self.shape.late_share):
            del facts["consumed_step"]
            if step < self.shape.steps - 1:
                later = {"consumed_step": step + 1}
                self.trainer.facts.append(SimFact(trace_id, session_id, heard + 3_000 * MS, later))
        self.trainer.facts.append(SimFact(trace_id, session_id, heard, facts))


def _first_free(candidate: tuple[list[int], Process]) -> tuple[int, int]:
    slots, worker = candidate
    return slots[0], worker.index
