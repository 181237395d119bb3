"""What a command printed, taken up piece by piece until nothing with a number is left."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

__all__ = ["Paper"]

_DEFINITION: Final = re.compile(
    r"vs median:|- where|queue: share|The trainer waits:|change: of the median|"
    r"Why step \d+ took longest|The first of them, turn by turn"
)
"""How sentences begin whose numbers explain columns."""

Rows = list[dict[str, str]]


class Paper:
    """The lines of a command's text."""

    def __init__(self, text: str) -> None:
        """Begin with all of them."""
        self._lines = text.splitlines()

    def take(self, pattern: str) -> re.Match[str]:
        """Take up the first line that a pattern is found in."""
        for place, line in enumerate(self._lines):
            if match := re.search(pattern, line):
                del self._lines[place]
                return match
        raise AssertionError(f"{pattern!r} is not in {self._lines}")

    def take_all(self, pattern: str) -> list[re.Match[str]]:
        """Take up every such line."""
        found = [re.search(pattern, line) for line in self._lines]
        pairs = zip(self._lines, found, strict=True)
        self._lines = [line for line, match in pairs if not match]
        return [match for match in found if match]

    def table(self, *heads: str) -> Rows:
        """Take up the table whose head begins with some words; bars have no head."""
        pattern = r"\s*" + r"\s+".join(map(re.escape, heads)) + r"(\s\s|$)"
        first = next(i for i, line in enumerate(self._lines) if re.match(pattern, line))
        last = first + 1
        while last < len(self._lines) and "  " in self._lines[last].strip():
            last += 1
        block = self._lines[first:last]
        del self._lines[first:last]
        return _cells(block)

    def left(self) -> list[str]:
        """Give the lines with numbers of the run in them that nobody has taken up."""
        said = (line for line in self._lines if re.search(r"\d", line))
        return [line for line in said if not _DEFINITION.match(line)]


def _cells(block: list[str]) -> Rows:
    """Cut lines where all of them have two blanks or more, one above the other."""
    wide = max(map(len, block))
    block = [line.ljust(wide) for line in block]
    inked = "".join(" " if all(line[i] == " " for line in block) else "x" for i in range(wide))
    starts = [match.start() for match in re.finditer(r"(?:(?<=  )|^|(?<=^ ))x", inked)]
    cuts = [*starts, wide]
    head, *rows = [[line[a:b].strip() for a, b in pairwise(cuts)] for line in block]
    return [dict(zip(head, row, strict=True)) for row in rows]
