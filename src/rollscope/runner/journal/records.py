"""The records of a journal, how they stand in the file, and what they add up to.

Each record is its length, the CRC-32 of its bytes, and the bytes. Reading ends at the first one
that is not whole, since what follows it was never synced.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from rollscope.runner.state import RunnerState, SavedInput, SavedOutcome

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

__all__ = [
    "Acked",
    "Attempted",
    "Base",
    "Checkpointed",
    "Delivered",
    "Ended",
    "Record",
    "Submitted",
    "Versioned",
    "fold_bytes",
    "fold_records",
    "may_be_torn",
    "pack_record",
    "read_journal",
    "read_records",
    "records_of",
]

_HEADER: Final = struct.Struct("<II")


class Base(msgspec.Struct, array_like=True, tag="b"):
    """Where a file begins that does not hold everything from the start."""

    next_id: int
    acked: int
    version: int | None


class Submitted(msgspec.Struct, array_like=True, tag="s"):
    """A task or group was accepted."""

    input: SavedInput
    next_id: int


class Attempted(msgspec.Struct, array_like=True, tag="a"):
    """A task has to begin again."""

    id: int
    attempts: int


class Checkpointed(msgspec.Struct, array_like=True, tag="c"):
    """A task left something to go on from."""

    id: int
    partial: bytes


class Ended(msgspec.Struct, array_like=True, tag="e"):
    """A task or group has its outcome."""

    outcome: SavedOutcome


class Delivered(msgspec.Struct, array_like=True, tag="d"):
    """Outcomes were handed over; until they are acknowledged they are needed all the same."""

    ids: list[int]


class Acked(msgspec.Struct, array_like=True, tag="k"):
    """Outcomes are done with."""

    ids: list[int]


class Versioned(msgspec.Struct, array_like=True, tag="v"):
    """The weights were updated."""

    version: int


Record = Base | Submitted | Attempted | Checkpointed | Ended | Delivered | Acked | Versioned

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Record)


def pack_record(record: Record) -> bytes:
    """Encode a record as it stands in the file."""
    body = _encoder.encode(record)
    return _HEADER.pack(len(body), zlib.crc32(body)) + body


def read_records(data: bytes) -> Iterator[tuple[Record, int]]:
    """Give the whole records from the beginning on, each with where it ends."""
    position = 0
    while position + _HEADER.size <= len(data):
        length, crc = _HEADER.unpack_from(data, position)
        start, end = position + _HEADER.size, position + _HEADER.size + length
        body = data[start:end]
        if not length or len(body) < length or zlib.crc32(body) != crc:
            return
        yield _decoder.decode(body), end
        position = end


def may_be_torn(data: bytes) -> bool:
    """Say whether bytes without a whole record may have become the first one.

    A record is a list whose first element is a text of one character; of a block that never
    reached the disk there are zeros.
    """
    return data[_HEADER.size + 1 : _HEADER.size + 2] in (b"", b"\xa1", b"\0")


class _Fold:
    """Follows records, and knows what is still needed."""

    def __init__(self) -> None:
        self.state = RunnerState()
        self.inputs: dict[int, SavedInput] = {}
        self.outcomes: dict[int, SavedOutcome] = {}

    def add(self, record: Record) -> None:
        state, inputs = self.state, self.inputs
        match record:
            case Submitted(given, next_id):
                inputs[given.id] = given
                self.outcomes.pop(given.id, None)  # one that was taken back to run again
                state.next_id = max(state.next_id, next_id)
            case Attempted(task_id, attempts):
                if task_id in inputs:
                    inputs[task_id].attempts = attempts
            case Checkpointed(task_id, partial):
                if task_id in inputs:
                    inputs[task_id].partial = partial
            case Ended(outcome):
                inputs.pop(outcome.id, None)
                self.outcomes[outcome.id] = outcome
                state.clock_ns = max(state.clock_ns, outcome.finished_ns)
                highest = max((one.id for one in outcome.members or [outcome]), default=0)
                state.next_id = max(state.next_id, highest + 1, outcome.id + 1)
            case Acked(ids):
                for task_id in ids:
                    self._ack(task_id)
            case Versioned(version):
                state.version = version
            case Base(next_id, acked, version):
                state.next_id, state.acked, state.version = next_id, acked, version
            case Delivered():
                pass

    def _ack(self, task_id: int) -> None:
        outcome, given = self.outcomes.pop(task_id, None), self.inputs.pop(task_id, None)
        if outcome is not None:
            self.state.acked += outcome.weight
        elif given is not None:
            self.state.acked += len(given.calls)

    def result(self) -> RunnerState:
        self.state.inputs = list(self.inputs.values())
        self.state.outcomes = list(self.outcomes.values())
        return self.state


def fold_records(records: Iterable[Record]) -> RunnerState:
    """Give what is left to be done after these records."""
    fold = _Fold()
    for record in records:
        fold.add(record)
    return fold.result()


def records_of(state: RunnerState) -> Iterator[Record]:
    """Give the fewest records that lead to a state."""
    yield Base(state.next_id, state.acked, state.version)
    for outcome in state.outcomes:
        yield Ended(outcome)
    for given in state.inputs:
        yield Submitted(given, state.next_id)


def read_journal(path: str | os.PathLike[str]) -> RunnerState:
    """Give what a journal says is left to be done; the file is not touched."""
    return fold_bytes(Path(path).read_bytes())[0]


def fold_bytes(data: bytes) -> tuple[RunnerState, int]:
    """Give what is left to be done after these bytes, and where their last whole record ends."""
    fold, end = _Fold(), 0
    for record, reached in read_records(data):
        fold.add(record)
        end = reached
    return fold.result(), end
