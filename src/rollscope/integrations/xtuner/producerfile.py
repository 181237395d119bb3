"""The producer trace: its events, and where they are kept: in files of JSON lines or in memory."""

from __future__ import annotations

import errno
import json
import math
import os
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

from rollscope.integrations.xtuner.states import Member

__all__ = ["EVENT_FIELDS", "EventMemory", "ProducerFile", "TraceEvent", "event_of"]

_SHARD_BYTES: Final = 256 * 1024 * 1024
_MOST_BITS: Final = 4096
"""Python refuses to write out numbers of several thousand digits."""
_writers = count(1)


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One line: that a stage of a rollout began, ended or failed, or any other event."""

    trace_id: str
    stage: str
    timestamp_s: float
    status: str | None = None
    task_name: str | None = None
    uid: Any = None
    session_uid: Any = None
    train_step: int | None = None
    model_step: int | None = None
    producer_future_step: int | None = None
    produce_batch_id: str | None = None
    worker_rank: int | None = None
    elapsed_s: float | None = None
    error_msg: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the fields in the order of the file."""
        return {name: getattr(self, name) for name in self.__slots__}


EVENT_FIELDS: Final = frozenset(each.name for each in fields(TraceEvent))


def event_of(
    member: Member,
    stage: str,
    at_s: float,
    elapsed_s: float | None,
    error_msg: str | None,
    given: Mapping[str, Any],
) -> TraceEvent:
    """Make an event of a rollout.

    Args:
        member: The rollout.
        stage: What happened to it.
        at_s: When.
        elapsed_s: How long the stage took, if this is its end.
        error_msg: What went wrong.
        given: Fields that count instead; no others than events have.
    """
    event = TraceEvent(
        member.trace_id,
        stage,
        at_s,
        member.status,
        member.task_name,
        member.uid,
        member.session_uid,
        member.train_step,
        member.model_step,
        member.producer_future_step,
        member.produce_batch_id,
        None,
        elapsed_s,
        error_msg,
    )
    return replace(event, **given) if given else event


class EventMemory:
    """The last events of each rollout, up to so many of all."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most, self._most_each = most, most_each
        self._kept: OrderedDict[str, deque[TraceEvent]] = OrderedDict()
        self._held = 0

    def add(self, event: TraceEvent) -> None:
        """Keep an event; where there are too many, the rollout that began first is forgotten."""
        kept = self._kept.get(event.trace_id)
        if kept is None:
            kept = self._kept[event.trace_id] = deque(maxlen=self._most_each)
        self._held += len(kept) != kept.maxlen
        kept.append(event)
        while self._held > self._most and len(self._kept) > 1:
            self._held -= len(self._kept.popitem(last=False)[1])

    def list(self) -> list[TraceEvent]:
        """Give all events, by rollout."""
        return [event for each in list(self._kept.values()) for event in list(each)]


class ProducerFile:
    """The shards that one writer of one process fills, one after the other."""

    def __init__(self, folder: Path, shard_bytes: int = _SHARD_BYTES) -> None:
        self._folder = folder
        self._shard_bytes = shard_bytes
        self._writer = next(_writers)
        self._shard = 0
        self._file: int | None = None
        self._size = 0

    def write(self, records: list[Any]) -> None:
        """Append events."""
        self._append(b"".join(_line(event) for event in records))

    def close(self) -> None:
        """Close the shard; a later event begins another file, named by its own process."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)
            self._shard += 1

    def _append(self, data: bytes) -> None:
        if self._size and self._size + len(data) > self._shard_bytes:
            self.close()
        if self._file is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            name = f"producer_trace_{os.getpid()}_{self._writer:04d}_{self._shard:06d}.jsonl"
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._file, self._size = os.open(self._folder / name, flags, 0o644), 0
        written = os.write(self._file, data)
        self._size += written
        if written < len(data):
            # A full disk. The whole piece is written again later, so nothing of it may stay.
            os.ftruncate(self._file, self._size - written)
            self._size -= written
            raise OSError(errno.ENOSPC, "only a part of the lines could be written")


def _line(event: TraceEvent) -> bytes:
    fields = {name: _plain(item) for name, item in event.to_dict().items()}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _plain(value: Any) -> Any:  # noqa: ANN401  (whatever a state holds)
    kind = type(value)  # an object may lie about its class, or fail to tell it
    if value is None or kind is bool or kind is str:
        return value
    if issubclass(kind, float):
        return float.__float__(value) if math.isfinite(value) else None
    if issubclass(kind, int):
        number = int.__int__(value)
        return number if number.bit_length() <= _MOST_BITS else f"<{kind.__name__}>"
    return str.__str__(value) if issubclass(kind, str) else f"<{kind.__name__}>"
