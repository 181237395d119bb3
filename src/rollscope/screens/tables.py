"""Tables and other text for a terminal: aligned, cut to its width, safe to print.

Whatever a run recorded is text of strangers: names may hold escape sequences that would move the
cursor or change the title of a window. `clean` makes them visible instead.
"""

import os
import re
import sys
import textwrap
import time
import unicodedata
from collections.abc import Sequence
from io import StringIO
from itertools import accumulate
from typing import Final, Literal, TextIO

import msgspec
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rollscope.analysis.wording import say_whole

__all__ = [
    "UNIT_GAP",
    "Column",
    "Screen",
    "clean",
    "fit_widths",
    "render",
    "say_age",
    "say_size",
    "say_time",
    "shorten",
    "shorten_words",
    "show_table",
    "wrap",
]

UNIT_GAP: Final = re.compile(r"(?<=\d) (?=(?:%|ns|µs|ms|s|m|h|d)(?!\w))|(?<=\d m) (?=\d\d s)")
"""Between a number and its unit, which stay together."""
_GLUE: Final = "\xa0"
"""Stands for a blank that is kept; `clean` lets no other one through."""
_GAP: Final = 2
_UNBOUNDED: Final = 100_000
_SECOND: Final = 1_000_000_000
_UNITS: Final = ("B", "KB", "MB", "GB", "TB")


class Column(msgspec.Struct, frozen=True):
    """One column of a table."""

    head: str
    align: Literal["left", "right"] = "left"
    can_shrink: bool = False
    """Whether its text may be cut where the terminal is narrow."""
    cut: Literal["middle", "end"] = "middle"
    """Where: a name at its middle, words after the last whole one."""
    least: int = 8
    """What such a column keeps."""
    leaves: int = 0
    """Which column goes first where even that is too wide: the lowest number; 0 stays."""
    style: str = ""

    def cut_to(self, text: str, width: int, *, dots: str = "…") -> str:
        """Cut a text of it to so many cells."""
        cutting = shorten if self.cut == "middle" else shorten_words
        return cutting(text, width, dots=dots)


class Screen(msgspec.Struct, frozen=True):
    """What can be shown where the text goes."""

    width: int | None = None
    """Columns; None where nobody cuts lines, as in a file or a pipe, unless COLUMNS says so."""
    has_colour: bool = False
    encoding: str = "utf-8"

    @classmethod
    def of(cls, stream: TextIO | None = None) -> "Screen":
        """Look at where the text goes; the output stream if not given."""
        out = sys.stdout if stream is None else stream
        encoding = getattr(out, "encoding", None) or "utf-8"
        wanted = os.environ.get("COLUMNS", "")
        width = int(wanted) if wanted.isdecimal() and int(wanted) else None
        if not out.isatty():
            return cls(width=width, encoding=encoding)
        width = _terminal_width(out) if width is None else width
        has_colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return cls(width=width, has_colour=has_colour, encoding=encoding)

    @property
    def is_unicode(self) -> bool:
        """Whether more than ASCII can be shown."""
        return self.encoding.lower().replace("-", "").startswith("utf")

    def fit(self, text: str) -> str:
        """Replace what the encoding does not have, so that printing cannot fail."""
        text = text if self.is_unicode else text.replace("µs", "us")
        return text.encode(self.encoding, "backslashreplace").decode(self.encoding)


def _terminal_width(out: TextIO) -> int:
    try:
        return os.get_terminal_size(out.fileno()).columns or 80
    except OSError:
        return 80


def clean(text: str) -> str:
    """Make control characters, escape sequences and direction marks visible."""
    if text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(char: str) -> str:
    if char.isprintable():
        return char
    if unicodedata.category(char) == "Zs":  # other spaces
        return " "
    return char.encode("unicode_escape").decode()


def shorten(text: str, width: int, *, dots: str = "…") -> str:
    """Cut a text in the middle: it is both its ends that tell a name apart."""
    if cell_len(text) <= width:
        return text
    room = width - len(dots)
    if room < 2:
        return _first_cells(text, width)
    tail = _first_cells(text[::-1], room // 2)[::-1]
    return _first_cells(text, room - room // 2) + dots + tail


def shorten_words(text: str, width: int, *, dots: str = "…") -> str:
    """Cut a text after the last word that fits; a number stays with its unit."""
    if cell_len(text) <= width:
        return text
    room = width - len(dots)
    words = UNIT_GAP.sub(_GLUE, text).split(" ")
    fitting = [one for one in accumulate(words, "{} {}".format) if cell_len(one) <= room]
    if not fitting:
        return _first_cells(_first_cells(text, max(room, 0)) + dots, width)
    return fitting[-1].replace(_GLUE, " ").rstrip(" ,;") + dots


def _first_cells(text: str, width: int) -> str:
    """Give the beginning that fits; some characters take two cells."""
    taken = 0
    for place, char in enumerate(text):
        taken += cell_len(char)
        if taken > width:
            return text[:place]
    return text


def show_table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    screen: Screen,
    *,
    title: str = "",
    indent: int = 0,
) -> str:
    """Give a table as lines of text that end in a newline; nothing if it has no rows."""
    if not rows:
        return ""
    lines: Sequence[Sequence[str]] = [[screen.fit(clean(cell)) for cell in row] for row in rows]
    widths = [
        max(cell_len(column.head), *(cell_len(line[place]) for line in lines))
        for place, column in enumerate(columns)
    ]
    if screen.width is not None:
        room = screen.width - indent
        places = _staying(columns, widths, room)
        columns = [columns[place] for place in places]
        lines = [[line[place] for place in places] for line in lines]
        widths = fit_widths(columns, [widths[place] for place in places], room)
    dots = "…" if screen.is_unicode else "..."
    table = _empty_table(columns, widths)
    for line in lines:
        cells = zip(columns, line, widths, strict=True)
        table.add_row(
            *(Text(column.cut_to(cell, width, dots=dots)) for column, cell, width in cells)
        )
    head: list[RenderableType] = [Text(screen.fit(clean(title)), style="bold")] if title else []
    return render([*head, Padding(table, (0, 0, 0, indent), expand=False)], screen)


def _empty_table(columns: Sequence[Column], widths: Sequence[int]) -> Table:
    table = Table(
        box=None,
        padding=(0, _GAP, 0, 0),
        pad_edge=False,
        collapse_padding=True,
        header_style="bold",
        show_header=any(column.head for column in columns),
    )
    for column, width in zip(columns, widths, strict=True):
        table.add_column(
            Text(column.head),
            justify=column.align,
            style=column.style,
            no_wrap=True,
            min_width=width,
            max_width=width,
        )
    return table


def _staying(columns: Sequence[Column], natural: Sequence[int], room: int) -> list[int]:
    """Give the columns to show where there is little room."""
    places = list(range(len(columns)))
    least = [
        min(width, max(column.least, cell_len(column.head))) if column.can_shrink else width
        for column, width in zip(columns, natural, strict=True)
    ]
    for leaving in sorted(
        (p for p in places if columns[p].leaves), key=lambda p: columns[p].leaves
    ):
        if sum(least[place] + _GAP for place in places) - _GAP <= room:
            break
        places.remove(leaving)
    return places


def fit_widths(columns: Sequence[Column], natural: Sequence[int], room: int) -> list[int]:
    """Take width from the widest columns that may shrink until the line fits."""
    widths = list(natural)
    excess = sum(widths) + _GAP * (len(widths) - 1) - room
    while excess > 0:
        can = [p for p, c in enumerate(columns) if c.can_shrink and widths[p] > c.least]
        if not can:
            break
        widest = max(can, key=lambda place: widths[place])
        widths[widest] -= 1
        excess -= 1
    return widths


def wrap(text: str, screen: Screen, *, indent: int = 0, hang: int = 0) -> str:
    """Break a sentence of ours into lines; what strangers wrote in it is made safe.

    Args:
        text: The sentence.
        screen: Where it goes.
        indent: Blanks before each line.
        hang: More blanks before each line but the first.
    """
    safe = screen.fit(clean(text))
    if screen.width is None:
        return " " * indent + safe
    return textwrap.fill(
        safe,
        max(screen.width, 20 + indent + hang),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hang),
        break_on_hyphens=False,
    )


def render(parts: Sequence[RenderableType], screen: Screen) -> str:
    """Turn what rich can show into text, without trailing blanks."""
    out = StringIO()
    console = Console(
        file=out,
        width=_UNBOUNDED,
        force_terminal=screen.has_colour,
        no_color=not screen.has_colour,
        color_system="standard" if screen.has_colour else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Text))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def say_size(size: float) -> str:
    """Write a number of bytes: `812 B`, `4.2 MB`, `1.3 GB`."""
    unit = 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size /= 1000
        unit += 1
    whole = unit == 0 or size >= 99.95
    return f"{size:.0f} {_UNITS[unit]}" if whole else f"{size:.1f} {_UNITS[unit]}"


def say_time(time_ns: int) -> str:
    """Write a time of the wall clock, here: `2026-11-15 10:49`."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(time_ns / 1e9)) if time_ns else "-"


def say_age(time_ns: int, now_ns: int) -> str:
    """Write how long ago something was: `3 s`, `3 m 12 s`, `2.1 h`, `12.0 d`."""
    if not time_ns:
        return "-"
    age_ns = max(now_ns - time_ns, 0)
    return "now" if age_ns < _SECOND else say_whole(age_ns)
