"""A simulated session: its turns, tools and reward, how it ends, and what is told of it when."""

from collections.abc import Callable
from typing import Any, NamedTuple

from rollscope.model.kinds import KIND_CODES, SPAN_CODES, STATUS_CODES, Kind, Status
from rollscope.model.scope import Scope
from rollscope.testing.chance import MS, Chance
from rollscope.testing.shape import RunShape
from rollscope.testing.simprocess import Process, SimFact, SimStack

__all__ = ["Attempt", "Sessions", "replica_name"]

_OK, _ERROR = STATUS_CODES[Status.OK], STATUS_CODES[Status.ERROR]
_MODELS = ("policy", "policy-draft")


class Attempt(NamedTuple):
    """A session to be simulated."""

    worker: Process
    scope: Scope
    task_id: int
    session_id: int
    number: int
    dispatch: int
    start: int
    is_stuck: bool


def replica_name(worker: Process, number: int) -> str:
    """Name a replica that sessions of a process are pinned to."""
    return f"replica-{worker.rank}-{number}"


class Sessions:
    """Simulates sessions, one after the other.

    Args:
        shape: What the run looks like.
        chance: Its dice.
        trainer: The process that tells what was learnt late.
        judge: The one that computes rewards, if they are computed elsewhere.
        version_at: Says which version of the policy is in use at a time.
    """

    def __init__(
        self,
        shape: RunShape,
        chance: Chance,
        trainer: Process,
        judge: Process,
        version_at: Callable[[int], int],
    ) -> None:
        self._shape = shape
        self._chance = chance
        self._trainer = trainer
        self._judge = judge
        self._version_at = version_at

    def run(self, attempt: Attempt) -> tuple[int | None, bool]:
        """Simulate a session; give when it ends, if it does, and whether it failed."""
        worker, scope, start = attempt.worker, attempt.scope, attempt.start
        fate = self._chance.usual.random()
        at = start
        turns = self._chance.usual.randint(1, self._shape.max_turns)
        for turn in range(turns):
            at = self._turn(worker, scope, attempt.session_id, turn, at)
        end: int | None
        status, fields = _OK, {"version_start": self._version_at(start)}
        if attempt.is_stuck:
            self._hang(attempt, at)
            end = None
        else:
            reward_end = at + self._chance.heavy(120)
            self._reward(worker, scope, attempt.session_id, at, reward_end)
            end = reward_end + self._chance.usual.randrange(1, 2 * MS)
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

    def _session_attrs(self, attempt: Attempt, turns: int) -> dict[str, Any]:
        shape = self._shape
        waited_s = (attempt.start - attempt.dispatch) / 1e9
        attrs: dict[str, Any] = {"queue_wait_s": waited_s, "turns": turns}
        if shape.retry_share:
            attrs["attempt"] = attempt.number
        if attempt.number:
            attrs["tokens_out"] = 100 * turns
        if shape.replicas:
            attrs["replica"] = replica_name(attempt.worker, attempt.session_id % shape.replicas)
        if shape.deadline_s:
            attrs["deadline_s"] = shape.deadline_s
        if self._chance.happens(shape.family_share):
            attrs["family"] = "chosen"
        return attrs

    def _hang(self, attempt: Attempt, at: int) -> None:
        worker, tools = attempt.worker, self._shape.tools
        leaf = 0
        for number in range(self._shape.parallel_tools):
            name, attrs = "generate", dict[str, Any]()
            if tools:
                name, attrs = "toolcall", {"tool": self._chance.usual.choice(tools)}
            begin = at + number * 30 * MS
            leaf = self._phase(worker, attempt.scope, attempt.session_id, name, begin, None, attrs)
        if self._shape.stacks:
            frames = ["rollout.py:10 roll", f"tools.py:{20 + attempt.session_id % 2} call"]
            for time in (at + 1_000 * MS, at + 2_000 * MS):
                worker.stacks.append(SimStack(leaf, time, frames))
                worker.stacks.append(SimStack(attempt.session_id, time, frames[:1]))

    def _reward(self, worker: Process, scope: Scope, session: int, start: int, end: int) -> None:
        attrs = {"function": "judge"}
        phase = self._phase(worker, scope, session, "reward", start, end, attrs)
        is_asked = worker.dies_at is None or start < worker.dies_at
        if self._shape.remote_rewards and is_asked:
            middle = start + (end - start) // 2
            code = SPAN_CODES["compute"]
            self._judge.add(code, "judge.score", scope, phase, start + 10_000, middle)

    def _told_in_time(self, attempt: Attempt, end: int, verdict: dict[str, Any]) -> dict[str, Any]:
        """Give what is known of a session when it ends, and let the rest be told later."""
        worker, scope = attempt.worker, attempt.scope
        if self._chance.happens(self._shape.straggling_share):
            begin = end + self._chance.odd.randrange(MS, 800 * MS)
            done = begin + self._chance.odd.randrange(MS, 500 * MS)
            attrs = {"service": "disk", "tokens": 5}
            self._phase(worker, scope, attempt.session_id, "upload", begin, done, attrs)
        if not self._chance.happens(self._shape.late_verdict_share):
            return verdict
        if worker.dies_at is None or end < worker.dies_at:
            told = end + self._chance.odd.randrange(MS, 900 * MS)
            fact = SimFact(scope.trace_id, attempt.session_id, told, verdict)
            self._trainer.facts.append(fact)
        return {}

    def _verdict(self, fate: float) -> tuple[int, dict[str, Any]]:
        shape = self._shape
        if fate < shape.failure_share:
            reason = self._chance.usual.choice(("ToolError: sandbox gone", "ValueError: bad JSON"))
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
        done = at + self._chance.heavy(900)
        tokens = max((done - at) // (8 * MS), 1)
        attrs = {"model": _MODELS[turn % 7 == 6], "turn": turn, "tokens": tokens}
        phase = self._phase(worker, scope, session, "generate", at, done, attrs)
        inside = {"bytes": int(tokens) * 4}
        sent, answered = at + 10_000, done - 5_000
        if self._chance.happens(self._shape.outliving_share):
            answered = done + self._chance.odd.randrange(MS, 3_000 * MS)
        worker.add(SPAN_CODES["io"], "http.request", scope, phase, sent, answered, attrs=inside)
        if self._chance.usual.random() < 0.6 and self._shape.tools:
            done = max(
                self._tool(worker, scope, session, done) for _ in range(self._shape.parallel_tools)
            )
        return done

    def _tool(self, worker: Process, scope: Scope, session: int, at: int) -> int:
        """Call a tool and give when it is done."""
        tool = self._chance.usual.choice(self._shape.tools)
        end = at + self._chance.heavy(250 if tool == "python" else 600, 1.0)
        phase = self._phase(worker, scope, session, "toolcall", at, end, {"tool": tool})
        if self._chance.happens(self._shape.nested_share):
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
        if end is not None and self._chance.happens(self._shape.queue_share):
            attrs = {**attrs, "queue_s": self._chance.odd.random() * (end - start) / 1e9}
        return worker.add(code, name, scope, session, start, end, attrs=attrs)
