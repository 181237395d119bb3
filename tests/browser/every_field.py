"""A program that writes hostile text into every text that a record can hold, and then hangs."""

import asyncio
import os
import sys
from typing import Any

import rollscope as rs

__all__ = ["MARKUP", "evil"]

MARKUP = "</script><img src=https://evil.invalid/x onerror=alert(1)><b data-evil>'\"&amp;"
"""What would run, or ask another server, if anything took text for markup."""
_MARKS = "\u202e\u2066\x1b[31m\x07"
"""What would turn text around, or speak to a terminal, if it were let through."""
_LONG = "long" * 25_000


def evil(field: str) -> str:
    """Give hostile text that says which field it was written into."""
    return f"{field}:{_MARKS}{MARKUP}"


async def _finish(sample: int) -> None:
    known: dict[str, Any] = {
        "replica": evil("replica"),
        "family": evil("family"),
        evil("key"): evil("value"),
    }
    async with rs.session(sample=sample, version=1, **known) as session:
        session.set(long=_LONG, nested={evil("inner"): [evil("item")]})
        with rs.phase(evil("phase"), model=evil("model")), rs.span(evil("span")):
            rs.payload("messages", [{"role": evil("speaker"), "content": evil("message")}])
            rs.payload(evil("payload"), _LONG)
        with rs.phase("toolcall", tool=evil("tool"), queue_wait_s=0.001):
            rs.event(evil("event"), **{evil("fact"): evil("known")})
        with rs.phase("reward", function=evil("function")):
            await asyncio.sleep(0)
        session.finish("rejected", reason=evil("reason"), reward=0.5)


async def _fail(sample: int) -> None:
    try:
        async with rs.session(sample=sample, version=1):
            with rs.phase("env", env=evil("env")):
                raise type(evil("Kind"), (ValueError,), {})(evil("error"))
    except ValueError:
        pass


async def _hang() -> None:
    async with rs.session(sample=99, version=1, deadline_s=0.01):
        with rs.phase(evil("waiting"), tool=evil("hung")):
            await asyncio.Event().wait()


async def _roll_out() -> None:
    with rs.step(1, version=1):
        async with rs.task(evil("task"), group=evil("group")):
            await asyncio.gather(*map(_finish, range(24)))
            await asyncio.gather(*map(_fail, range(30, 34)))
        with rs.state(evil("state"), lane=evil("lane")), rs.span(evil("work")):
            rs.gauge(evil("gauge"), 3, **{evil("label"): evil("labelled")})
            rs.count(evil("count"), 3, pool=evil("pool"))
            rs.observe(evil("seconds"), 0.3)
    with rs.step(2, version=1):
        async with rs.task(evil("open task")):
            hanging = asyncio.create_task(_hang(), name=evil("coroutine"))
            await asyncio.sleep(0.1)
            await asyncio.to_thread(rs.flush)
            sys.stdout.write("hanging\n")
            sys.stdout.flush()
            await asyncio.to_thread(sys.stdin.read)
            hanging.cancel()


if __name__ == "__main__":
    machine = os.uname()
    os.uname = lambda: os.uname_result((machine[0], evil("host"), *machine[2:]))
    rs.init(
        role=evil("role"),
        rank=0,
        payloads=True,
        stack_after_s=0.05,
        tags={evil("tag"): evil("tagged")},
    )
    asyncio.run(_roll_out())
