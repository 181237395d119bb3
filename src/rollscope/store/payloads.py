"""Finding the payloads of some spans without reading all of them each time.

Payload logs can have gigabytes. An index says which frame holds payloads of which spans; it is
built once, goes on from where it ended when logs have grown, and reads only the frames that are
asked for. It keeps eight bytes for each span and frame, and beyond a bound only the range of ids of
a frame: a process counts its ids up, so that ranges still tell most frames apart.
"""

import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.errors import FrameError
from rollscope.model.batch import Payload, decode_batch
from rollscope.model.frames import HEADER_BYTES, MAX_BODY_BYTES, scan_frames
from rollscope.model.rundir import LOG_SUFFIX, PAYLOAD_DIR
from rollscope.model.undecodable import UNDECODABLE

__all__ = ["FoundPayload", "PayloadIndex"]

_MOST_IDS: Final = 4_000_000
"""32 MB; further frames are known by the range of their ids."""
_MOST_CHARS: Final = 64_000_000
_PIECE_BYTES: Final = 16 * 1024 * 1024

_Ids = npt.NDArray[np.uint64]


class FoundPayload(msgspec.Struct, kw_only=True):
    """One payload, on the clock of its process."""

    span_id: int
    process: int
    time_ns: int
    name: str
    text: str
    cut: bool


class _PayloadId(msgspec.Struct, array_like=True):
    """What the index needs of a payload; its text is not even decoded."""

    trace_id: bytes
    span_id: int


class _PayloadIds(msgspec.Struct):
    payloads: list[_PayloadId] = []


class _Frame(msgspec.Struct):
    path: Path
    offset: int
    size: int
    lowest: int
    highest: int
    ids: _Ids | None
    """In order; None where only the range is kept."""

    def may_hold(self, wanted: _Ids) -> bool:
        """Say whether payloads of these spans may be in it; the ids are in order."""
        first = int(np.searchsorted(wanted, np.uint64(self.lowest)))
        last = int(np.searchsorted(wanted, np.uint64(self.highest), side="right"))
        if first == last or self.ids is None:
            return first < last
        inside = wanted[first:last]
        places = np.minimum(np.searchsorted(self.ids, inside), len(self.ids) - 1)
        return bool((self.ids[places] == inside).any())


_decoder = msgspec.msgpack.Decoder(_PayloadIds)


class PayloadIndex:
    """Which frames of a run's payload logs hold payloads of which spans."""

    def __init__(self, run: Path, *, most_ids: int = _MOST_IDS) -> None:
        """Know where to look; nothing is read yet.

        Args:
            run: The run directory.
            most_ids: How many ids to keep; frames beyond that are known by a range.
        """
        self._run = run
        self._most_ids = most_ids
        self._ids = 0
        self._frames: list[_Frame] = []
        self._read_to: dict[Path, int] = {}
        self._lock = threading.Lock()

    @property
    def has_any(self) -> bool:
        """Whether any payload was ever found."""
        return bool(self._frames)

    def refresh(self) -> None:
        """Take in what was added to the logs."""
        with self._lock:
            for path in sorted((self._run / PAYLOAD_DIR).glob(f"*{LOG_SUFFIX}")):
                self._read_on(path)

    def find(
        self, span_ids: Collection[int], *, most_chars: int = _MOST_CHARS
    ) -> list[FoundPayload]:
        """Give the payloads of some spans, in order of time.

        Args:
            span_ids: The spans.
            most_chars: Once this much text is found, no further frame is read.
        """
        wanted = np.array(sorted(span_ids), dtype=np.uint64)
        chosen = frozenset(span_ids)
        with self._lock:
            frames = [frame for frame in self._frames if frame.may_hold(wanted)]
        found: list[FoundPayload] = []
        for frame in frames:
            if sum(len(one.text) for one in found) >= most_chars:
                break
            found += [one for one in _payloads_in(frame) if one.span_id in chosen]
        found.sort(key=lambda one: one.time_ns)
        return found

    def _read_on(self, path: Path) -> None:
        at = self._read_to.get(path, 0)
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                while at < size:
                    read = self._read_piece(file, path, at)
                    if not read:
                        break
                    at += read
        except OSError:
            return  # one log that cannot be read does not hide the others
        finally:
            self._read_to[path] = at

    def _read_piece(self, file: BinaryIO, path: Path, at: int) -> int:
        """Take in the next whole frames; give how many bytes they have, damage included."""
        size = _PIECE_BYTES
        while True:
            file.seek(at)
            data = file.read(size)
            scan = scan_frames(data)
            if scan.end or len(data) < size or size > MAX_BODY_BYTES:
                break
            size *= 4  # a frame that is larger than a piece
        if scan.bodies:
            self._add_frames(path, at, data, scan.bodies)
        return scan.end

    def _add_frames(self, path: Path, at: int, data: bytes, bodies: list[bytes]) -> None:
        position = 0
        for body in bodies:
            # Damage between two frames is stepped over, so bodies are looked for one by one.
            position = data.index(body, position + HEADER_BYTES)
            try:
                held = _decoder.decode(body).payloads
            except UNDECODABLE:
                continue
            finally:
                begin, position = position - HEADER_BYTES, position + len(body)
            if held:
                ids = np.unique(np.array([one.span_id for one in held], dtype=np.uint64))
                self._add(path, at + begin, HEADER_BYTES + len(body), ids)

    def _add(self, path: Path, offset: int, size: int, ids: _Ids) -> None:
        is_kept = self._ids + len(ids) <= self._most_ids
        self._ids += len(ids) if is_kept else 0
        lowest, highest = int(ids[0]), int(ids[-1])
        self._frames.append(_Frame(path, offset, size, lowest, highest, ids if is_kept else None))


def _payloads_in(frame: _Frame) -> Iterator[FoundPayload]:
    try:
        with frame.path.open("rb") as file:
            file.seek(frame.offset)
            batch = decode_batch(file.read(frame.size)[HEADER_BYTES:])
    except (OSError, FrameError):
        return
    for payload in batch.payloads:
        yield _found(payload, batch.process, batch.clock.wall_at(payload.mono_ns))


def _found(payload: Payload, process: bytes, time_ns: int) -> FoundPayload:
    return FoundPayload(
        span_id=payload.span_id,
        process=int.from_bytes(process),
        time_ns=time_ns,
        name=payload.name,
        text=payload.text,
        cut=payload.cut,
    )
