"""Following one log: from a growing file of frames to batches, through damage and torn ends."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from rollscope.errors import FrameError, NotARunError, UnknownSchema
from rollscope.model.batch import Batch, decode_batch
from rollscope.model.frames import HEADER_BYTES, MARKER, scan_frames
from rollscope.store.collecting import no_cycles

__all__ = ["BatchFollower"]

_READ_BYTES: Final = 8 * 1024 * 1024
_MARKER_TEXT: Final = MARKER.decode()


class BatchFollower:
    """Reads a log as far as it goes, and on from there at the next `poll`."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.damaged_bytes = 0
        """Bytes that were no whole frame, the torn end apart."""
        self.torn_bytes = 0
        """Bytes of a frame that its process did not live to finish."""
        self.problems: list[str] = []
        """What is wrong with the file, in sentences."""
        self.has_more = False
        """Whether the last call stopped at its limit and not at the end of the file."""
        self._read_to = offset
        self._rest = b""

    @property
    def waiting_bytes(self) -> int:
        """Bytes at the end that are no whole frame, yet or for good."""
        return len(self._rest)

    @property
    def offset(self) -> int:
        """Up to where the file has been taken in; what follows is not a whole frame yet."""
        return self._read_to - len(self._rest)

    def poll(self, *, final: bool = False, max_bytes: int | None = None) -> Iterator[Batch]:
        """Read what was added since the last call.

        Args:
            final: Nothing will be added any more, so an incomplete frame at the end is damage.
            max_bytes: Stop after about as much; the next call goes on from there.

        Raises:
            NotARunError: The file is no log at all.
        """
        taken = 0
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            if size < self.offset:
                self.tell(f"{self.path} has shrunk from {self._read_to} to {size} bytes")
                self._read_to, self._rest = size, b""
            self._check_rest(file)
            file.seek(self._read_to)
            while max_bytes is None or taken < max_bytes:
                data = file.read(_READ_BYTES if max_bytes is None else min(_READ_BYTES, max_bytes))
                if not data:
                    break
                if self._read_to == 0 and not _looks_like_log(data):
                    raise NotARunError(_describe_foreign(self.path, data))
                taken += len(data)
                self._read_to += len(data)
                yield from self._take(self._rest + data, final=False)
        self.has_more = self._read_to < size
        if final and self._rest and not self.has_more:
            yield from self._take_torn_end()

    def _check_rest(self, file: BinaryIO) -> None:
        """Read a torn end again if a receiver has cut it off, and maybe written on, meanwhile."""
        if self._rest:
            file.seek(self.offset)
            if file.read(len(self._rest)) != self._rest:
                self._read_to, self._rest = self.offset, b""

    def step_over(self) -> Iterator[Batch]:
        """Read what lies behind damage at the end; a frame that is merely not finished stays."""
        if self._rest and scan_frames(self._rest, final=True).bodies:
            yield from self._take(self._rest, final=True)

    def _take_torn_end(self) -> Iterator[Batch]:
        """Give up on the frame at the end, unless it is damage with whole frames behind it."""
        rest, self._rest = self._rest, b""
        if scan_frames(rest, final=True).bodies:
            yield from self._take(rest, final=True)
        else:
            self.torn_bytes += len(rest)

    def _take(self, data: bytes, *, final: bool) -> Iterator[Batch]:
        scan = scan_frames(data, final=final)
        self._rest = data[scan.end :]
        if scan.damaged:
            self.damaged_bytes += scan.damaged
            self.tell(f"{self.path} is damaged; whole frames around the damage are read")
        with no_cycles():
            batches = [batch for body in scan.bodies if (batch := self._decode(body))]
        yield from batches

    def _decode(self, body: bytes) -> Batch | None:
        try:
            return decode_batch(body)
        except UnknownSchema as error:
            self.tell(f"{self.path}: {error}")
        except FrameError as error:
            self.tell_unreadable(HEADER_BYTES + len(body), error)
        return None

    def tell_unreadable(self, size: int, error: FrameError) -> None:
        """Count a frame that is whole but makes no sense."""
        self.damaged_bytes += size
        self.tell(f"{self.path}: {error}")

    def tell_foreign(self) -> None:
        """Say that the file holds frames of a second process."""
        self.tell(f"{self.path} holds frames of another process, which are ignored")

    def tell(self, problem: str) -> None:
        """Note what is wrong with the file, once."""
        if problem not in self.problems:
            self.problems.append(problem)


def _looks_like_log(data: bytes) -> bool:
    return data.startswith(MARKER) or MARKER.startswith(data) or MARKER in data


def _describe_foreign(path: Path, data: bytes) -> str:
    return (
        f"{path} is not a Rollscope log: it begins with {data[:12]!r} and has no {_MARKER_TEXT!r} "
        "frame; give a run directory, or a .rsl file from its log/ folder"
    )
