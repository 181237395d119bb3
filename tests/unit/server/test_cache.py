from __future__ import annotations

import asyncio

import pytest

from rollscope.server.bodies import Body, make_body
from rollscope.server.cache import AnswerCache, Moment


class Kitchen:
    """Computes bodies and counts how often; the clock and the run are set by hand."""

    def __init__(self, most_bytes: int = 1_000_000) -> None:
        self.now_s = 0.0
        self.moment: Moment = (1, True)
        self.made = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None
        self.takes_s = 0.0
        self.cache = AnswerCache(lambda: self.now_s, most_bytes)

    async def _cook(self) -> Body:
        self.made += 1
        self.now_s += self.takes_s
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return make_body(b"%d" % self.made)

    async def order(self, key: str = "a") -> bytes:
        return (await self.cache.get((key,), lambda: self.moment, self._cook)).plain


def test_an_answer_is_made_once_a_second_however_many_ask() -> None:
    async def scenario() -> list[bytes]:
        kitchen = Kitchen()
        got = [await kitchen.order(), await kitchen.order()]
        kitchen.now_s = 1.1
        return [*got, await kitchen.order()]

    assert asyncio.run(scenario()) == [b"1", b"1", b"2"]


def test_an_answer_that_takes_long_is_kept_for_as_long_as_it_took() -> None:
    async def scenario() -> list[bytes]:
        kitchen = Kitchen()
        kitchen.takes_s = 2.0
        got = [await kitchen.order()]
        kitchen.now_s = 3.9
        got.append(await kitchen.order())
        kitchen.now_s = 4.1
        return [*got, await kitchen.order()]

    assert asyncio.run(scenario()) == [b"1", b"1", b"2"]


def test_an_answer_that_its_run_has_left_behind_says_when_it_is_made_anew() -> None:
    async def scenario() -> list[float]:
        kitchen = Kitchen()
        await kitchen.order()
        known = kitchen.cache.renewed_in_s(("a",), kitchen.moment)
        kitchen.moment = (2, True)
        kitchen.now_s = 0.4
        soon = kitchen.cache.renewed_in_s(("a",), kitchen.moment)
        kitchen.now_s += soon
        await kitchen.order()
        return [known, soon, kitchen.cache.renewed_in_s(("a",), kitchen.moment)]

    assert asyncio.run(scenario()) == [0.0, pytest.approx(0.5), 0.0]


def test_an_answer_about_a_run_that_is_over_stays_until_it_changes() -> None:
    async def scenario() -> list[bytes]:
        kitchen = Kitchen()
        kitchen.moment = (1, False)
        got = [await kitchen.order()]
        kitchen.now_s = 1000.0
        got.append(await kitchen.order())
        kitchen.moment = (2, False)
        return [*got, await kitchen.order()]

    assert asyncio.run(scenario()) == [b"1", b"1", b"2"]


def test_those_who_ask_at_once_wait_for_the_same_work() -> None:
    async def scenario() -> tuple[list[bytes], int]:
        kitchen = Kitchen()
        kitchen.gate.clear()
        orders = [asyncio.create_task(kitchen.order()) for _ in range(5)]
        await asyncio.sleep(0)
        orders[0].cancel()  # the first to ask goes away
        kitchen.gate.set()
        return await asyncio.gather(*orders[1:]), kitchen.made

    assert asyncio.run(scenario()) == ([b"1"] * 4, 1)


def test_an_error_is_told_and_not_kept() -> None:
    async def scenario() -> bytes:
        kitchen = Kitchen()
        kitchen.error = ValueError("no")
        with pytest.raises(ValueError, match="no"):
            await kitchen.order()
        kitchen.error = None
        return await kitchen.order()

    assert asyncio.run(scenario()) == b"2"


def test_the_oldest_answers_leave_when_there_are_too_many() -> None:
    async def scenario() -> list[bytes]:
        kitchen = Kitchen(most_bytes=2)
        for key in "abc":
            await kitchen.order(key)
        return [await kitchen.order("c"), await kitchen.order("a")]

    assert asyncio.run(scenario()) == [b"3", b"4"]
