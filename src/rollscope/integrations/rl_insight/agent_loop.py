"""Sessions of agent loops, as frameworks tell of them: `agent_loop_session(…)`, then `finish`."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rollscope.instrument.guard import guarded, tell_once
from rollscope.instrument.sanitise import plain_number
from rollscope.integrations.rl_insight import state
from rollscope.integrations.rl_insight.sessions import Handle
from rollscope.integrations.rl_insight.state import GAUGE
from rollscope.integrations.wholes import whole

__all__ = ["AgentLoopSession", "agent_loop_lane_id", "agent_loop_session"]

_MOST_LISTED: Final = 64


def agent_loop_lane_id(
    experiment_name: object, sample: object, session: object, traj: object
) -> str:
    """Name the lane of one trajectory."""
    return f"experiment={experiment_name}/sample={sample}/session={session}/traj={traj}"


@dataclass(frozen=True)
class AgentLoopSession:
    """A session that has begun; `finish` ends it."""

    identity: dict[str, Any]
    start_ns: int
    _handle: Handle | None = field(default=None, repr=False, compare=False)

    def finish(
        self,
        *,
        trajectories: Sequence[Any],
        status: str,
        runner_name: str | None = None,
        reward_source: str | None = None,
        finished: bool | None = None,
    ) -> None:
        """End it, once.

        Args:
            trajectories: What came of it; `chain_id` (from 1), `reward_score` and `num_turns` of
                each are read.
            status: How it ended: success, failure, empty, capacity_exhausted, error, or another.
            runner_name: Who ran it.
            reward_source: Where its reward comes from.
            finished: Whether the agent came to an end of its own.
        """
        active = state.current
        if self._handle is None or active is None:
            return
        with guarded("finishing the session of an agent loop"):
            lines = [_line(number, one) for number, one in enumerate(trajectories)]
            given = {
                "runner_name": runner_name,
                "reward_source": reward_source,
                "finished": finished,
                "num_trajectories": len(lines),
            }
            facts = {key: value for key, value in given.items() if value is not None}
            if not active.sessions.end(self._handle, str(status), facts | _sums(lines)):
                tell_once("rl-insight:finished", "A session of an agent loop is finished once only")
                return
            if active.config.legacy_gauges and active.endpoint is not None:
                _show_legacy(self, lines)


def agent_loop_session(
    *,
    project: object = None,
    experiment_name: object,
    sample: object,
    session: object,
    traj: object = 0,
    uid: object = None,
    global_steps: Any = None,  # noqa: ANN401  (kept as given)
    session_id: object = None,
) -> AgentLoopSession:
    """Begin the session of an agent loop: from now on it is seen as open.

    Args:
        project: Of the run.
        experiment_name: Of the run.
        sample: The data item, which is the task.
        session: Which of its samples.
        traj: Which branch of it.
        uid: The group whose samples are compared.
        global_steps: The step it is dispatched for.
        session_id: What the framework calls it.
    """
    identity = {
        "project": "" if project is None else str(project),
        "experiment_name": str(experiment_name),
        "sample": str(sample),
        "session": str(session),
        "traj": str(traj),
        "state_lane_id": agent_loop_lane_id(experiment_name, sample, session, traj),
        "uid": "" if uid is None else str(uid),
        "global_steps": "" if global_steps is None else global_steps,
        "session_id": "" if session_id is None else str(session_id),
    }
    handle = None
    recorder, active = state.recorder(), state.current
    if recorder is not None and active is not None:
        with guarded("beginning the session of an agent loop"):
            handle = active.sessions.begin(recorder, identity)
    return AgentLoopSession(identity, time.time_ns(), handle)


@dataclass(frozen=True)
class _Line:
    """What is read of a trajectory."""

    traj: str
    reward: float | None
    is_reward_bad: bool
    turns: int


def _line(number: int, trajectory: object) -> _Line:
    chain = whole(getattr(trajectory, "chain_id", None))
    given = getattr(trajectory, "reward_score", None)
    reward = plain_number(given)
    if reward is None and given is not None:
        try:
            reward = float(given)  # a tensor, or a number as text
        except Exception:  # its conversion is the host's code
            reward = None
    if reward is not None and not math.isfinite(reward):
        reward = None
    is_bad = reward is None and given is not None
    turns = whole(getattr(trajectory, "num_turns", 0)) or 0
    return _Line(str(number if chain is None else chain - 1), reward, is_bad, turns)


def _sums(lines: Sequence[_Line]) -> dict[str, Any]:
    """Give what the whole session comes to; its reward is the mean of its trajectories'."""
    if not lines:
        return {}
    rewards = [line.reward for line in lines if line.reward is not None]
    facts: dict[str, Any] = {"turns": sum(line.turns for line in lines)}
    facts["reward"] = sum(rewards) / len(rewards) if rewards else None
    if any(line.is_reward_bad for line in lines):
        facts["reward_bad"] = True
    if len(lines) > 1:
        facts["rewards"] = [line.reward for line in lines[:_MOST_LISTED]]
    return facts


def _show_legacy(session: AgentLoopSession, lines: Sequence[_Line]) -> None:
    """Show the gauges that RL-Insight's dashboards draw their tree from; at the endpoint only."""
    active, identity = state.current, session.identity
    if active is None or active.endpoint is None:
        return
    endpoint, step = active.endpoint, str(identity["global_steps"])
    base = {**active.labels, "experiment_name": identity["experiment_name"], "global_steps": step}
    sample, number = identity["sample"], identity["session"]
    key = f"sample={sample}/session={number}"
    of_sample = {**base, "sample": sample}
    of_session = {**of_sample, "session": number}

    def show(name: str, value: float, labels: dict[str, str]) -> None:
        endpoint.add((GAUGE, f"agent_loop_{name}", value, labels, ""))

    show("run_info", 1.0, {**base, "title": f"Experiment · {identity['experiment_name']}"})
    show("sample_info", 1.0, {**of_sample, "title": f"Sample {sample}"})
    show("session_info", 1.0, {**of_session, "sess_key": key, "title": f"Session {number}"})
    for line in lines:
        reward = "none" if line.reward is None else f"{line.reward:g}"
        title = f"Trajectory #{line.traj} · reward {reward} · {line.turns} turns"
        leaf = f"{key}/traj={line.traj}"
        show("traj_info", 1.0, {**of_session, "traj": line.traj, "leaf": leaf, "title": title})
    show("first_turn_unixtime", session.start_ns / 1e9, dict(base))
    show("last_turn_unixtime", time.time_ns() / 1e9, dict(base))
