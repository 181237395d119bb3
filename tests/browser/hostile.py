"""A program that records hostile text wherever text is recorded, and what was said."""

import asyncio

import rollscope as rs

HOSTILE = "</script><img src=x onerror=alert(1)><b>bold</b>\u202eevil\u0007\"'&"
"""What would run, look like markup or turn the text around, if anything let it."""
LONG = "y" * 10_000_000


async def _roll_out(sample: int) -> None:
    task = rs.task(f"swe/{HOSTILE}", group=HOSTILE)
    async with task, rs.session(sample=sample, version=1, note=HOSTILE) as session:
        with rs.phase("generate", model=HOSTILE):
            said = [{"role": "system", "content": HOSTILE}, {"role": "user", "content": LONG}]
            rs.payload("prompt", said)
            rs.payload("completion", {"answer": HOSTILE, "list": [1, {"nested": HOSTILE}]})
            await asyncio.sleep(0.01)
        try:
            with rs.phase("toolcall", tool=HOSTILE):
                raise ValueError(HOSTILE)
        except ValueError:
            pass
        with rs.phase(HOSTILE, env=HOSTILE):
            await asyncio.sleep(0)
        rs.event(HOSTILE, text=HOSTILE)
        reward = None if sample == 2 else sample / 3
        session.finish("failed" if sample == 1 else "accepted", reward=reward, reason=HOSTILE)


async def _all() -> None:
    with rs.step(1, version=1):
        await asyncio.gather(*(_roll_out(sample) for sample in range(3)))


if __name__ == "__main__":
    rs.init(role="trainer", rank=0, payloads=True, tags={"note": HOSTILE})
    asyncio.run(_all())
    rs.shutdown()
