"""The left edge of a YAML text: which keys stand there, and where, without reading the rest.

Enough to add a list item to somebody's file and leave every other byte as it is. The scanner knows
quotes, brackets and block texts, since those may hold lines that only look like keys; whatever it
is not sure of it refuses, and never guesses.
"""

import re
from typing import Final, NamedTuple

from rollscope.errors import RollscopeError

__all__ = ["Edge", "Edges", "UnsafeEdit", "read_edges"]

_LINE: Final = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_ODD_BREAKS: Final = re.compile("[\x85\u2028\u2029\x00]")
_KEY: Final = re.compile(
    r"""(?:"([\w.-]+)"|'([\w.-]+)'|([A-Za-z_][\w.-]*))[ \t]*:(?=[ \t]|$)(.*)"""
)
_BEGINNING: Final = re.compile(r"---[ \t]*(#.*)?$")
_BLOCK_TEXT: Final = re.compile(r"[|>][+-]?[ \t]*((?<=[ \t])#.*)?$")
_FLOW: Final = ",[]{}"


class UnsafeEdit(RollscopeError, ValueError):
    """A configuration cannot be changed safely; the message says why."""


class Edge(NamedTuple):
    """A key at the left edge."""

    key: str
    value: str
    """What follows it on its line, without a comment."""
    start: int
    end: int
    """Just past its line."""


class Edges(NamedTuple):
    """All of them."""

    keys: list[Edge]
    ends_in_text: bool
    """Whether the last value is a block text, to which a line break would be added."""


def read_edges(text: str) -> Edges:
    """Find the keys at the left edge.

    Raises:
        UnsafeEdit: It is no mapping in block form, or has something that is not understood.
    """
    if found := _ODD_BREAKS.search(text):
        raise UnsafeEdit(f"it has the odd character {found[0]!r}")
    return _Scanner().read(text)


class _Scanner:
    """Goes over the lines, and knows what is still open at the end of each."""

    def __init__(self) -> None:
        self._number = 0
        self._keys: list[Edge] = []
        self._has_begun = False
        self._quote = ""
        self._depth = 0
        self._text_parent: int | None = None
        """The column whose block text we are in."""
        self._column: int | None = None
        """Where the newest key, or dash, of the line stands."""

    def read(self, text: str) -> Edges:
        for self._number, found in enumerate(_LINE.finditer(text), 1):
            body = found[1].removeprefix("\ufeff") if found.start() == 0 else found[1]
            self._read_line(body, found.start(), found.end())
        if self._quote or self._depth:
            self._refuse("a quote or bracket is not closed")
        return Edges(self._keys, self._text_parent is not None)

    def _refuse(self, why: str) -> None:
        raise UnsafeEdit(f"line {self._number}: {why}")

    def _read_line(self, body: str, start: int, end: int) -> None:
        rest = body.lstrip(" ")
        indent = len(body) - len(rest)
        if self._quote or self._depth:
            if rest and not indent:
                self._refuse("a quote or bracket goes on at the left edge")
            self._scan(body, indent)
            return
        if not rest.strip():
            return
        if self._text_parent is not None:
            if indent > self._text_parent:
                return
            self._text_parent = None
        if rest.startswith("#"):
            return
        if rest.startswith("\t"):
            self._refuse("a tab stands where blanks have to")
        self._column = None
        if indent:
            if not self._keys:
                self._refuse("it is indented, and no key stands before it")
            self._scan(body, indent)
        else:
            self._read_edge(body, start, end)

    def _read_edge(self, body: str, start: int, end: int) -> None:
        if _BEGINNING.match(body) and not self._keys and not self._has_begun:
            self._has_begun = True
            return
        if body == "-" or body.startswith("- "):
            if not self._keys or self._keys[-1].value:
                self._refuse("a list stands where a key is expected")
            self._scan(body, 0)
            return
        found = _KEY.match(body)
        if found is None:
            self._refuse(f"{body[:40]!r} stands where a key is expected")
            return
        value = re.sub(r"(^|[ \t])#.*", "", found[4]).strip()
        self._keys.append(Edge(found[1] or found[2] or found[3], value, start, end))
        self._column = 0
        self._scan(body, found.start(4))

    def _scan(self, body: str, at: int) -> None:
        """Go over what is in a line, from token to token."""
        began: int | None = None
        while at < len(body):
            char = body[at]
            if self._quote:
                at = self._skip_quoted(body, at)
            elif char in " \t":
                at += 1
            elif char == "#" and (at == 0 or body[at - 1] in " \t"):
                return
            elif self._depth or char in "[{":
                at = self._skip_flow(body, at)
            elif char in "-?" and body[at + 1 : at + 2] in ("", " "):
                self._column, began, at = at, None, at + 1
            elif char == ":" and body[at + 1 : at + 2] in ("", " ", "\t"):
                self._column, began, at = (at if began is None else began), None, at + 1
            elif char in "|>":
                self._begin_text(body, at)
                return
            else:
                began = at if began is None else began
                at = self._skip_token(body, at)

    def _skip_token(self, body: str, at: int) -> int:
        char = body[at]
        if char in "\"'":
            self._quote = char
            return at + 1
        if char in "&*!":
            return _end_of(body, at, r"[ \t]")
        return _end_of(body, at, r":(?=[ \t]|$)|[ \t]#")

    def _skip_quoted(self, body: str, at: int) -> int:
        if body[at] == "\\" and self._quote == '"':
            return at + 2
        if body[at] != self._quote:
            return at + 1
        if self._quote == "'" and body[at + 1 : at + 2] == "'":
            return at + 2
        self._quote = ""
        return at + 1

    def _skip_flow(self, body: str, at: int) -> int:
        char = body[at]
        if char in "\"'":
            self._quote = char
            return at + 1
        if char in "[{":
            self._depth += 1
            return at + 1
        if char in "]}":
            self._depth -= 1
            return at + 1
        if char in ",:?":
            return at + 1
        if char in "&*!":
            return _end_of(body, at, rf"[ \t{re.escape(_FLOW)}]")
        return _end_of(body, at, rf"[{re.escape(_FLOW)}]|:(?=[ \t{re.escape(_FLOW)}]|$)|[ \t]#")

    def _begin_text(self, body: str, at: int) -> None:
        if not _BLOCK_TEXT.match(body, at):
            self._refuse("a text in a form that is not understood")
        if self._column is None:
            self._refuse("a text begins on a line of its own")
        self._text_parent = self._column


def _end_of(body: str, at: int, pattern: str) -> int:
    """Say where a token ends, which has at least one character."""
    found = re.compile(pattern).search(body, at + 1)
    return len(body) if found is None else found.start()
