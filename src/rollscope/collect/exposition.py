"""Reading what a program exposes at /metrics: Prometheus' text format, and OpenMetrics.

It is fed as it comes in, keeps only what is wanted, and is bounded in bytes and series, since
whoever answers may be anybody. A line that cannot be read is counted, and reading goes on.
Timestamps and exemplars are read over: what is exposed counts as of when it was asked for.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

__all__ = ["MOST_BYTES", "MOST_SERIES", "Exposition", "ExpositionReader", "Point", "read_point"]

MOST_BYTES: Final = 16 * 1024 * 1024
MOST_SERIES: Final = 200_000
_MOST_POINTS: Final = 50_000
"""Of series that are wanted: many times what engines have."""
_MOST_TYPES: Final = 20_000
_LINE_BYTES: Final = 64 * 1024
_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_ODD: Final = re.compile(r"[^a-zA-Z0-9_]")
_TEXT: Final = r'"([^"\\]*(?:\\.[^"\\]*)*)"'
_QUOTED_NAME: Final = re.compile(rf"\{{\s*{_TEXT}\s*(?:,|(?=\}}))")
_LABEL: Final = re.compile(rf"\s*(?:([a-zA-Z_][a-zA-Z0-9_]*)|{_TEXT})\s*=\s*{_TEXT}\s*(,|(?=\}}))")
_LABELS_END: Final = re.compile(r"\s*\}")
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {"n": "\n", "\\": "\\", '"': '"'}


class Point(NamedTuple):
    """One line: a series and its value."""

    name: str
    labels: dict[str, str]
    value: float


class Exposition:
    """What was read."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        """Of what was wanted, in the order of the lines."""
        self.types: dict[str, str] = {}
        """By family: `counter`, `gauge`, `histogram`, `summary` and what else it says."""
        self.series = 0
        """Lines with a value, wanted or not."""
        self.bad_lines = 0
        self.is_cut = False
        """Whether there was more than is read."""


class ExpositionReader:
    """Reads one answer, piece by piece."""

    def __init__(
        self,
        wants: Callable[[str], bool],
        *,
        most_bytes: int = MOST_BYTES,
        most_series: int = MOST_SERIES,
    ) -> None:
        """Begin.

        Args:
            wants: Says by the name of a series whether to keep it.
            most_bytes: How much is read.
            most_series: How many lines with a value are read.
        """
        self._wants = wants
        self._most_bytes = most_bytes
        self._most_series = most_series
        self._read = Exposition()
        self._bytes = 0
        self._rest = b""
        self._is_skipping = False
        self._is_over = False
        self._wanted: dict[bytes, bool] = {}

    def feed(self, data: bytes) -> bool:
        """Take the next piece; False if no more is taken."""
        room = self._most_bytes - self._bytes
        self._bytes += len(data)
        if len(data) > room:
            self._read.is_cut = True
            data = data[:room]
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if self._is_skipping:
                self._is_skipping = False
            elif not self._is_over:
                self._take(line)
        if len(self._rest) > _LINE_BYTES:
            self._read.bad_lines += not self._is_skipping
            self._is_skipping, self._rest = True, b""
        return not self._read.is_cut

    def close(self) -> Exposition:
        """Give what was read; a last line without an end counts unless it was cut."""
        if self._rest and not (self._is_skipping or self._is_over or self._read.is_cut):
            self._take(self._rest)
        self._rest = b""
        return self._read

    def _take(self, line: bytes) -> None:
        line = line.strip()
        if not line:
            return
        if line[:1] == b"#":
            self._take_comment(line)
            return
        self._read.series += 1
        if self._read.series > self._most_series:
            self._read.is_cut = True
        elif len(line) > _LINE_BYTES:
            self._read.bad_lines += 1
        elif self._wants_line(line):
            self._take_point(line)

    def _take_comment(self, line: bytes) -> None:
        words = line.split(None, 4)
        if words == [b"#", b"EOF"]:
            self._is_over = True
        elif words[:2] == [b"#", b"TYPE"] and len(words) == 4:
            name = words[2].decode("utf-8", "replace").strip('"')
            if len(self._read.types) < _MOST_TYPES:
                declared = words[3].decode("ascii", "replace").lower()
                self._read.types[name] = declared
                # OpenMetrics of the official client has `a:b` here, but `a_b` in front of values.
                self._read.types.setdefault(_ODD.sub("_", name), declared)

    def _wants_line(self, line: bytes) -> bool:
        """Look at the name alone, since most lines are not wanted."""
        name = line.partition(b"{")[0].partition(b" ")[0]
        known = self._wanted.get(name)
        if known is None:
            # Without a plain name in front it is quoted, if it is one at all.
            text = name.decode("utf-8", "replace").strip()
            known = not _NAME.fullmatch(text) or self._wants(text)
            if len(self._wanted) < _MOST_TYPES:
                self._wanted[name] = known
        return known

    def _take_point(self, line: bytes) -> None:
        try:
            point = read_point(line.decode("utf-8", "replace"))
        except ValueError:
            self._read.bad_lines += 1
        else:
            if len(self._read.points) >= _MOST_POINTS:
                self._read.is_cut = True
            elif self._wants(point.name):
                self._read.points.append(point)


def read_point(line: str) -> Point:
    """Read a line with a value.

    Raises:
        ValueError: It is none.
    """
    named = _NAME.match(line) or _QUOTED_NAME.match(line)
    if named is None:
        raise ValueError
    name, at = named[0], named.end()
    labels: dict[str, str] = {}
    if name[0] == "{":
        name = _unescape(named[1])
        labels, at = _read_labels(line, at)
    else:
        opening = len(line) - len(line[at:].lstrip())
        if line.startswith("{", opening):
            labels, at = _read_labels(line, opening + 1)
        elif opening == at:
            raise ValueError
    said = line[at:].partition(" # ")[0].split()
    if not 1 <= len(said) <= 2 or "_" in said[0]:
        raise ValueError
    if len(said) == 2:
        float(said[1])  # when, which has to be a number
    return Point(name, labels, float(said[0]))


def _read_labels(line: str, at: int) -> tuple[dict[str, str], int]:
    """Read labels up to the brace, and give where the rest begins.

    Raises:
        ValueError: They are none.
    """
    labels: dict[str, str] = {}
    while True:
        end = _LABELS_END.match(line, at)
        if end is not None:
            return labels, end.end()
        label = _LABEL.match(line, at)
        if label is None:
            raise ValueError
        plain, quoted, value = label[1], label[2], label[3]
        labels[_unescape(quoted) if plain is None else plain] = _unescape(value)
        at = label.end()


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[0]), text)
