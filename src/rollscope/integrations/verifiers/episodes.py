"""One episode while it runs: a session of a task, with a follower for each of its traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollscope.instrument.guard import guarded
from rollscope.integrations.verifiers.following import Fault, Follower, fault_of, tokens_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token

    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Session
    from rollscope.integrations.verifiers.tasks import Tasks

__all__ = ["OpenEpisode"]

_PLACE = "the verifiers integration"


class OpenEpisode:
    """From the call that runs it to its result."""

    def __init__(self, recorder: Recorder, tasks: Tasks, env: Any, task: Any) -> None:  # noqa: ANN401
        """Open task and session; the session is current until `close`."""
        self._recorder, self._tasks = recorder, tasks
        self._key = str(task.key)
        self._followers: dict[int, Follower] = {}
        attrs = {
            "family": str(getattr(getattr(env, "config", None), "env_id", "") or ""),
            "task_type": type(task).__name__,
            "task_name": str(getattr(getattr(task, "data", None), "name", None) or ""),
        }
        shared, sample = tasks.enter(recorder, self._key)
        self._before: Token[Any] = recorder.current.set(shared)
        named = {key: value for key, value in attrs.items() if value}
        self._session: Session = recorder.types.new_session(sample, None, None, None, named)
        self._session.__enter__()

    def seeing(self, theirs: Callable[[Any], None] | None) -> Callable[[Any], None]:
        """Give what is to be told of every new trace: theirs first, then ours."""

        def on_trace(trace: Any) -> None:  # noqa: ANN401  (a `Trace`)
            if theirs is not None:
                theirs(trace)
            with guarded(_PLACE):
                self._follow(trace)

        return on_trace

    def _follow(self, trace: Any) -> None:  # noqa: ANN401
        follower = self._followers[id(trace)] = Follower(self._recorder, trace)
        # A trace calls back one only; whoever came before us is still told.
        before = getattr(trace, "_on_change", None)

        def on_change(changed: Any) -> None:  # noqa: ANN401
            if before is not None:
                before(changed)
            with guarded(_PLACE):
                follower.changed()

        trace.watch(on_change)

    def discarding(self, theirs: Callable[[Any], None] | None) -> Callable[[Any], None]:
        """Give what is to be told of every trace that was given up for another try."""

        def on_discard(trace: Any) -> None:  # noqa: ANN401
            with guarded(_PLACE):
                follower = self._followers.pop(id(trace), None)
                if follower is not None:
                    follower.close(why="retried")
            if theirs is not None:
                theirs(trace)

        return on_discard

    def close(self, episode: Any, error: BaseException | None) -> None:  # noqa: ANN401
        """Write down how it went.

        Args:
            episode: What it gave; None if it gave nothing.
            error: What came out of it instead.
        """
        for follower in self._followers.values():
            with guarded(_PLACE):
                follower.changed()
            follower.close()
        fault = error
        if episode is not None:
            with guarded(_PLACE):
                fault = self._conclude(episode)
        self._session.__exit__(None if fault is None else type(fault), fault, None)
        self._recorder.current.reset(self._before)
        self._tasks.leave(self._recorder, self._key)

    def _conclude(self, episode: Any) -> BaseException | None:  # noqa: ANN401
        told: dict[str, Any] = {"session_id": str(episode.id), **tokens_of(episode.usage)}
        told |= {"turns": episode.num_turns, "reward": _reward(episode.traces)}
        self._session.set(**{key: value for key, value in told.items() if value is not None})
        is_late = episode.is_timeout or any(trace.is_timeout for trace in episode.traces)
        if is_late:
            self._session.finish("timeout", reason="timeout")
        if episode.ok:
            return None
        failed = [trace.last_error for trace in episode.traces if not trace.ok and trace.errors]
        fault = fault_of(episode.last_error or (failed[-1] if failed else None))
        if failed and episode.last_error is None:
            self._session.set(**{"error.copied": True})
        if not is_late:
            reason = "failed" if fault is None else type(fault).__name__
            self._session.finish("failed", reason=reason)
        return fault or Fault()


def _reward(traces: list[Any]) -> float | None:
    """Give the reward: where several agents were scored, the mean of those that learn."""
    scored = [trace for trace in traces if any(part is not None for part in trace.rewards.values())]
    scored = [trace for trace in scored if trace.agent.trainable] or scored
    values = [float(trace.reward) for trace in scored]
    return sum(values) / len(values) if values else None
