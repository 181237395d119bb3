"""Reading files as records, one after the other, in bounded memory."""

import gzip
import io
import json
from collections.abc import Iterator
from typing import IO, Any, Final, NamedTuple, cast

from rollscope.importing.sources import Source

__all__ = ["MOST_LINE_BYTES", "Line", "Reader", "read_head"]

MOST_LINE_BYTES: Final = 64 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_CHUNK: Final = 1 << 20


class Line(NamedTuple):
    """One record as it stands in a file."""

    number: int
    raw: bytes
    trouble: str = ""
    """Why it can surely not be read; else empty."""


class Reader:
    """Reads one file, as lines or as the elements of one document."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._under = open(source.path, "rb")  # noqa: SIM115  (closed by `close`)
        self._file: IO[bytes] | gzip.GzipFile = self._under
        name = source.path.name
        self._is_packed = name.endswith((".gz", ".zst"))
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

    def lines(self) -> Iterator[Line]:
        """Give the lines that are not blank; the last one may lack its end."""
        number, left = 0, (None if self._is_packed else self._source.size)
        while True:
            limit = MOST_LINE_BYTES + 1 if left is None else min(left, MOST_LINE_BYTES + 1)
            try:
                raw = self._file.readline(limit) if limit else b""
            except (OSError, EOFError, ValueError) as error:
                yield Line(number + 1, b"", f"bad: the packed file is damaged ({error})")
                return
            if not raw:
                return
            number += 1
            if left is not None:
                left -= len(raw)
            if len(raw) > MOST_LINE_BYTES:
                skipped = self._skip_line(raw, left)
                left = None if left is None else left - skipped
                yield Line(number, b"", "bad: longer than 64 MiB")
                continue
            if number == 1:
                raw = raw.removeprefix(_BOM)
            is_torn = not raw.endswith(b"\n")
            raw = raw.strip()
            if raw:
                yield Line(number, raw, "torn" if is_torn else "")

    def _skip_line(self, raw: bytes, left: int | None) -> int:
        skipped = 0
        while not raw.endswith(b"\n"):
            raw = self._file.readline(_CHUNK if left is None else min(_CHUNK, left - skipped))
            skipped += len(raw)
            if not raw:
                break
        return skipped

    def elements(self, key: str) -> Iterator[Line]:
        """Give the elements of a JSON array, or of that member of an object.

        Only a window of the text is held. An array that was never closed gives what it has.
        """
        text = io.TextIOWrapper(cast(IO[bytes], self._file), encoding="utf-8-sig", errors="replace")
        try:
            yield from _elements(_Window(text), key)
        finally:
            text.detach()  # the file is closed by who opened it


def _elements(window: "_Window", key: str) -> Iterator[Line]:
    if not window.enter(key):
        return
    number = 0
    while (raw := window.element()) is not None:
        number += 1
        yield Line(number, raw.encode("utf-8", "replace"))
    if window.is_torn:
        yield Line(number + 1, b"", "torn")


class _Window:
    """A piece of a document's text that moves on as it is read."""

    def __init__(self, text: IO[str]) -> None:
        self._text = text
        self._held = ""
        self._at = 0
        self._decode = json.JSONDecoder().raw_decode
        self.is_torn = False

    def _more(self) -> bool:
        piece = self._text.read(max(_CHUNK, len(self._held) - self._at))
        self._held, self._at = self._held[self._at :] + piece, 0
        return bool(piece)

    def enter(self, key: str) -> bool:
        """Go to the first element."""
        self._more()
        if self._held.lstrip()[:1] == "[":
            self._at = self._held.index("[") + 1
            return True
        mark = f'"{key}"'
        while (place := self._held.find(mark)) < 0:
            self._at = max(len(self._held) - len(mark), 0)
            if not self._more():
                return False
        self._at = place + len(mark)
        while (start := self._held.find("[", self._at)) < 0:
            if not self._more():
                return False
        self._at = start + 1
        return True

    def element(self) -> str | None:
        """Give the text of the next element; None at the end."""
        while True:
            while self._at < len(self._held) and self._held[self._at] in " \t\r\n,":
                self._at += 1
            if self._at >= len(self._held):
                if not self._more():
                    return None
                continue
            if self._held[self._at] == "]":
                return None
            end = self._try()
            if end is not None:
                raw, self._at = self._held[self._at : end], end
                return raw
            too_long = len(self._held) - self._at > MOST_LINE_BYTES
            if too_long or not self._more():
                self.is_torn = True
                return None

    def _try(self) -> int | None:
        try:
            _: Any
            _, end = self._decode(self._held, self._at)
        except (ValueError, RecursionError):
            return None
        # A number at the very end of the window may go on behind it.
        return None if end == len(self._held) and self._held[end - 1] not in '}]"' else end


def _unzstd(file: IO[bytes]) -> IO[bytes]:
    import pyarrow as pa

    packed: IO[bytes] = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
    return io.BufferedReader(_Raw(packed), _CHUNK)


class _Raw(io.RawIOBase):
    """Lets the standard library buffer a stream of pyarrow's."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream = stream

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, into: Any) -> int:  # noqa: ANN401  (any writable buffer)
        """Read as much as there is room for."""
        data = self._stream.read(len(into))
        into[: len(data)] = data
        return len(data)


def read_head(source: Source, most: int) -> bytes:
    """Give the first bytes of a file, unpacked."""
    reader = Reader(source)
    try:
        return reader._file.read(most).removeprefix(_BOM)
    except (OSError, EOFError, ValueError):
        return b""
    finally:
        reader.close()
