from __future__ import annotations

import asyncio

import pytest

from rollscope.rollout.reward.pool import Pool, shared_pool


@pytest.mark.parametrize("turns", [0, 1])
def test_a_place_on_its_way_to_a_caller_that_gives_up_is_not_lost(turns: int) -> None:
    async def main() -> None:
        pool = Pool(1)
        await pool._enter()
        waiter = asyncio.create_task(pool._enter())
        await asyncio.sleep(0)
        pool._leave()
        for _ in range(turns):  # after one, the caller has its place and does not know it yet
            await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.wait([waiter])
        assert waiter.cancelled()
        await asyncio.wait_for(pool._enter(), 5)

    asyncio.run(main())


def test_places_are_given_in_the_order_of_asking() -> None:
    async def main() -> list[int]:
        pool = Pool(1)
        order: list[int] = []

        async def take(number: int) -> None:
            await pool._enter()
            order.append(number)
            pool._leave()

        await pool._enter()
        waiting = [asyncio.create_task(take(number)) for number in range(5)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        pool._leave()
        await asyncio.wait(waiting)
        return order

    assert asyncio.run(main()) == [0, 2, 3, 4]


def test_all_who_ask_for_one_size_share_a_pool() -> None:
    assert shared_pool(41) is shared_pool(41)
    assert shared_pool(41) is not shared_pool(42)
