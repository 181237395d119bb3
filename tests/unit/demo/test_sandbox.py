"""The demo's calculator: right answers, and none that hangs or dies for long."""

import asyncio

import pytest

from rollscope.demo.sandbox import Sandbox, ToolError


def test_it_multiplies_in_a_few_processes_that_are_used_again() -> None:
    async def ask() -> list[str]:
        sandbox = Sandbox(size=2)
        answers = await asyncio.gather(*(sandbox.multiply(f"{n}*7") for n in range(10, 30)))
        assert len(sandbox._all) <= 2
        await sandbox.close()
        return answers

    assert asyncio.run(ask()) == [str(n * 7) for n in range(10, 30)]


def test_what_is_no_product_is_refused_and_others_go_on() -> None:
    async def ask() -> str:
        sandbox = Sandbox(size=1)
        with pytest.raises(ToolError, match="error"):
            await sandbox.multiply("__import__('os')")
        answer = await sandbox.multiply("6*7")
        await sandbox.close()
        return answer

    assert asyncio.run(ask()) == "42"


def test_one_that_hangs_keeps_nobody_else_waiting() -> None:
    async def ask() -> str:
        sandbox = Sandbox(size=1, hang_at=1)
        hanging = asyncio.create_task(sandbox.multiply("6*7"))
        await asyncio.sleep(0)
        answer = await sandbox.multiply("6*7")
        assert not hanging.done()
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        await sandbox.close()
        return answer

    assert asyncio.run(ask()) == "42"
