"""Which failures are tried again, how often and when."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from rollscope.runner.checks import check, is_number

if TYPE_CHECKING:
    from rollscope.runner.task import Task

__all__ = ["NO_RETRY", "FailureKind", "Retry", "RetryBudget", "classify_failure"]

FailureKind = Literal["infra", "data", "policy"]


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """Which failures are tried again."""

    rules: Mapping[type[BaseException], FailureKind] = {}
    """What an exception tells about; the most derived class wins, and what is unknown is `data`."""
    kinds: frozenset[str] = frozenset({"infra"})
    """Which kinds are tried again."""
    per_task: int = 0
    per_group: int | None = None
    per_run: int | None = None
    base_s: float = 0.5
    cap_s: float = 30.0

    def __post_init__(self) -> None:
        """Refuse what the loop could not cope with.

        Raises:
            SettingError: A setting has a value that cannot be used.
        """
        check("rules", self.rules, "a mapping", is_right=isinstance(self.rules, Mapping))
        for name in ("per_task", "per_group", "per_run"):
            given = getattr(self, name)
            check(name, given, "a number, or None", is_right=given is None or is_number(given))
        is_right = is_number(self.base_s) and 0 <= self.base_s < math.inf
        check("base_s", self.base_s, "a number of seconds from 0 on", is_right=is_right)
        is_right = is_number(self.cap_s) and self.cap_s >= 0
        check("cap_s", self.cap_s, "a number of seconds from 0 on", is_right=is_right)


NO_RETRY: Final = Retry()
_DOUBLED: Final = 64
"""How often a back-off doubles: from there on its cap holds, and a float would overflow in time."""


def classify_failure(error: BaseException, rules: Mapping[type[BaseException], FailureKind]) -> str:
    """Say what an exception tells about."""
    for base in type(error).__mro__:
        if base in rules:
            return rules[base]
    return "data"


class RetryBudget:
    """What is left of the budgets of one runner."""

    def __init__(self, retry: Retry, seed: int | None) -> None:
        self._default = retry
        self._random = random.Random(seed)  # noqa: S311  (spreads load, guards nothing)
        self._of_group: dict[Any, int] = {}
        self.spent = 0

    def rules_of(self, task: Task) -> Retry:
        """Give the rules that hold for a task."""
        return task.options.retry or self._default

    def delay_s(self, task: Task, kind: str) -> float | None:
        """Take a retry out of the budgets and give how long to wait; None if there is none.

        If a budget is spent, the task's detail names it.
        """
        retry = self.rules_of(task)
        if kind not in retry.kinds or not retry.per_task:
            return None
        done = task.rare.retries if task.rare is not None else 0
        group = self._of_group.get(task.group, 0)
        if done >= retry.per_task:
            task.more().detail = f"retry budget per_task={retry.per_task} is spent"
        elif retry.per_group is not None and task.group is not None and group >= retry.per_group:
            task.more().detail = f"retry budget per_group={retry.per_group} is spent"
        elif retry.per_run is not None and self.spent >= retry.per_run:
            task.more().detail = f"retry budget per_run={retry.per_run} is spent"
        else:
            self.spent += 1
            if task.group is not None and retry.per_group is not None:
                self._of_group[task.group] = group + 1
            task.more().retries += 1
            # Full jitter: who failed together does not come back together.
            return self._random.uniform(
                0, min(retry.cap_s, retry.base_s * 2.0 ** min(done, _DOUBLED))
            )
        return None

    def group_ended(self, group: object) -> None:
        """Forget what a group has used."""
        self._of_group.pop(group, None)
