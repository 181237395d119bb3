"""Rewards in real processes, which really hang and die."""

from __future__ import annotations

import asyncio
import os
import random
import select
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import uvloop

from rollscope import phase
from rollscope.rollout.reward import AsyncRewardWrapper, RewardFailed, close_pools
from rollscope.rollout.reward.pool import shared_pool
from rollscope.testing.capture import capture
from tests.unit.rollout.reward import functions

T = TypeVar("T")
_PATIENCE_S = 60.0
"""For what is to happen; tests pass long before."""


@pytest.fixture(autouse=True)
def no_workers_left() -> Iterator[None]:
    yield
    close_pools()


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, T]], T]:
    def run_on(main: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(asyncio.wait_for(main, _PATIENCE_S))

    return run_on


def _pipe(path: Path) -> Path:
    """Make a named pipe: whoever reads it waits until somebody has written."""
    os.mkfifo(path)
    return path


def _is_gone(pid: int) -> bool:
    """Wait for the end of a process that need not be our child."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], _PATIENCE_S)[0])
    finally:
        os.close(watched)


def test_functions_paths_and_objects_give_their_number_on_either_loop(
    run: Callable[..., Any],
) -> None:
    async def main() -> list[float | None]:
        kinds: list[Any] = [
            functions.length,
            "tests.unit.rollout.reward.functions.length",
            "tests.unit.rollout.reward.functions:length",
            functions.length_later,
            functions.Scaled(2.0),
        ]
        return await asyncio.gather(
            *(AsyncRewardWrapper(kind, max_workers=2)("abc") for kind in kinds)
        )

    assert run(main()) == [3.0, 3.0, 3.0, 3.0, 6.0]


def test_arguments_larger_than_any_socket_buffer_arrive_whole(run: Callable[..., Any]) -> None:
    reward = AsyncRewardWrapper(functions.length, max_workers=1)
    assert run(reward("x" * 20_000_000, scale=0.5)) == 10_000_000.0


def test_a_hanging_function_is_killed_and_the_other_workers_are_left_alone(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    mark = tmp_path / "mark"

    async def main() -> tuple[RewardFailed, int, list[int], int]:
        hang = AsyncRewardWrapper(functions.hang, timeout_seconds=1, max_workers=2, max_retries=0)
        slow = AsyncRewardWrapper(functions.wait_for_file, max_workers=2)
        started, awaited = _pipe(tmp_path / "started"), _pipe(tmp_path / "awaited")
        other = asyncio.create_task(slow(str(started), str(awaited)))
        await asyncio.to_thread(started.read_text)
        (survivor,) = shared_pool(2).pids()
        with pytest.raises(RewardFailed) as caught:
            await hang(str(mark))
        await asyncio.to_thread(awaited.write_text, "0.25")
        assert await other == 0.25
        return caught.value, survivor, shared_pool(2).pids(), int(mark.read_text())

    failure, survivor, pids, hung = run(main())
    assert (failure.reason, failure.attempts) == ("reward_timeout", 1)
    assert "within 1 s" in failure.detail
    assert _is_gone(hung)
    assert pids == [survivor]


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        (functions.crash, "SIGSEGV"),
        (functions.leave, "exit code 7"),
        (functions.exit_politely, "SystemExit: 3"),
        (functions.fail, "RuntimeError: no such answer"),
    ],
)
def test_what_ended_the_last_try_is_said(function: Any, cause: str) -> None:
    reward = AsyncRewardWrapper(function, max_workers=1, max_retries=1)
    with pytest.raises(RewardFailed) as caught:
        asyncio.run(reward())
    assert (caught.value.reason, caught.value.attempts) == ("reward_error", 2)
    assert cause in caught.value.detail


def test_a_dead_worker_fails_one_try_and_the_next_call_gets_a_new_one() -> None:
    async def main() -> float | None:
        with pytest.raises(RewardFailed):
            await AsyncRewardWrapper(functions.crash, max_workers=1, max_retries=0)()
        return await AsyncRewardWrapper(functions.length, max_workers=1, max_retries=0)("ok")

    assert asyncio.run(main()) == 2.0


def test_a_worker_that_died_while_idle_costs_no_try() -> None:
    async def main() -> float | None:
        pid = AsyncRewardWrapper(functions.own_pid, max_workers=1, max_retries=0)
        first = int(await pid() or 0)
        os.kill(first, 9)
        await asyncio.to_thread(_is_gone, first)
        second = await pid()
        assert second != first
        return second

    assert asyncio.run(main())


def test_tries_go_on_until_one_succeeds(tmp_path: Path) -> None:
    with capture() as captured:

        async def main() -> float | None:
            with phase("reward"):
                return await AsyncRewardWrapper(functions.fail_until, max_workers=1)(
                    str(tmp_path), 3
                )

        assert asyncio.run(main()) == 3.0
        attrs = captured.named("reward").attrs
    assert attrs["reward_attempts"] == 3
    assert attrs["reward_reason"] == "reward_error"
    assert "reward_substituted" not in attrs


@pytest.mark.parametrize(
    ("on_failure", "value", "substituted"), [("none", None, None), ("zero", 0.0, True)]
)
def test_a_failed_reward_is_marked_in_the_trace_whatever_takes_its_place(
    on_failure: Any, value: float | None, substituted: bool | None
) -> None:
    reward = AsyncRewardWrapper(functions.fail, max_workers=1, max_retries=2, on_failure=on_failure)
    with capture() as captured:

        async def main() -> float | None:
            with phase("reward"):
                return await reward()

        assert asyncio.run(main()) == value
        attrs = captured.named("reward").attrs
    assert attrs["reward_attempts"] == 3
    assert attrs["reward_reason"] == "reward_error"
    assert attrs.get("reward_substituted") == substituted


@pytest.mark.parametrize("result", [None, "many", [1.0]])
def test_a_result_that_is_no_number_is_an_error(result: object) -> None:
    reward = AsyncRewardWrapper(functions.give, max_workers=1, max_retries=0)
    with pytest.raises(RewardFailed, match="must return a number"):
        asyncio.run(reward(result))


def test_a_function_that_cannot_be_imported_is_not_tried_again() -> None:
    reward = AsyncRewardWrapper("tests.unit.rollout.reward.functions.missing", max_workers=1)
    with pytest.raises(RewardFailed, match="missing") as caught:
        asyncio.run(reward())
    assert caught.value.attempts == 1


def test_functions_run_on_the_main_thread_where_alarms_work() -> None:
    assert asyncio.run(AsyncRewardWrapper(functions.on_main_thread, max_workers=1)()) == 1.0


def test_cancelling_kills_the_worker_and_frees_its_place(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    mark = _pipe(tmp_path / "mark")

    async def main() -> int:
        hang = AsyncRewardWrapper(functions.hang, max_workers=1)
        call = asyncio.create_task(hang(str(mark)))
        pid = int(await asyncio.to_thread(mark.read_text))
        queued = asyncio.create_task(AsyncRewardWrapper(functions.length, 5, 1)("abcd"))
        given_up = asyncio.create_task(hang())
        await asyncio.sleep(0)
        given_up.cancel()
        call.cancel()
        assert await queued == 4.0
        await asyncio.wait([call, given_up])
        assert call.cancelled()
        assert given_up.cancelled()
        assert await AsyncRewardWrapper(functions.length, 5, 1)("ab") == 2.0
        return pid

    assert _is_gone(run(main()))


def test_what_a_hanging_function_started_is_killed_with_it(tmp_path: Path) -> None:
    mark = _pipe(tmp_path / "mark")

    async def main() -> int:
        reward = AsyncRewardWrapper(functions.hang_with_child, max_workers=1)
        call = asyncio.create_task(reward(str(mark)))
        pid = int(await asyncio.to_thread(mark.read_text))
        call.cancel()
        return pid

    assert _is_gone(asyncio.run(main()))


def test_waiting_for_a_free_worker_does_not_count_as_hanging() -> None:
    async def main() -> list[float | None]:
        rest = AsyncRewardWrapper(functions.rest, timeout_seconds=1.5, max_workers=1, max_retries=0)
        return await asyncio.gather(*(rest(0.4) for _ in range(5)))

    assert asyncio.run(main()) == [0.4] * 5


def test_callers_that_give_up_at_any_moment_leave_every_place_free(
    run: Callable[..., Any],
) -> None:
    async def main() -> list[float | None]:
        reward = AsyncRewardWrapper(functions.length, max_workers=2, max_retries=0)
        rng = random.Random(1)
        calls = [asyncio.create_task(reward("x" * size)) for size in range(60)]
        for call in rng.sample(calls, 40):
            call.cancel()
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(0)
        await asyncio.wait(calls)
        return await asyncio.gather(*(reward("x" * size) for size in range(10)))

    assert run(main()) == [float(size) for size in range(10)]
    pool = shared_pool(2)
    assert (pool._free, len(pool._waiting), pool._busy) == (2, 0, set())


def test_two_loops_share_one_pool() -> None:
    async def main() -> set[float | None]:
        pid = AsyncRewardWrapper(functions.own_pid, max_workers=1)
        return set(await asyncio.gather(*(pid() for _ in range(50))))

    async def both() -> tuple[set[float | None], set[float | None]]:
        return await asyncio.gather(
            asyncio.to_thread(asyncio.run, main()), asyncio.to_thread(asyncio.run, main())
        )

    first, second = asyncio.run(both())
    assert len(first) == 1
    assert first == second


_SCRIPT = """
import asyncio, os, sys, threading
from rollscope.rollout.reward import AsyncRewardWrapper

class Judge:
    def __call__(self, text):
        return len(text)

def judge(text, who):
    assert isinstance(who, Judge)
    return who(text)

def hang(mark):
    with open(mark, "w") as file:
        file.write(str(os.getpid()))
    threading.Event().wait()

async def main():
    if len(sys.argv) > 1:
        await AsyncRewardWrapper(hang, 100, 1)(sys.argv[1])
    print(await AsyncRewardWrapper(judge, 5, 1)("abc", Judge()), flush=True)

if __name__ == "__main__":
    asyncio.run(main())
    if os.environ.get("FORKS"):
        child = os.fork()
        asyncio.run(main())
        sys.exit(os.waitpid(child, 0)[1] if child else 0)
"""


def test_functions_of_the_main_script_are_found_and_nothing_is_left_running(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(_SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("3.0\n", "", 0)


def test_a_forked_child_has_workers_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(_SCRIPT)
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "FORKS": "1"},
    )
    assert (done.stdout, done.stderr, done.returncode) == ("3.0\n" * 3, "", 0)


def test_workers_end_with_a_killed_owner_even_while_a_function_hangs(tmp_path: Path) -> None:
    script, mark = tmp_path / "train.py", _pipe(tmp_path / "mark")
    script.write_text(_SCRIPT)
    with subprocess.Popen([sys.executable, script, mark]) as owner:
        pid = int(mark.read_text())
        owner.kill()
    assert _is_gone(pid)
