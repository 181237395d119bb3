"""Makes any reward function awaitable: in another process, with a time limit and further tries."""

import math
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias, get_args

from rollscope.instrument.default import current
from rollscope.rollout.reward.failure import Reason, RewardFailed
from rollscope.rollout.reward.function import pack_function
from rollscope.rollout.reward.pool import default_workers, shared_pool
from rollscope.rollout.reward.process import WorkerLost
from rollscope.rollout.reward.wire import Answer, encode_call

__all__ = ["AsyncRewardWrapper", "OnFailure"]

OnFailure: TypeAlias = Literal["raise", "none", "zero"]
_ON_FAILURE: Final = get_args(OnFailure)


class AsyncRewardWrapper:
    """A reward function that can be awaited and cannot hang or kill the trainer.

    It runs in a pool of processes, shared with others of the same `max_workers`. After an error, a
    time limit or the death of its process it is tried again; a process that hangs is killed.

        reward = AsyncRewardWrapper("my_rewards.math_reward", timeout_seconds=5)
        value = await reward(prompt, completion)
    """

    def __init__(
        self,
        reward_fn: Callable[..., Any] | str,
        timeout_seconds: float = 15,
        max_workers: int | None = None,
        max_retries: int = 3,
        on_failure: OnFailure = "raise",
    ) -> None:
        """Take the function; no process is started yet.

        Args:
            reward_fn: Gives a number. A function of a module, a picklable object that can be
                called, or an import path. An `async` function works too.
            timeout_seconds: How long one try may take, without waiting for a free process.
            max_workers: How many processes; None for half of the CPUs per device.
            max_retries: How many times to try again.
            on_failure: After the last try `raise` `RewardFailed`, or give None (`none`), or give
                0.0 (`zero`), which is marked in the trace as `reward_substituted`.

        Raises:
            TypeError: The function cannot be called in another process.
            ValueError: Another argument is out of range.
        """
        if not (timeout_seconds > 0 and math.isfinite(timeout_seconds)):
            raise ValueError(f"timeout_seconds must be above 0, not {timeout_seconds}")
        if max_workers is not None and max_workers < 1:
            raise ValueError(f"max_workers must be at least 1, not {max_workers}")
        if max_retries < 0:
            raise ValueError(f"max_retries cannot be negative: {max_retries}")
        if on_failure not in _ON_FAILURE:
            raise ValueError(f"on_failure is one of {', '.join(_ON_FAILURE)}, not {on_failure!r}")
        self.reward_fn = reward_fn
        self.timeout_seconds = timeout_seconds
        self.max_workers = default_workers() if max_workers is None else max_workers
        self.max_retries = max_retries
        self.on_failure: OnFailure = on_failure
        self._function = pack_function(reward_fn)

    async def __call__(self, *args: Any, **kwargs: Any) -> float | None:
        """Work out a reward.

        The current span is told `reward_attempts`, and `reward_reason` if a try failed.

        Raises:
            RewardFailed: No try gave a number, and `on_failure` is `raise`.
            TypeError: An argument cannot be sent to another process.
        """
        request = encode_call(self._function, args, kwargs)
        failure: RewardFailed | None = None
        for attempt in range(1, self.max_retries + 2):
            try:
                answer = await shared_pool(self.max_workers).call(request, self.timeout_seconds)
            except (WorkerLost, OSError) as error:
                reason: Reason = error.reason if isinstance(error, WorkerLost) else "reward_error"
                failure = RewardFailed(reason, attempt, str(error))
                continue
            if answer.kind == "ok":
                _record(attempt, failure)
                return answer.reward
            failure = _failure_of(answer, attempt)
            if answer.kind == "unusable":
                break
        assert failure is not None  # noqa: S101  (there is at least one try)
        return self._give_up(failure)

    def _give_up(self, failure: RewardFailed) -> float | None:
        _record(failure.attempts, failure)
        if self.on_failure == "raise":
            raise failure
        if self.on_failure == "zero":
            current().set(reward_substituted=True)
            return 0.0
        return None


def _failure_of(answer: Answer, attempt: int) -> RewardFailed:
    return RewardFailed("reward_error", attempt, answer.detail.strip())


def _record(attempts: int, failure: RewardFailed | None) -> None:
    span = current().set(reward_attempts=attempts)
    if failure is not None:
        span.set(reward_reason=failure.reason)
