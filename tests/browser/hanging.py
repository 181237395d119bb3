"""A program in which rollouts hang: some finish, three wait for ever on one line."""

import asyncio
import sys

import rollscope as rs

HOSTILE = "swe/</script><b>\u202eevil"
"""A task whose name would run as markup, or turn the text around, if anything let it."""


async def _finish(number: int) -> None:
    async with rs.task(f"gsm8k/{number}"), rs.session(sample=0, version=1) as session:
        with rs.phase("generate", model="policy"):
            await asyncio.sleep(0)
        session.finish("accepted", reward=1.0)


async def _hang(sample: int) -> None:
    async with rs.task(HOSTILE), rs.session(sample=sample, version=1, deadline_s=0.01):
        try:
            with rs.phase("toolcall", tool="shell"):
                raise ConnectionError("no <i>17</i>")
        except ConnectionError:
            pass
        with rs.phase("toolcall", tool="browser"):
            await _wait_for_ever()


async def _wait_for_ever() -> None:
    await asyncio.Event().wait()


async def _roll_out() -> None:
    rs.gauge("slots", 8, pool="trainer 0")
    with rs.step(4, version=1):
        await asyncio.gather(*(_finish(number) for number in range(30)))
    with rs.step(5, version=1):
        hanging = [asyncio.create_task(_hang(sample)) for sample in range(3)]
        await asyncio.sleep(0.1)
        await asyncio.to_thread(rs.flush)
        sys.stdout.write("hanging\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)
        for task in hanging:
            task.cancel()


if __name__ == "__main__":
    rs.init(role="trainer", rank=0, stack_after_s=0.05)
    asyncio.run(_roll_out())
