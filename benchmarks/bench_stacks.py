"""How long it takes to say where 2,000 hung coroutines hang.

The floor in the same run is `asyncio.Task.get_stack` for each of them, which gives less: it stops
at the outermost coroutine.
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Callable

import rollscope as rs

_REPEATS = 9


async def _hang(gate: asyncio.Event) -> None:
    await gate.wait()


async def _use_tool(gate: asyncio.Event) -> None:
    await _hang(gate)


async def _roll_out(number: int, gate: asyncio.Event) -> None:
    async with rs.task(f"task/{number}"), rs.session():
        with rs.phase("toolcall", tool="browser"):
            await _use_tool(gate)


def _time_ms(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


async def measure(coroutines: int) -> dict[str, float]:
    """Hang coroutines and time the capture of their stacks, the first time and after."""
    gate = asyncio.Event()
    tasks = [asyncio.create_task(_roll_out(number, gate)) for number in range(coroutines)]
    await asyncio.sleep(0.5)
    first_ms = _time_ms(rs.stacks)
    later_ms = statistics.median(_time_ms(rs.stacks) for _ in range(_REPEATS))
    floor_ms = statistics.median(
        _time_ms(lambda: [task.get_stack() for task in tasks]) for _ in range(_REPEATS)
    )
    stacks = rs.stacks()
    assert len(stacks) == coroutines
    assert all(stack.frames[-2].endswith(" _hang") for stack in stacks)
    gate.set()
    await asyncio.gather(*tasks)
    return {"coroutines": coroutines, "first_ms": first_ms, "ms": later_ms, "floor_ms": floor_ms}


def main() -> None:
    """Print one table, and one JSON line when asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coroutines", type=int, default=2000)
    parser.add_argument("--json", action="store_true", help="print one JSON line")
    args = parser.parse_args()
    rs.init(run="bench-stacks", sink="none")
    result = asyncio.run(measure(args.coroutines))
    rs.shutdown()
    if args.json:
        print(json.dumps(result))
        return
    ratio = result["ms"] / result["floor_ms"]
    print(f"{args.coroutines} hung coroutines, await chains of all, four frames deep")
    print(f"  first capture     {result['first_ms']:6.1f} ms")
    print(f"  later, median     {result['ms']:6.1f} ms   {ratio:.1f}x Task.get_stack")
    print(f"  Task.get_stack    {result['floor_ms']:6.1f} ms   outermost frame only")


if __name__ == "__main__":
    main()
