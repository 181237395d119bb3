"""Perf files as one Chrome trace, in which no two events of a track overlap without nesting."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from rollscope.exporting.tracks import Group, Spread
from rollscope.integrations.areal.reading import Skipped, find_files, read_objects
from rollscope.integrations.wholes import whole

if TYPE_CHECKING:
    Event = dict[str, Any]
    Place = tuple[tuple[int, Any], tuple[int, str], tuple[int, Any]]
    """Rank, role and process, in a form that sorts whatever they are."""

__all__ = ["convert_jsonl_to_chrome_trace", "output_for", "write_trace"]

_NAMES: Final = frozenset(
    ("process_name", "process_sort_index", "thread_name", "thread_sort_index", "rollscope_clock")
)


def convert_jsonl_to_chrome_trace(
    input_path: str | os.PathLike[str],
    output_path: str | os.PathLike[str] | None = None,
    *,
    display_time_unit: str = "ms",
    skipped: Skipped | None = None,
) -> dict[str, Any]:
    """Make one Chrome trace of perf files, write it if told where, and give it.

    Args:
        input_path: A file, a folder, or a pattern.
        output_path: Where to write; its folders are made.
        display_time_unit: What viewers show times in.
        skipped: Counts the lines that were left out.

    Raises:
        FileNotFoundError: There is no file.
    """
    gathered = _Gathered()
    for path in find_files(input_path):
        gathered.read(path, Skipped() if skipped is None else skipped)
    trace: dict[str, Any] = {"traceEvents": gathered.events(), "displayTimeUnit": display_time_unit}
    if gathered.base_ns is not None:
        trace["baseTimeNanoseconds"] = gathered.base_ns
    if output_path is not None:
        destination = Path(output_path)
        destination.parent.mkdir(parents=True, exist_ok=True)
        with destination.open("w", encoding="utf-8") as file:
            write_trace(trace, file)
    return trace


def write_trace(trace: dict[str, Any], file: IO[str]) -> None:
    """Write a trace, event by event."""
    rest = {key: value for key, value in trace.items() if key != "traceEvents"}
    file.write(json.dumps(rest, ensure_ascii=False)[:-1] + ', "traceEvents": [\n')
    for number, event in enumerate(trace["traceEvents"]):
        file.write((",\n" if number else "") + json.dumps(event, ensure_ascii=False))
    file.write("\n]}\n")


def output_for(input_path: str) -> Path:
    """Say where the trace of an input goes if nothing else is said.

    Raises:
        FileNotFoundError: There is no file.
    """
    path = Path(input_path)
    if path.is_dir():
        return path / "traces.json"
    files = find_files(input_path)
    if len(files) > 1:
        return Path(os.path.commonpath([file.parent.absolute() for file in files])) / "traces.json"
    return files[0].with_name(f"{files[0].stem}.json")


class _Gathered:
    """The events of all files, with their places."""

    def __init__(self) -> None:
        self._events: list[tuple[Place, Event, int | None]] = []
        """Place, event, and the wall time of its clock's zero."""
        self._threads: dict[tuple[Place, Any], str] = {}

    @property
    def base_ns(self) -> int | None:
        """The earliest zero of a clock that is known."""
        return min((zero for *_, zero in self._events if zero is not None), default=None)

    def read(self, path: Path, skipped: Skipped) -> None:
        """Read a file; metadata without a rank goes where its process's other events go."""
        events = []
        for event in read_objects(path, skipped):
            if isinstance(event.get("ph"), str):
                events.append(event)
            else:
                skipped.other += 1
        places: dict[Any, Place] = {}
        for event in events:
            if _has_rank(event):
                places.setdefault(str(event.get("pid")), _place(event))
        zeros: dict[Place, int] = {}
        for event in events:
            place = places.get(str(event.get("pid"))) if event["ph"] == "M" else None
            place = place or _place(event)
            if event["ph"] == "M" and event.get("name") in _NAMES:
                self._note(place, event, zeros)
            else:
                self._events.append((place, event, zeros.get(place)))

    def _note(self, place: Place, event: Event, zeros: dict[Place, int]) -> None:
        args = event.get("args")
        if not isinstance(args, dict):
            return
        if event["name"] == "thread_name" and args.get("name"):
            self._threads[place, _key(event.get("tid"))] = str(args["name"])
        elif event["name"] == "rollscope_clock":
            zero = whole(args.get("unix_ns"))
            if zero is not None:
                zeros[place] = zero

    def events(self) -> list[Event]:
        """Give metadata first, then the events by time, in their new places."""
        base_ns = self.base_ns
        tracks: dict[Place, dict[Any, list[Event]]] = defaultdict(lambda: defaultdict(list))
        for place, event, zero in self._events:
            if zero is not None and base_ns is not None and _number(event.get("ts")) is not None:
                event["ts"] = event["ts"] + (zero - base_ns) / 1000
            tracks[place][_key(event.get("tid"))].append(event)
        self._renumber_flows()
        metadata: list[Event] = []
        for pid, place in enumerate(sorted(tracks), 1):
            metadata += self._lay_out(pid, place, tracks[place])
        ordered = [event for _, event, _ in self._events]
        ordered.sort(key=lambda event: (_time(event), -_length(event)))
        return metadata + ordered

    def _lay_out(self, pid: int, place: Place, tracks: dict[Any, list[Event]]) -> list[Event]:
        """Number a process's tracks, overlapping events on tracks of their own, and name all."""
        rank, role, process = place[0][1], place[1][1], place[2][1]
        label = f"Rank {rank}, Process {process}"
        where: Event = {"rank": rank} | ({"role": role} if role else {})
        name = f"[{role}] {label}" if role else f"[{label}]"
        metadata = [
            _meta("process_name", pid, None, {"name": name, **where}),
            _meta("process_sort_index", pid, None, {"sort_index": pid, **where}),
        ]
        next_tid = pid
        for tid in sorted(tracks):
            thread = self._threads.get(
                (place, tid), f"[Thread {-tid[1] if tid[0] == 1 else tid[1]}]"
            )
            for number, events in enumerate(_without_overlap(tracks[tid]), 1):
                shown = thread if number == 1 else f"{thread} #{number}"
                metadata.append(_meta("thread_name", pid, next_tid, {"name": shown, **where}))
                sort = {"sort_index": next_tid, **where}
                metadata.append(_meta("thread_sort_index", pid, next_tid, sort))
                for event in events:
                    event["pid"], event["tid"] = pid, next_tid
                next_tid += 1
        return metadata

    def _renumber_flows(self) -> None:
        """Keep the flows of two processes from getting one number."""
        numbers: dict[tuple[Place, str], int] = {}
        for place, event, _ in self._events:
            args = event.get("args")
            if event["ph"] in ("s", "t", "f") and "id" in event:
                found = numbers.setdefault((place, str(event["id"])), len(numbers) + 1)
                event["id"] = found
            if isinstance(args, dict) and "correlation" in args:
                found = numbers.setdefault((place, str(args["correlation"])), len(numbers) + 1)
                args["correlation"] = found


def _without_overlap(events: list[Event]) -> list[list[Event]]:
    """Spread events over as few tracks as it takes for those of each to nest."""
    tracks: list[list[Event]] = [[]]
    group = Group(nests_freely=True)
    ordered = sorted(events, key=lambda event: (_time(event), -_length(event)))
    for number, event in enumerate(ordered):
        if event["ph"] != "X":
            tracks[0].append(event)
            continue
        start = int(_time(event) * 1000)
        track = group.place(Spread(start, start + int(_length(event) * 1000), number, None, None))
        while len(tracks) <= track:
            tracks.append([])
        tracks[track].append(event)
    return tracks


def _meta(name: str, pid: int, tid: int | None, args: Event) -> Event:
    thread = {} if tid is None else {"tid": tid}
    return {"name": name, "ph": "M", "pid": pid, **thread, "args": args}


def _has_rank(event: Event) -> bool:
    args = event.get("args")
    return isinstance(args, dict) and args.get("rank") is not None


def _place(event: Event) -> Place:
    args = event.get("args")
    given = args if isinstance(args, dict) else {}
    rank, role = given.get("rank"), given.get("role")
    number = whole(rank)
    own = (0, number) if number is not None else _key(rank)
    shown = (0, role.strip()) if isinstance(role, str) and role.strip() else (1, "")
    return own, shown, _key(event.get("pid"))


def _key(value: object) -> tuple[int, Any]:
    """Sort numbers from 0 on first, then those below as they come, then all else."""
    number = whole(value)
    if number is None:
        return 2, str(value)
    return (0, number) if number >= 0 else (1, -number)


def _time(event: Event) -> float:
    return _number(event.get("ts")) or 0


def _length(event: Event) -> float:
    return max(_number(event.get("dur")) or 0, 0)


def _number(value: object) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
