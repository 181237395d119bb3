from __future__ import annotations

import asyncio
import threading

import pytest

from rollscope.rollout.threads import call_in_thread, is_async
from rollscope.testing import capture


def test_a_call_runs_elsewhere_under_the_same_span() -> None:
    with capture() as captured:
        import rollscope

        async def main() -> threading.Thread:
            with rollscope.phase("outer"):
                return await call_in_thread(inner, 1, by_name=2)

        def inner(_number: int, *, by_name: int) -> threading.Thread:
            with rollscope.phase("inner", by_name=by_name):
                return threading.current_thread()

        assert asyncio.run(main()) is not threading.current_thread()
        assert captured.named("inner").parent_id == captured.named("outer").span_id


def test_a_function_that_raises_stop_iteration_leaves_nobody_waiting() -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            await call_in_thread(next, iter(()))

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        asyncio.run(main())


def test_async_functions_and_objects_like_them_are_told_from_plain_ones() -> None:
    async def function() -> None: ...

    class Like:
        async def __call__(self) -> None: ...

    assert is_async(function)
    assert is_async(Like())
    assert not is_async(len)
    assert not is_async(lambda: None)
