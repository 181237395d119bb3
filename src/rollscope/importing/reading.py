"""Reading files as records, one after the other, in bounded memory."""

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import IO, Any, Final, NamedTuple

from rollscope.importing.documents import Outline, mended, read_elements
from rollscope.importing.sources import Source
from rollscope.importing.values import decode_object

__all__ = ["MOST_LINE_BYTES", "Line", "Reader", "read_head"]

MOST_LINE_BYTES: Final = 64 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_CHUNK: Final = 1 << 20
_TOO_LONG: Final = "bad: longer than 64 MiB"
_DAMAGE: Final = (OSError, EOFError, ValueError, zlib.error)


class Line(NamedTuple):
    """One record as it stands in a file."""

    number: int
    raw: bytes
    trouble: str = ""
    """Why it can surely not be read; else empty."""


class Reader:
    """Reads one file, as lines or as the elements of one document."""

    def __init__(self, source: Source) -> None:
        """Open the file.

        Raises:
            OSError: It cannot be opened.
        """
        self._source = source
        self._under = open(source.path, "rb")  # noqa: SIM115  (closed by `close`)
        self._file: io.BufferedReader | gzip.GzipFile = self._under
        self._trouble = ""
        name = source.path.name
        self._is_packed = name.endswith((".gz", ".zst"))
        self.outline: Outline = {}
        """Of a document, what stands beside its elements, once they were read."""
        if name.endswith(".gz"):
            self._file = gzip.GzipFile(fileobj=self._under)
        elif name.endswith(".zst"):
            self._file = _unzstd(self._under)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._under.close()

    def done_bytes(self) -> int:
        """Say how much of the file has been read."""
        try:
            return self._under.tell()
        except (OSError, ValueError):
            return self._source.size

    def records(self, member: str | None) -> Iterator[Line]:
        """Give the records: lines, or of a document what `Found.member` names."""
        if member is None:
            return self.lines()
        return self.elements(member) if member else self.whole()

    def lines(self) -> Iterator[Line]:
        """Give the lines that are not blank; the last one may lack its end."""
        number, rest = 0, _Rest()
        for block in self._blocks():
            pieces = block.split(b"\n")
            tail = pieces.pop()
            if pieces and rest.size:
                yield from self._line(number + 1, rest.join(pieces[0]))
                pieces[0] = b""
            for raw in pieces:
                number += 1
                if raw := raw.strip():
                    yield Line(number, raw.removeprefix(_BOM) if number == 1 else raw)
            rest.add(tail)
        if rest.size:
            yield from self._line(number + 1, rest.join(b""), "torn")
        if self._trouble:
            yield Line(number + 1 + bool(rest.size), b"", self._trouble)

    def _line(self, number: int, raw: bytes | None, trouble: str = "") -> Iterator[Line]:
        if raw is None:
            yield Line(number, b"", _TOO_LONG)
            return
        raw = (raw.removeprefix(_BOM) if number == 1 else raw).strip()
        if raw:
            yield Line(number, raw, trouble)

    def _blocks(self) -> Iterator[bytes]:
        """Give what stood in the file when it was found."""
        left = None if self._is_packed else self._source.size
        while left is None or left > 0:
            try:
                # One step at a time: what was unpacked before the damage is kept.
                block = self._file.read1(_CHUNK if left is None else min(left, _CHUNK))
            except _DAMAGE as error:
                self._trouble = f"bad: the file is damaged from here on ({error})"
                return
            if not block:
                return
            left = None if left is None else left - len(block)
            yield block

    def whole(self) -> Iterator[Line]:
        """Give a document as one record; of one that was cut off, what there is of it."""
        held = _Rest()
        for block in self._blocks():
            held.add(block)
        raw = held.join(b"")
        if raw is None:
            yield Line(1, b"", "bad: a document longer than 64 MiB; write it as lines")
            return
        raw = raw.removeprefix(_BOM).strip()
        kept = mended(raw) if decode_object(raw) is None else None
        if raw:
            yield Line(1, raw if kept is None else kept)
        if kept is not None or self._trouble:
            yield Line(2, b"", self._trouble or "torn")

    def elements(self, key: str) -> Iterator[Line]:
        """Give the elements of a JSON array, or of that member of an object.

        Only a window of the text is held. An array that was never closed gives what it has.
        """
        # A pipe of blocks, so that what is written meanwhile is not read here either.
        blocks = io.BufferedReader(_Blocks(self._blocks()), _CHUNK)
        text = io.TextIOWrapper(blocks, encoding="utf-8-sig", errors="replace")
        number = 0
        for element in read_elements(text, key, self.outline):
            number += 1
            yield Line(number, element.raw, element.trouble)
        if self._trouble:
            yield Line(number + 1, b"", self._trouble)


class _Rest:
    """The beginning of a line or document whose end has not been read; None once it is too long."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0

    def add(self, piece: bytes) -> None:
        """Take what follows."""
        self.size += len(piece)
        if self.size > MOST_LINE_BYTES:
            self._pieces.clear()
        elif piece:
            self._pieces.append(piece)

    def join(self, last: bytes) -> bytes | None:
        """Give the whole and begin anew."""
        self.add(last)
        whole = b"".join(self._pieces) if self.size <= MOST_LINE_BYTES else None
        self._pieces, self.size = [], 0
        return whole


class _Blocks(io.RawIOBase):
    """Lets the standard library buffer blocks that come one after the other."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        super().__init__()
        self._blocks = blocks
        self._left = b""

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, into: Any) -> int:  # noqa: ANN401  (any writable buffer)
        """Read as much as there is room for."""
        if not self._left:
            self._left = next(self._blocks, b"")
        piece, self._left = self._left[: len(into)], self._left[len(into) :]
        into[: len(piece)] = piece
        return len(piece)


def _unzstd(file: IO[bytes]) -> io.BufferedReader:
    import pyarrow as pa

    packed = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
    return io.BufferedReader(_Blocks(iter(lambda: packed.read(_CHUNK), b"")), _CHUNK)


def read_head(source: Source, most: int) -> bytes:
    """Give the first bytes of a file, unpacked.

    Raises:
        OSError: It cannot be opened.
    """
    reader = Reader(source)
    try:
        head = b""
        for block in reader._blocks():
            head += block
            if len(head) >= most:
                break
        return head[:most].removeprefix(_BOM)
    finally:
        reader.close()
