"""Perf events in AReaL's shape, made of the rows that a tracer keeps."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rollscope.instrument.clock import SystemClock, read_both

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Instant", "Life", "SpanRow", "ThreadName"]

SpanRow = tuple[str, int, int, int, str, dict[str, Any], str | None, Any]
"""name, start, end, thread, category, args, exception, step."""
Instant = tuple[str, int, int, str, dict[str, Any], Any]
"""name, time, thread, category, args, step."""
ThreadName = tuple[int, str]


class Life:
    """One life of a tracer: its clock's zero, its process, what all of its events carry."""

    def __init__(self, rank: int, role: str | None, run: str) -> None:
        self.origin_ns, self.wall_ns = read_both(SystemClock())
        self.pid = os.getpid()
        self._run = run
        self._place: dict[str, Any] = {"rank": rank}
        if role is not None:
            self._place["role"] = role
        self._label = f"Rank {rank}, Process" if role is None else f"[{role}] Rank {rank}, Process"

    def head(self) -> Iterator[dict[str, Any]]:
        """Give the events that a life begins with."""
        clock = {
            "unix_ns": self.wall_ns,
            "monotonic_ns": self.origin_ns,
            "host": os.uname().nodename,
            "pid": self.pid,
            "run_id": self._run,
        }
        yield self._meta("rollscope_clock", clock)
        yield self._meta("process_name", {"name": self._label})
        yield self._meta("process_sort_index", {"sort_index": self._place["rank"]})

    def thread(self, row: ThreadName) -> dict[str, Any]:
        """Name a thread."""
        return self._meta("thread_name", {"name": row[1]}, row[0])

    def span(self, row: SpanRow) -> dict[str, Any]:
        """Give a complete event; viewers drop those without a length, so it has one."""
        name, start, end, tid, category, args, exception, step = row
        if exception is not None:
            args.setdefault("exception", exception)
        return {
            "name": name,
            "ph": "X",
            "ts": self._at(start),
            "dur": max((end - start) // 1000, 1),
            "pid": self.pid,
            "tid": tid,
            "cat": category,
            "args": self._complete(args, step),
        }

    def instant(self, row: Instant) -> dict[str, Any]:
        """Give an instant."""
        name, at, tid, category, args, step = row
        return {
            "name": name,
            "ph": "i",
            "ts": self._at(at),
            "pid": self.pid,
            "tid": tid,
            "cat": category,
            "args": self._complete(args, step),
            "s": "t",
        }

    def foreign(self, event: dict[str, Any], tid: int, shift_us: float) -> dict[str, Any]:
        """Take an event of a profiler over, on a track of ours."""
        args = event.get("args")
        merged = {**event, "pid": self.pid, "tid": tid}
        merged["args"] = {**(args if isinstance(args, dict) else {}), **self._place}
        if "ts" in event:
            merged["ts"] = event["ts"] + shift_us
        return merged

    def _at(self, mono_ns: int) -> int:
        return max((mono_ns - self.origin_ns) // 1000, 0)

    def _complete(self, args: dict[str, Any], step: Any) -> dict[str, Any]:  # noqa: ANN401
        if step is not None:
            args.setdefault("global_step", step)
        for key, value in self._place.items():
            args.setdefault(key, value)
        return args

    def _meta(self, name: str, args: dict[str, Any], tid: int | None = None) -> dict[str, Any]:
        thread = {} if tid is None else {"tid": tid}
        return {"name": name, "ph": "M", "pid": self.pid, **thread, "args": {**args, **self._place}}
