"""The producer trace: its events, and its files of JSON lines in shards."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

__all__ = ["ProducerFile", "TraceEvent"]

_SHARD_BYTES: Final = 256 * 1024 * 1024
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
        return asdict(self)


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
        for start in range(0, len(records), 256):
            lines = [_line(event) for event in records[start : start + 256]]
            self._append(b"".join(lines))

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
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]
        self._size += len(data)


def _line(event: TraceEvent) -> bytes:
    fields = {name: _plain(item) for name, item in event.to_dict().items()}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _plain(value: Any) -> Any:  # noqa: ANN401  (whatever a state holds)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return int(value)
    return f"<{type(value).__name__}>"
