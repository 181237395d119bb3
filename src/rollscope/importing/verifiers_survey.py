"""Which copy of an episode counts, what its place in a folder says, and what was learned later.

Some 600 bytes are held for an episode with one trace, whatever its contents.
"""

import hashlib
import re
from pathlib import PurePath
from typing import Any, Final, NamedTuple

import msgspec

from rollscope.importing.values import stable_id
from rollscope.importing.verifiers_records import Members, Shape, text_of
from rollscope.instrument.sanitise import clean_text
from rollscope.otlp.aliases import first_number, whole_number

__all__ = [
    "Chosen",
    "Later",
    "Layout",
    "Origin",
    "Survey",
    "digest_of",
    "key_of",
    "read_layout",
    "read_origin",
]

_NAME_BYTES: Final = 1024
_STEP: Final = re.compile(r"step_(\d{1,18})")


class Layout(NamedTuple):
    """What the path of a file says, in either layout of prime-rl's output folder."""

    step: int | None = None
    kind: str = ""
    """`train` or `eval`."""
    is_effective: bool = False


class Origin(NamedTuple):
    """Where an episode belongs."""

    run: str
    kind: str
    key: str
    """Of its task: the same wherever the task is rolled out again."""
    group: str | None
    step: int | None
    is_step_told: bool
    """Whether the record has the step itself."""

    @property
    def task(self) -> tuple[object, ...]:
        """What sets the task apart from others."""
        return ("verifiers", self.run, self.kind, self.group or self.key, self.step)


class Later(msgspec.Struct):
    """What updates said of a trace."""

    consumed_step: int | None = None
    is_effective: bool | None = None
    advantage: float | None = None

    def learn(self, info: Any) -> None:  # noqa: ANN401  (whatever the file holds)
        """Take what is there; the newest wins."""
        if not isinstance(info, dict):
            return
        advantage = first_number(info.get("advantage"))
        self.advantage = self.advantage if advantage is None else advantage
        for kind in ("train", "eval"):
            told = info.get(kind)
            if not isinstance(told, dict):
                continue
            if isinstance(told.get("effective"), bool):
                self.is_effective = told["effective"]
            step = whole_number(told.get("trained_at_step")) if kind == "train" else None
            self.consumed_step = self.consumed_step if step is None else step

    def take(self, newer: "Later") -> None:
        """Take what was learned later still."""
        for name in self.__struct_fields__:
            if (value := getattr(newer, name)) is not None:
                setattr(self, name, value)


class Chosen(msgspec.Struct):
    """What is known of an episode from all its copies."""

    place: int
    """Of the copy that counts."""
    digest: int
    is_effective: bool
    consumed_step: int | None
    step: int | None
    is_step_told: bool
    task: int
    sample: int = 0


class Survey:
    """Looks at all records, then knows what each of them is."""

    def __init__(self) -> None:
        self.later: dict[int, Later] = {}
        """By the id of a trace."""
        self._chosen: dict[int, Chosen] = {}
        self._told: set[int] = set()
        """The traces that stand in episodes."""
        self._bare: set[int] = set()

    def look(self, place: int, path: str, record: Members, raw: bytes) -> list[Members]:
        """Look at a record, and give the traces that it holds."""
        shape = record.shape
        traces: list[Members] = []
        if shape is Shape.UPDATE:
            trace = stable_id("trace", record.text("trace_id"))
            self.later.setdefault(trace, Later()).learn(record.get("info"))
            return traces
        if shape is Shape.EPISODE:
            traces = record.objects("traces")
            self._told.update(stable_id("trace", one.text("id")) for one in traces)
        elif shape is Shape.TRACE:
            traces = [record]
            self._bare.add(stable_id("trace", record.text("id")))
        self._choose(place, read_layout(path), record, raw)
        return traces

    def _choose(self, place: int, layout: Layout, record: Members, raw: bytes) -> None:
        digest = digest_of(raw)
        key = key_of(record, digest)
        origin = read_origin(record, layout)
        task = stable_id(*origin.task)
        step = layout.step if layout.is_effective and layout.kind != "eval" else None
        found = self._chosen.get(key)
        if found is None:
            steps = (step, origin.step, origin.is_step_told)
            self._chosen[key] = Chosen(place, digest, layout.is_effective, *steps, task)
            return
        # The one that was trained on says more; else the newest does.
        if digest != found.digest and layout.is_effective >= found.is_effective:
            found.place, found.digest = place, digest
        if origin.is_step_told and not found.is_step_told:
            found.step, found.is_step_told, found.task = origin.step, True, task
        found.is_effective |= layout.is_effective
        found.consumed_step = found.consumed_step if step is None else step

    def settle(self) -> None:
        """Number the samples of each task, in the order in which they were written."""
        counts: dict[int, int] = {}
        for key in list(self._chosen):
            if key in self._bare and key in self._told:
                del self._chosen[key]
        for chosen in self._chosen.values():
            chosen.sample = counts.get(chosen.task, 0)
            counts[chosen.task] = chosen.sample + 1

    def find(self, record: Members, digest: int) -> Chosen | None:
        """Find what is known of an episode, or of a trace that stands alone."""
        return self._chosen.get(key_of(record, digest))

    def knows_trace(self, record: Members) -> bool:
        """Say whether the trace that an update is about was seen."""
        name = record.text("trace_id")
        trace = stable_id("trace", name)
        return bool(name) and (trace in self._told or trace in self._bare)


def key_of(record: Members, digest: int) -> int:
    """Give the id of the session that a record is; without an id of its own, by what it says."""
    kind = "trace" if record.shape is Shape.TRACE else "episode"
    name = record.text("id")
    return stable_id(kind, name) if name else stable_id(kind, "unnamed", digest)


def digest_of(raw: bytes) -> int:
    """Give a number that tells records apart."""
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest()) >> 1


def read_layout(path: str) -> Layout:
    """Read what the path of a file says."""
    names = [name.split(".")[0] for name in PurePath(path).parts]
    for at in range(len(names) - 1, -1, -1):
        found = _STEP.fullmatch(names[at])
        if found is not None:
            behind = names[at + 1 :]
            kind = next((name for name in behind if name in ("train", "eval")), "")
            return Layout(int(found[1]), kind, "effective" in behind)
    return Layout()


def read_origin(record: Members, layout: Layout) -> Origin:
    """Read where an episode belongs."""
    run = record.inside("run")
    work = run.get("work")
    work = work if isinstance(work, dict) else {}
    task, group = record.inside("task"), record.inside("group")
    key = text_of(task.get("key")) or text_of(task.get("hash"))
    told = whole_number(work.get("step"))
    return Origin(
        run=clean_text(text_of(run.get("id")), _NAME_BYTES),
        kind=(text_of(work.get("type")) or text_of(run.get("type")) or layout.kind)[:_NAME_BYTES],
        key=clean_text(key or text_of(group.get("id")) or record.text("id"), _NAME_BYTES),
        group=clean_text(text_of(group.get("id")), _NAME_BYTES) or None,
        step=layout.step if told is None and not layout.is_effective else told,
        is_step_told=told is not None,
    )
