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
from rollscope.server.opened import OpenRun
from rollscope.store.dialect import Value
from rollscope.store.embedded import RunStore

__all__ = ["HangingLine", "StackAnswer", "take_stacks"]

_PATIENCE_S: Final = 1.5
_OTHERS_S: Final = 0.3
"""How long the other processes have when one has answered."""
_LOOK_EVERY_S: Final = 0.02
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
    newest_ns: int = 0
    rows: int = 0
    """How many stacks were in memory at the last look."""


async def take_stacks(run: OpenRun, session_id: int | None) -> StackAnswer:
    """Ask where the open spans of a session, or of the whole run, hang."""
    target = await run.ask(lambda store: _target(store, session_id))
    processes = set(target.spans.values()) & target.alive
    is_asked = await asyncio.to_thread(_ask, run.path, processes)
    is_fresh = is_asked and await _wait_for_answers(run, target, len(processes))
    note = _note(target, processes, is_asked=is_asked, is_fresh=is_fresh)
    since_ns = target.newest_ns if is_fresh else None
    return await run.ask(
        lambda store: _answer(store, target, since_ns, note, asked=len(processes) * is_asked)
    )


async def _wait_for_answers(run: OpenRun, target: _Target, asked: int) -> bool:
    """Wait until every process has answered, or the others do not seem to; say whether any has."""
    deadline_s = time.monotonic() + _PATIENCE_S
    answered = 0
    while answered < asked and time.monotonic() < deadline_s:
        found = await run.ask(lambda store: _count_answers(store, target))
        if found and not answered:
            deadline_s = min(deadline_s, time.monotonic() + _OTHERS_S)
        answered = max(answered, found)
        if answered < asked:
            await asyncio.sleep(_LOOK_EVERY_S)
    return answered > 0


def _target(store: RunStore, session_id: int | None) -> _Target:
    sql = "SELECT span_id, process FROM spans WHERE status = 'open'"
    values: dict[str, Value] = {}
    if session_id is not None:
        sql += " AND (session_id = $id OR span_id = $id)"
        values["id"] = session_id
    rows = store.query(sql, **values).to_pylist()
    alive = store.query("SELECT process FROM processes WHERE status = 'alive'")
    spans = {row["span_id"]: row["process"] for row in rows}
    target = _Target(spans, set(alive["process"].to_pylist()), rows=_rows(store))
    target.newest_ns = _newest(store, target)
    return target


def _newest(store: RunStore, target: _Target) -> int:
    if not target.spans:
        return 0
    chosen = store.dialect.is_in("span_id", "$ids")
    sql = f"SELECT coalesce(max(time_ns), 0) AS newest FROM stacks WHERE {chosen}"  # noqa: S608
    return int(store.query(sql, ids=list(target.spans))["newest"][0].as_py())


def _count_answers(store: RunStore, target: _Target) -> int:
    """Say how many processes have written stacks since they were asked."""
    # A whole refresh takes long with thousands of open spans, so it waits for something to come.
    store.sealer.poll()
    rows = _rows(store)
    if rows == target.rows:
        return 0
    target.rows = rows
    store.refresh()
    chosen = store.dialect.is_in("span_id", "$ids")
    sql = f"""
        SELECT count(DISTINCT process) AS answered FROM stacks
        WHERE {chosen} AND time_ns > $since"""  # noqa: S608
    found = store.query(sql, ids=list(target.spans), since=target.newest_ns)
    return int(found["answered"][0].as_py())


def _rows(store: RunStore) -> int:
    sealer = store.sealer
    return sum(table.num_rows for table in (*sealer.frozen["stacks"], *sealer.tail["stacks"]))


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


def _note(target: _Target, processes: set[int], *, is_asked: bool, is_fresh: bool) -> str:
    if not target.spans:
        return "Nothing is open."
    if is_fresh:
        return ""
    if not processes:
        return "The process is gone; these are the last stacks it recorded."
    if not is_asked:
        return "The run directory cannot be written to, so these are stacks recorded before."
    return "The process did not answer in time; these are stacks it recorded before."


def _answer(
    store: RunStore, target: _Target, since_ns: int | None, note: str, *, asked: int
) -> StackAnswer:
    stacks = _newest_stacks(store, target, since_ns)
    lines: dict[str, HangingLine] = {}
    for stack in stacks:
        line = stack.frames[-1] if stack.frames else "?"
        known = lines.setdefault(line, HangingLine(line=line, count=0, example_id=stack.span_id))
        known.count += 1
    return StackAnswer(
        now_ns=store.now_ns,
        is_fresh=since_ns is not None,
        note=note if stacks or not target.spans else f"{note} There are none yet.",
        asked=asked,
        open_spans=len(target.spans),
        stacks=stacks[:_MOST_STACKS],
        lines=sorted(lines.values(), key=lambda each: -each.count)[:_MOST_LINES],
    )


def _newest_stacks(store: RunStore, target: _Target, since_ns: int | None) -> list[StackDetail]:
    if not target.spans:
        return []
    chosen = store.dialect.is_in("span_id", "$ids")
    sql = f"""
        SELECT span_id, time_ns, task, frames FROM stacks
        WHERE {chosen} AND time_ns > $since ORDER BY time_ns, span_id, task"""  # noqa: S608
    rows = store.query(sql, ids=list(target.spans), since=since_ns or 0).to_pylist()
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
