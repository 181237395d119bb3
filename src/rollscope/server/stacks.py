"""Where open spans hang: asks the processes for a fresh look, else gives what was recorded.

A process is asked through a file in the run directory (see `instrument.asking`), so it also works
across machines that share a file system. One that does not answer in time, because it is gone or
its recorder is older, leaves the newest stacks it wrote by itself.
"""

import asyncio
import time
from pathlib import Path
from typing import Final

import msgspec

from rollscope.answers.session import StackDetail
from rollscope.instrument.asking import ask_path
from rollscope.model.batch import Batch
from rollscope.server.loggrowth import LogGrowth
from rollscope.server.opened import OpenRun
from rollscope.store.dialect import Value
from rollscope.store.embedded import RunStore

__all__ = ["HangingLine", "StackAnswer", "take_stacks"]

_PATIENCE_S: Final = 1.5
_OTHERS_S: Final = 0.3
"""How long the other processes have when one has answered."""
_LOOK_EVERY_S: Final = 0.01
_MOST_STACKS: Final = 100
_MOST_LINES: Final = 50


class HangingLine(msgspec.Struct, kw_only=True):
    """A line of code that open spans hang at."""

    line: str
    """`file:line function`."""
    count: int
    example_id: int
    """One of the spans."""


class StackAnswer(msgspec.Struct, kw_only=True):
    """Where spans hang."""

    now_ns: int
    is_fresh: bool
    """Whether the stacks were taken for this question; else they were recorded before."""
    note: str
    """What to know about them, in a sentence; empty if nothing."""
    asked: int
    """How many processes were asked."""
    open_spans: int
    stacks: list[StackDetail]
    """The newest of each span; a hundred at most."""
    lines: list[HangingLine]
    """Over all of them, the line with the most first."""


class _Target(msgspec.Struct):
    spans: dict[int, int]
    """Open spans, each with the process that has it open."""
    alive: set[int]


async def take_stacks(run: OpenRun, session_id: int | None) -> StackAnswer:
    """Ask where the open spans of a session, or of the whole run, hang."""
    target = await _find_target(run, session_id)
    processes = set(target.spans.values()) & target.alive
    growth = await asyncio.to_thread(LogGrowth, run.path, processes)
    is_asked = await asyncio.to_thread(_ask, run.path, processes)
    stacks = await _wait_for_stacks(growth, target, len(processes)) if is_asked else []
    if stacks:
        return _answer(target, stacks, note="", is_fresh=True, asked=len(processes))
    note = _note(target, processes, is_asked=is_asked)
    stacks = await run.ask(lambda store: _recorded_stacks(store, target))
    return _answer(target, stacks, note=note, is_fresh=False, asked=len(processes) * is_asked)


async def _find_target(run: OpenRun, session_id: int | None) -> _Target:
    """Find what is open, if possible without waiting for the answers the thread is busy with."""
    if run.store.done() and run.is_current():
        return await asyncio.to_thread(_target, run.store.result(), session_id)
    return await run.ask(lambda store: _target(store, session_id))


async def _wait_for_stacks(growth: LogGrowth, target: _Target, asked: int) -> list[StackDetail]:
    """Wait until every process has answered, or the others do not seem to; give the stacks."""
    deadline_s = time.monotonic() + _PATIENCE_S
    stacks: list[StackDetail] = []
    answered: set[bytes] = set()
    while len(answered) < asked and time.monotonic() < deadline_s:
        for batch in await asyncio.to_thread(lambda: list(growth.poll())):
            found = _wanted_stacks(batch, target)
            if found and not answered:
                deadline_s = min(deadline_s, time.monotonic() + _OTHERS_S)
            if found:
                answered.add(batch.process)
                stacks += found
        if len(answered) < asked:
            await asyncio.sleep(_LOOK_EVERY_S)
    return stacks


def _wanted_stacks(batch: Batch, target: _Target) -> list[StackDetail]:
    now_ns = time.time_ns()  # clocks of other hosts may differ from ours, and they were just taken
    return [
        StackDetail(span_id=one.span_id, time_ns=now_ns, task=one.task, frames=one.frames)
        for one in batch.stacks
        if one.span_id in target.spans
    ]


def _target(store: RunStore, session_id: int | None) -> _Target:
    sql = "SELECT span_id, process FROM spans WHERE status = 'open'"
    values: dict[str, Value] = {}
    if session_id is not None:
        sql += " AND (session_id = $id OR span_id = $id)"
        values["id"] = session_id
    found = store.query(sql, **values)
    alive = store.query("SELECT process FROM processes WHERE status = 'alive'")
    spans = zip(found["span_id"].to_pylist(), found["process"].to_pylist(), strict=True)
    return _Target(dict(spans), set(alive["process"].to_pylist()))


def _ask(run: Path, processes: set[int]) -> bool:
    """Touch the files that the processes look at; say whether that was possible."""
    for process in processes:
        path = Path(ask_path(str(run), process.to_bytes(8, "big")))
        try:
            path.parent.mkdir(exist_ok=True)
            path.touch()
        except OSError:  # a run that may only be read
            return False
    return bool(processes)


def _note(target: _Target, processes: set[int], *, is_asked: bool) -> str:
    if not target.spans:
        return "Nothing is open."
    if not processes:
        return "The process is gone; these are the last stacks it recorded."
    if not is_asked:
        return "The run directory cannot be written to, so these are stacks recorded before."
    return "The process did not answer in time; these are stacks it recorded before."


def _answer(
    target: _Target, stacks: list[StackDetail], *, note: str, is_fresh: bool, asked: int
) -> StackAnswer:
    lines: dict[str, HangingLine] = {}
    for stack in stacks:
        line = stack.frames[-1] if stack.frames else "?"
        known = lines.setdefault(line, HangingLine(line=line, count=0, example_id=stack.span_id))
        known.count += 1
    return StackAnswer(
        now_ns=time.time_ns(),
        is_fresh=is_fresh,
        note=note if stacks or not target.spans else f"{note} There are none yet.",
        asked=asked,
        open_spans=len(target.spans),
        stacks=stacks[:_MOST_STACKS],
        lines=sorted(lines.values(), key=lambda each: -each.count)[:_MOST_LINES],
    )


def _recorded_stacks(store: RunStore, target: _Target) -> list[StackDetail]:
    """Give the newest recorded stacks of each span."""
    if not target.spans:
        return []
    chosen = store.dialect.is_in("span_id", "$ids")
    sql = f"""
        SELECT span_id, time_ns, task, frames FROM stacks
        WHERE {chosen} ORDER BY time_ns, span_id, task"""  # noqa: S608
    rows = store.query(sql, ids=list(target.spans)).to_pylist()
    last_ns = {row["span_id"]: row["time_ns"] for row in rows}
    return [
        StackDetail(
            span_id=row["span_id"],
            time_ns=row["time_ns"],
            task=row["task"],
            frames=msgspec.json.decode(row["frames"], type=list[str]),
        )
        for row in rows
        if row["time_ns"] == last_ns[row["span_id"]]
    ]
