"""One JSON document as a stream: the elements of its array, and what stands around them."""

import json
import re
from collections.abc import Iterator
from typing import IO, Any, Final, NamedTuple

import msgspec

from rollscope.model.undecodable import UNDECODABLE

__all__ = ["MOST_ELEMENT_BYTES", "Element", "Outline", "Window", "mended", "read_elements"]

MOST_ELEMENT_BYTES: Final = 64 * 1024 * 1024
_CHUNK: Final = 1 << 20
_MOST_MEMBERS: Final = 1000
_MOST_MEMBER_CHARACTERS: Final = 65_536
_NEAR: Final = 1024
"""A fault so close to the end of what is held may be gone once more is held."""
_NEXT: Final = re.compile(r"[,\n]\s*(?=\{)")
"""Where an element may begin, behind one that cannot be read."""
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|[{}\[\],]', re.DOTALL)
"""A text, which may be cut off, or what structures a document."""
_TRIES: Final = 4
_ALONE: Final = 500
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode
_SPACE: Final = re.compile(r"[\s,]*")
_BLANK: Final = re.compile(r"\s*")
Outline = dict[str, Any]
"""The small members of a document beside its array; whole once the array was read to its end."""


class Element(NamedTuple):
    """The text of one element, or why there is none."""

    raw: bytes
    trouble: str = ""


class _Missing:
    """Stands for a value that cannot be read."""


_MISSING: Final = _Missing()


def read_elements(text: IO[str], key: str, outline: Outline) -> Iterator[Element]:
    """Give the elements of a JSON array, or of that member of an object.

    Only a window of the text is held. An array that was never closed gives what it has, and one
    element that cannot be read costs nothing but itself.

    Args:
        text: The document.
        key: The member, of an object.
        outline: Gets the other members, as far as they are small.
    """
    window = Window(text, MOST_ELEMENT_BYTES, outline)
    if not window.enter(key):
        return
    while True:
        for raw in window.many():
            yield Element(bytes(raw))
        element = window.next()
        if element is None:
            break
        yield element
    window.leave()


def mended(raw: bytes) -> bytes | None:
    """Close a JSON text that was cut off behind its last whole value; None if it was not cut."""
    open_ones = bytearray()
    cut = 0
    for found in _TOKEN.finditer(raw):
        token = found[0][:1]
        if token in b"{[":
            open_ones += b"}" if token == b"{" else b"]"
            cut = found.end()
        elif token in b"}]":
            if not open_ones:
                return None
            open_ones.pop()
            cut = found.end()
        elif token == b",":
            cut = found.start()
    return raw[:cut] + bytes(reversed(open_ones)) if open_ones else None


class Window:
    """A piece of a document's text that moves on as it is read."""

    def __init__(self, text: IO[str], most: int, outline: Outline | None = None) -> None:
        """Read nothing yet.

        Args:
            text: The document.
            most: How many characters of one value are held at most.
            outline: Gets the other members of the document.
        """
        self._text = text
        self._most = most
        self._outline = {} if outline is None else outline
        self._held = ""
        self._is_behind_bad = False
        self._at = 0
        self._decode = json.JSONDecoder().raw_decode
        self._is_object = False
        self._alone = 0
        """How many elements are still to be read one by one."""

    def enter(self, key: str) -> bool:
        """Go to the first element."""
        first = self._peek()
        if first == "[":
            self._at += 1
            return True
        if first == "{":
            self._is_object = True
            self._at += 1
            if self._walk(key):
                return True
        return self._search(key)

    def leave(self) -> None:
        """Read what stands behind the array."""
        if self._is_object and self._peek() == "]":
            self._at += 1
            self._walk(None)

    def element(self) -> str | None:
        """Give the text of the next element; None at the end, and where one cannot be read."""
        found = self.next()
        return None if found is None or found.trouble else found.raw.decode()

    def many(self) -> list[msgspec.Raw]:
        """Give elements that stand whole in what is held, if they can be had all at once.

        One decoder splits a megabyte of them in the time that another takes for a few. What it
        cannot read, or was cut off, is left to `next`.
        """
        if self._alone:
            self._alone -= 1
            return []
        if self._peek() != "{":
            return []
        cut = len(self._held)
        for _ in range(_TRIES):
            cut = self._held.rfind("},", self._at, cut)
            if cut < 0:
                break
            try:
                found = _split(f"[{self._held[self._at : cut + 1]}]")
            except UNDECODABLE:
                continue
            self._at = cut + 1
            return found
        self._alone = _ALONE
        return []

    def next(self) -> Element | None:
        """Give the next element; None at the end."""
        if self._peek() in ("]", ""):
            return None
        while (end := self._end_of_value()) is None:
            if len(self._held) - self._at > self._most or not self._more():
                return self._skip()
        if end < 0:
            return self._skip()
        if self._is_behind_bad:
            length = end - self._at
            if not self._is_followed(length):
                return self._skip()  # a piece of a text in the one that cannot be read
            self._is_behind_bad, end = False, self._at + length
        start, self._at = self._at, end
        return Element(self._held[start:end].encode("utf-8", "replace"))

    def _is_followed(self, length: int) -> bool:
        """Say whether a value of so many characters stands where elements of an array do."""
        while True:
            after = _BLANK.match(self._held, self._at + length).end()  # type: ignore[union-attr]
            if after < len(self._held):
                return self._held[after] in ",]"
            if not self._more():
                return False

    def _skip(self) -> Element:
        """Go to where the next element may begin."""
        self._is_behind_bad = True
        found = _NEXT.search(self._held, self._at + 1)
        while found is None and self._more_only():
            found = _NEXT.search(self._held)
        self._at = len(self._held) if found is None else found.end()
        return Element(b"", "torn" if found is None else "bad: no JSON object")

    def _walk(self, key: str | None) -> bool:
        """Read members up to the one that is wanted, and enter its array."""
        while self._peek() == '"':
            name = self._value()
            if not isinstance(name, str) or self._peek() != ":":
                return False
            self._at += 1
            if name == key and self._peek() == "[":
                self._at += 1
                return True
            value = self._value()
            if value is _MISSING:
                return False
            if len(self._outline) < _MOST_MEMBERS:
                self._outline[name[:256]] = value
        return False

    def _value(self) -> Any:  # noqa: ANN401  (whatever stands there)
        """Read one value; a large one is passed over and gives None."""
        self._peek()
        while (end := self._end_of_value()) is None:
            if len(self._held) - self._at > self._most or not self._more():
                return _MISSING
        if end < 0:
            return _MISSING
        start, self._at = self._at, end
        is_small = end - start <= _MOST_MEMBER_CHARACTERS
        return self._decode(self._held, start)[0] if is_small else None

    def _search(self, key: str) -> bool:
        """Look for the member in a document whose beginning cannot be read."""
        mark = re.compile(rf'"{re.escape(key)}"\s*:\s*\[')
        while (found := mark.search(self._held, self._at)) is None:
            self._at = max(self._at, len(self._held) - _NEAR)
            if not self._more():
                return False
        self._at = found.end()
        return True

    def _peek(self) -> str:
        """Give the next character that is no space or comma; empty at the end."""
        while True:
            self._at = _SPACE.match(self._held, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._held):
                return self._held[self._at]
            if not self._more():
                return ""

    def _more(self) -> bool:
        piece = self._text.read(max(_CHUNK, len(self._held) - self._at))
        self._held, self._at = self._held[self._at :] + piece, 0
        return bool(piece)

    def _more_only(self) -> bool:
        """Hold the next piece instead of this one, but for the few characters before it."""
        self._at = max(self._at, len(self._held) - _NEAR)
        return self._more()

    def _end_of_value(self) -> int | None:
        """Say where the value ends that begins here; None to be asked again with more, -1 never."""
        try:
            _, end = self._decode(self._held, self._at)
        except json.JSONDecodeError as error:
            is_cut = error.msg.startswith("Unterminated") or error.pos > len(self._held) - _NEAR
            return None if is_cut else -1
        except (ValueError, RecursionError):
            return -1
        # A number at the very end of the window may go on behind it.
        return None if end == len(self._held) and self._held[end - 1] not in '}]"' else end
