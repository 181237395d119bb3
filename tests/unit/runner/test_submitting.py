from __future__ import annotations

import asyncio
import math
import time
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.errors import SettingError
from rollscope.runner import Retry, Runner, Status
from tests.unit.runner.virtual import Stage, play

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 20.0
MARK: ContextVar[str] = ContextVar("mark", default="nothing")


async def look_and_set(text: str) -> str:
    seen = MARK.get()
    MARK.set(text)
    return seen


def test_tasks_submitted_where_nothing_is_set_do_not_see_what_others_set() -> None:
    with Runner(probe_s=None) as runner:
        for number in range(3):
            Context().run(runner.submit, look_and_set, str(number))
        seen = {outcome.value for outcome in runner.wait(3, PATIENCE_S)}
        assert seen == {"nothing"}
        assert Context().run(MARK.get) == "nothing"


def test_each_task_sees_what_was_set_when_it_was_submitted() -> None:
    def submit(text: str) -> int:
        MARK.set(text)
        return runner.submit(look_and_set, "other").id

    with Runner(probe_s=None) as runner:
        ids = {Context().run(submit, text): text for text in ("one", "two")}
        seen = {outcome.id: outcome.value for outcome in runner.wait(2, PATIENCE_S)}
    assert seen == ids


async def give(value: int) -> int:
    return value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timeout_s", "5"),
        ("attempt_timeout_s", math.nan),
        ("queue_timeout_s", "5"),
        ("queue_timeout_s", math.nan),
        ("stall_s", ()),
        ("priority", "high"),
        ("priority", None),
        ("priority", math.nan),
        ("id", -1),
        ("id", 1.5),
        ("id", "first"),
        ("group", ["a"]),
        ("tags", ["a"]),
        ("retry", 3),
        ("children", "cancle"),
    ],
)
def test_a_setting_that_cannot_be_used_is_told_to_who_gives_it(name: str, value: object) -> None:
    with Runner(probe_s=None) as runner:
        with pytest.raises(SettingError, match=name):
            runner.options(**{name: value})
        assert runner.submit(give, 1).result(PATIENCE_S).value == 1


@pytest.mark.parametrize("name", ["timeout_s", "attempt_timeout_s", "queue_timeout_s", "stall_s"])
@pytest.mark.parametrize("limit_s", [math.inf, 1e300])
def test_a_limit_that_never_comes_is_no_limit(name: str, limit_s: float) -> None:
    with Runner(probe_s=None, cleanup_s=limit_s) as runner:
        handle = runner.options(**{name: limit_s}).submit(give, 1)
        assert handle.result(PATIENCE_S).value == 1


def test_a_clean_up_without_a_limit_is_waited_for() -> None:
    async def main(stage: Stage) -> None:
        async def tidy() -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.sleep(1e6)
            return "tidy"

        handle = stage.runner.submit(tidy)
        await asyncio.sleep(1.0)
        stage.runner.cancel(handle.id)
        outcome = await handle
        assert (outcome.status, outcome.value) == (Status.CANCELLED, "tidy")

    play(main, cleanup_s=math.inf)


@pytest.mark.parametrize(
    "settings",
    [
        {"rules": [OSError]},
        {"per_task": "3"},
        {"per_run": math.nan},
        {"base_s": math.inf},
        {"base_s": -1.0},
        {"cap_s": None},
    ],
)
def test_a_retry_that_cannot_be_used_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(settings))):
        Retry(**settings)


def test_labels_may_be_left_out_by_saying_none() -> None:
    with Runner(probe_s=None) as runner:
        handle = runner.options(tags=None).submit(give, 1)
        assert runner.cancel(tag=("set", "aime")) == 0
        assert handle.result(PATIENCE_S).tags == {}


class _Unbound:
    """Stands for something that is not there: a proxy of a web framework, or of a remote object."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("nothing is bound to this")

    async def __call__(self) -> str:
        return "called"


def test_a_function_whose_name_cannot_be_had_is_called_all_the_same() -> None:
    with Runner(probe_s=None) as runner:
        assert runner.submit(_Unbound()).result(PATIENCE_S).value == "called"


def test_the_time_that_a_producer_is_blocked_is_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 100.0
    rounds = 0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    monkeypatch.setattr(time, "monotonic_ns", lambda: int(now_s * 1e9))

    class Contended(Runner):
        def _until(self, is_so: Callable[[], bool], timeout_s: float | None) -> bool:
            nonlocal now_s, rounds
            now_s += 1.0
            rounds += 1
            if rounds == 3:  # before that, others were quicker to take the room
                self._inbox_size = 1
            return True

    runner = Contended(probe_s=None, inbox=0)
    runner._refusal = None
    runner.submit_blocking(give, 1)
    assert runner._kernel.figures.producer_blocked_ns == 3_000_000_000
