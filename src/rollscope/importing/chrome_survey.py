"""What a look at a Chrome trace tells before it is read: who wrote it, and who is in it."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from rollscope.importing.chrome_events import Key, key_of, name_of
from rollscope.importing.chrome_writers import RAY_TASKS, Writer, writer_of
from rollscope.importing.formats import Place
from rollscope.importing.values import decode_object, micros_to_ns
from rollscope.importing.writing import Domain
from rollscope.model.undecodable import UNDECODABLE

__all__ = ["EPOCH_NS", "Survey", "Thread", "TraceFile", "TraceProcess"]

EPOCH_NS: Final = 10**18
"""Larger times count from 1970, smaller ones from the start of whatever wrote them."""
_LATEST_NS: Final = 2**61
_MOST_PROCESSES: Final = 1000
_MOST_THREADS: Final = 100_000
_MOST_STEPS: Final = 100_000
_STEP: Final = b"ProfilerStep#"
_RAY_THREADS: Final = ("worker:", "driver:")
_OTHERS: Final = "other processes"


class Thread(msgspec.Struct):
    """One track."""

    name: str = ""
    last_ns: int = -_LATEST_NS
    is_unsorted: bool = False
    """Whether beginnings and ends do not stand in the order of their times."""


class TraceProcess(msgspec.Struct):
    """One process, as far as a file tells of it."""

    pid: Key
    name: str = ""
    labels: str = ""
    order: int = 0
    epochs: int = 0
    """Events whose times count from 1970."""
    others: int = 0
    first_ns: int = _LATEST_NS
    """The first such time."""
    threads: dict[Key, Thread] = {}
    domain: Domain | None = None
    title: str = ""

    @property
    def is_wall(self) -> bool:
        """Whether its clock is the wall's."""
        return self.epochs > 0 and self.epochs >= self.others


class TraceFile(msgspec.Struct):
    """One file."""

    place: Place
    """Of its first event."""
    outline: Mapping[str, Any] = {}
    """What stands around the events; whole once all of them were looked at."""
    processes: dict[Key, TraceProcess] = {}
    tasks: int = 0
    """What may be tasks of Ray."""
    has_colours: bool = False
    has_nodes: bool = False
    steps: list[tuple[int, int, int]] = []
    """Of torch's profiler: start, end, number."""
    writer: Writer = Writer.OTHER
    rank: int | None = None
    base_ns: int | None = None
    """Where its zero is, if it says."""

    def process(self, pid: Key) -> TraceProcess:
        """Give a process; beyond the first thousand, one that stands for all."""
        found = self.processes.get(pid)
        if found is None:
            if len(self.processes) >= _MOST_PROCESSES:
                return self.processes.setdefault(_OTHERS, TraceProcess(_OTHERS, _OTHERS))
            found = self.processes[pid] = TraceProcess(pid)
        return found


_PLAIN: Final = frozenset((int, str, type(None)))
_NOBODY: Final[tuple[TraceProcess | None, Thread | None]] = (None, None)


class _Brief(msgspec.Struct):
    """What a look takes of an event."""

    ph: Any = None
    name: Any = None
    cat: Any = None
    pid: Any = None
    tid: Any = None
    ts: Any = None
    cname: Any = None


_decode_brief = msgspec.json.Decoder(_Brief).decode


class Survey:
    """Looks at every event once."""

    def __init__(self) -> None:
        self.files: dict[int, TraceFile] = {}
        self._threads = 0
        self._known: dict[object, tuple[TraceProcess | None, Thread | None]] = {}

    def look(self, place: Place, raw: bytes) -> str:
        """Look at an event; give its phase, which is empty if it is none."""
        event = _brief(raw)
        if event is None:
            return ""
        file = self.files.get(place.file_number)
        if file is None:
            file = self.files[place.file_number] = TraceFile(place, place.outline)
        file.outline = place.outline
        known = event.pid.__class__ in _PLAIN and event.tid.__class__ in _PLAIN
        key = (place.file_number, event.pid, event.tid) if known else None
        process, thread = self._known.get(key, _NOBODY)
        if process is None:
            process = file.process(key_of(event.pid))
            thread = self._thread(process, key_of(event.tid)) if event.ph != "M" else None
            if thread is not None and key is not None:
                self._known[key] = (process, thread)
        if event.ph == "M":
            self._learn(file, process, event, raw)
            return "M"
        time_ns = micros_to_ns(event.ts)
        if time_ns is not None and -_LATEST_NS < time_ns < _LATEST_NS:
            if time_ns > EPOCH_NS:
                process.epochs += 1
                process.first_ns = min(process.first_ns, time_ns)
            else:
                process.others += 1
            if thread is not None and event.ph in ("B", "E"):
                thread.is_unsorted |= time_ns < thread.last_ns
                thread.last_ns = time_ns
        if event.cname is not None:
            file.has_colours = True
            file.tasks += isinstance(event.cat, str) and event.cat.startswith("task::")
            file.has_nodes |= isinstance(event.tid, str) and event.tid.startswith(_RAY_THREADS)
        if _STEP in raw and len(file.steps) < _MOST_STEPS:
            _learn_step(file, raw)
        return event.ph if isinstance(event.ph, str) else ""

    def is_ours(self, place: Place) -> bool:
        """Say whether a file is an export of ours, which names itself before its events."""
        return writer_of(place.outline, is_ray=False).writer == Writer.ROLLSCOPE

    def _thread(self, process: TraceProcess, tid: Key) -> Thread | None:
        found = process.threads.get(tid)
        if found is None and self._threads < _MOST_THREADS:
            found = process.threads[tid] = Thread()
            self._threads += 1
        return found

    def _learn(self, file: TraceFile, process: TraceProcess, event: _Brief, raw: bytes) -> None:
        read = decode_object(raw)
        args = read[0].get("args") if read is not None else None
        if not isinstance(args, dict):
            return
        if event.name == "process_name":
            process.name = name_of(args.get("name"))
            file.has_nodes |= process.name.startswith("Node ")
        elif event.name == "process_labels":
            process.labels = name_of(args.get("labels"))
        elif event.name == "process_sort_index":
            order = key_of(args.get("sort_index"))
            process.order = order if isinstance(order, int) else 0
        elif event.name == "thread_name":
            thread = self._thread(process, key_of(event.tid))
            if thread is not None:
                thread.name = name_of(args.get("name")).strip()

    def settle(self) -> None:
        """Say who wrote each file, and where its clock stands."""
        self._known.clear()
        for file in self.files.values():
            is_ray = file.has_colours and file.has_nodes
            file.writer, file.rank, file.base_ns, note = writer_of(file.outline, is_ray=is_ray)
            if file.writer == Writer.RAY and file.tasks >= RAY_TASKS:
                note = f"Ray lists {RAY_TASKS:,} tasks at most: may be incomplete"
            file.place.file.note = file.place.file.note or note
            file.steps.sort()


def _brief(raw: bytes) -> _Brief | None:
    try:
        return _decode_brief(raw)
    except UNDECODABLE:
        read = decode_object(raw)
    if read is None:
        return None
    event = read[0]
    return _Brief(*(event.get(name) for name in _Brief.__struct_fields__))


def _learn_step(file: TraceFile, raw: bytes) -> None:
    """Note a step of torch's profiler; its copy on the GPU is another matter."""
    read = decode_object(raw)
    event: dict[str, Any] = read[0] if read is not None else {}
    name, start_ns = event.get("name"), micros_to_ns(event.get("ts"))
    length_ns = micros_to_ns(event.get("dur"))
    if not isinstance(name, str) or start_ns is None or length_ns is None:
        return
    number = name.removeprefix(_STEP.decode())
    is_step = event.get("ph") == "X" and number != name and number.isdecimal() and len(number) < 18
    if is_step and not str(event.get("cat")).startswith("gpu_"):
        file.steps.append((start_ns, start_ns + length_ns, int(number)))
