"""Small plots as text: pure functions from numbers to lines.

Each takes `is_unicode`; without it, only ASCII is used.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

__all__ = ["Bin", "bar", "histogram", "log_bins", "share_bar", "sparkline", "stacked_bar"]

_SPARKS: Final = "▁▂▃▄▅▆▇█"
_ASCII_SPARKS: Final = "_.-=+*%#"
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_FILLS: Final = "█▓▒░▚▞"
_ASCII_FILLS: Final = "#=+-:."
_MOST_BINS: Final = 24

Bin = tuple[float, float, int]
"""Lower and upper bound, and how many values lie between; the upper belongs to the next."""


def sparkline(
    values: Sequence[float | None],
    *,
    width: int | None = None,
    top: float | None = None,
    is_unicode: bool = True,
) -> str:
    """Draw values as one line of small columns from zero; a blank stands for none.

    Args:
        values: What to draw, in order.
        width: Longest line; several values then share a column, the highest of them shown.
        top: What the highest column stands for; the highest value if not given.
        is_unicode: Whether more than ASCII may be used.
    """
    if width is not None and len(values) > width > 0:
        values = [_highest(part) for part in _parts(values, width)]
    marks = _SPARKS if is_unicode else _ASCII_SPARKS
    finite = [value for value in values if value is not None and math.isfinite(value)]
    highest = (max(finite, default=0.0) if top is None else top) or 1.0
    return "".join(_spark(value, highest, marks) for value in values)


def _spark(value: float | None, top: float, marks: str) -> str:
    if value is None or not math.isfinite(value):
        return " "
    level = math.ceil(value / top * len(marks)) - 1 if value > 0 else 0
    return marks[min(max(level, 0), len(marks) - 1)]


def _highest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _parts(values: Sequence[float | None], count: int) -> list[Sequence[float | None]]:
    size = len(values)
    bounds = [place * size // count for place in range(count + 1)]
    return [values[low:high] for low, high in pairwise(bounds)]


def bar(share: float, width: int, *, is_unicode: bool = True) -> str:
    """Draw a share, 0 to 1, as a bar; a share above 0 is never drawn as nothing."""
    share = min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0
    if not is_unicode:
        length = round(share * width)
        return "#" * max(length, 1 if share > 0 else 0)
    eighths = max(round(share * width * 8), 1 if share > 0 else 0)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def share_bar(part: float, whole: float, width: int, *, is_unicode: bool = True) -> str:
    """Draw a part of a whole, padded to the width."""
    return bar(part / whole if whole else 0.0, width, is_unicode=is_unicode).ljust(width)


def stacked_bar(
    parts: Sequence[tuple[str, float]], width: int, *, is_unicode: bool = True
) -> tuple[str, str]:
    """Draw parts of a whole side by side, and a legend: both as one line.

    Cells are handed out by largest remainder, so the bar is exactly as long as it should be.
    """
    fills = _FILLS if is_unicode else _ASCII_FILLS
    shown = [(name, value) for name, value in parts if value > 0 and math.isfinite(value)]
    whole = sum(value for _, value in shown)
    if not shown or width <= 0:
        return "", ""
    exact = [value / whole * width for _, value in shown]
    cells = [math.floor(value) for value in exact]
    order = sorted(range(len(exact)), key=lambda place: cells[place] - exact[place])
    for place in order[: width - sum(cells)]:
        cells[place] += 1
    line = "".join(fills[place % len(fills)] * size for place, size in enumerate(cells))
    legend = "  ".join(
        f"{fills[place % len(fills)]} {name} {100 * value / whole:.0f} %"
        for place, (name, value) in enumerate(shown)
    )
    return line, legend


def log_bins(values: Sequence[float], *, per_decade: int = 4) -> list[Bin]:
    """Sort positive values into bins that grow by equal factors; others are not counted."""
    positive = [value for value in values if value > 0 and math.isfinite(value)]
    if not positive:
        return []
    low, high = _bin_of(min(positive), per_decade), _bin_of(max(positive), per_decade)
    while high - low >= _MOST_BINS and per_decade > 1:
        per_decade = max(per_decade // 2, 1)
        low, high = _bin_of(min(positive), per_decade), _bin_of(max(positive), per_decade)
    counts = [0] * (high - low + 1)
    for value in positive:
        counts[_bin_of(value, per_decade) - low] += 1
    return [
        (10 ** ((low + place) / per_decade), 10 ** ((low + place + 1) / per_decade), count)
        for place, count in enumerate(counts)
    ]


def _bin_of(value: float, per_decade: int) -> int:
    # The tiny addition keeps a bound, such as 1000, in the bin that begins with it.
    return math.floor(math.log10(value) * per_decade + 1e-9)


def histogram(
    bins: Sequence[tuple[str, int]], *, width: int = 40, is_unicode: bool = True
) -> list[str]:
    """Draw labelled counts as horizontal bars, one line each."""
    if not bins:
        return []
    top = max(count for _, count in bins) or 1
    label = max(len(text) for text, _ in bins)
    number = max(len(f"{count:,}") for _, count in bins)
    return [
        f"{text:>{label}}  {count:>{number},}  "
        f"{bar(count / top, width, is_unicode=is_unicode)}".rstrip()
        for text, count in bins
    ]
