from __future__ import annotations

import asyncio
import threading

from rollscope.server.hub import Hub
from rollscope.server.progress import RunProgress, first_seq


def progress(run: str, seq: int, *changed: str) -> RunProgress:
    return RunProgress(run=run, seq=seq, now_ns=0, is_alive=True, last_ns=0, changed=list(changed))


def test_a_slow_listener_gets_the_newest_state_and_all_that_changed() -> None:
    async def scenario() -> list[RunProgress]:
        hub = Hub()
        hub.start()
        listener = hub.join("a")
        for news in (progress("a", 1, "spans"), progress("b", 9), progress("a", 2, "steps")):
            thread = threading.Thread(target=hub.publish, args=(news,))
            thread.start()
            thread.join()
        await asyncio.sleep(0)
        return await listener.wait(5)

    assert asyncio.run(scenario()) == [progress("a", 2, "spans", "steps")]


def test_closing_wakes_everybody() -> None:
    async def scenario() -> list[RunProgress]:
        hub = Hub()
        hub.start()
        waiting = asyncio.create_task(hub.join(None).wait(30))
        await asyncio.sleep(0)
        hub.close()
        return await asyncio.wait_for(waiting, 5)

    assert asyncio.run(scenario()) == []


def test_numbers_of_a_later_start_are_higher_and_fit_into_a_double() -> None:
    assert first_seq() + 2**16 < 2**53
    assert first_seq() % 2**16 == 0
