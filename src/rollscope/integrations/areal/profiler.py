"""torch's profiler around a scope, and its events among ours. Nothing of torch is loaded before."""

from __future__ import annotations

import json
import os
import tempfile
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument.guard import tell_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollscope.integrations.areal.events import Life

__all__ = ["Profiling", "Tracks", "is_profiling"]

is_profiling: ContextVar[bool] = ContextVar("rollscope-areal-profiling", default=False)

_OWN_METADATA: Final = frozenset(
    ("process_name", "process_sort_index", "process_labels", "thread_name", "thread_sort_index")
)


class Profiling:
    """One use of the profiler, from a scope's start to its end."""

    def __init__(self, options: dict[str, Any] | None) -> None:
        self._profile: Any = None
        try:
            from torch import profiler  # type: ignore[import-not-found,unused-ignore]

            activities = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]
            chosen = {"record_shapes": False, "with_stack": False, **(options or {})}
            self._profile = profiler.profile(activities=activities, **chosen)
            self._profile.__enter__()
        except Exception as error:  # a profiler that fails must not end the step it looks at
            self._profile = None
            tell_once("areal-profiler", "Rollscope cannot use torch's profiler: %s", error)
            return
        is_profiling.set(True)

    def stop(self) -> bool:
        """Stop; false if there is nothing to read."""
        if self._profile is None:
            return False
        is_profiling.set(False)
        try:
            self._profile.__exit__(None, None, None)
        except Exception as error:
            tell_once("areal-profiler", "Rollscope cannot use torch's profiler: %s", error)
            return False
        return True

    def read(self) -> Any:  # noqa: ANN401  (JSON)
        """Give what was profiled; called by the writer."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "profile.json")
            self._profile.export_chrome_trace(path)
            with open(path, "rb") as file:
                return json.load(file)


class Tracks:
    """Places a profiler's events on tracks with negative numbers, one for each of its threads."""

    def __init__(self) -> None:
        self._tracks: dict[tuple[int, int], int] = {}

    def merge(self, profile: Any, base_ns: int, life: Life) -> Iterator[dict[str, Any]]:  # noqa: ANN401
        """Give the profiler's events, the earliest of them moved to `base_ns`."""
        found = profile.get("traceEvents") if isinstance(profile, dict) else None
        events = [event for event in found or () if isinstance(event, dict)]
        times = [event["ts"] for event in events if isinstance(event.get("ts"), (int, float))]
        if not times:
            tell_once("areal-profile", "Rollscope found no times in a profile and leaves it out")
            return
        shift_us = (base_ns - life.origin_ns) / 1000 - min(times)
        streams = _streams(events)
        for event in events:
            place = _place(event)
            if place is None or (event.get("ph") == "M" and event.get("name") in _OWN_METADATA):
                continue
            if place not in self._tracks:
                self._tracks[place] = -1 - len(self._tracks)
                name = streams.get(place, f"[Profiler Thread {place[1]}]")
                yield life.thread((self._tracks[place], name))
            yield life.foreign(event, self._tracks[place], shift_us)


def _place(event: dict[str, Any]) -> tuple[int, int] | None:
    """Give process and thread of an event; None for the profiler's own book-keeping."""
    try:
        pid, tid = int(event.get("pid", -1)), int(event.get("tid", -1))
    except (TypeError, ValueError):
        return None
    return None if pid < 0 else (pid, tid)


def _streams(events: list[dict[str, Any]]) -> dict[tuple[int, int], str]:
    """Find the threads that are streams of a device."""
    streams: dict[tuple[int, int], str] = {}
    for event in events:
        place, args = _place(event), event.get("args")
        if event.get("name") != "thread_name" or place is None or not isinstance(args, dict):
            continue
        words = str(args.get("name", "")).lower().split()
        if len(words) > 1 and words[0] == "stream" and words[1].isdigit():
            streams[place] = f"[Profiler Stream {words[1]}]"
    return streams
