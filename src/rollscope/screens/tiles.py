"""The few large numbers of a run as text: each a label, a value and its last fifteen minutes."""

from collections.abc import Sequence
from typing import Final

import msgspec
from rich.cells import cell_len

from rollscope.analysis.eta import Eta
from rollscope.analysis.wording import say_ns, say_whole
from rollscope.answers.now import Now
from rollscope.answers.tiles import ErrorTile, InFlightTile, OldestTile, ProgressTile, RateTile
from rollscope.screens.plots import sparkline
from rollscope.screens.sheet import Sheet
from rollscope.screens.tables import clean, shorten
from rollscope.screens.words import say_number, say_phase

__all__ = ["Tile", "show_tiles", "tiles_of"]

_LABEL: Final = 9
_GAP: Final = 2
_LEAST_WIDTH: Final = 37
_LEAST_REST: Final = 12
_MOST_SPARK: Final = 30
_IN_A_ROW: Final = (3, 2)
"""How many stand side by side: as many of these as fit, else one."""


class Tile(msgspec.Struct, frozen=True):
    """One number, and how it came to be what it is."""

    label: str
    value: str
    spark: list[float]


def tiles_of(now: Now) -> list[Tile]:
    """Write the numbers that say whether a run is healthy."""
    return [
        Tile("in flight", _say_in_flight(now.in_flight), [*now.in_flight.spark]),
        Tile("progress", _say_progress(now.progress, now.now_ns), [*now.progress.spark]),
        Tile("ended", f"{say_number(now.ended.rate, 1)} per min", now.ended.spark),
        Tile("tokens", _say_tokens(now.tokens), now.tokens.spark),
        Tile("oldest", _say_oldest(now.oldest), [*now.oldest.spark]),
        Tile("errors", _say_errors(now.failures), [*now.failures.spark]),
    ]


def show_tiles(sheet: Sheet, tiles: Sequence[Tile]) -> None:
    """Add tiles, side by side where there is room."""
    number = next((n for n in _IN_A_ROW if sheet.width >= n * (_LEAST_WIDTH + _GAP) - _GAP), 1)
    width = (sheet.width + _GAP) // number - _GAP
    for first in range(0, len(tiles), number):
        row = [_drawn(tile, width, sheet) for tile in tiles[first : first + number]]
        sheet.line((" " * _GAP).join(row).rstrip())


def _drawn(tile: Tile, width: int, sheet: Sheet) -> str:
    """Draw a tile; the line takes what the value leaves, at most half."""
    rest = max(width - _LABEL - 2, _LEAST_REST)
    value = shorten(clean(tile.value), rest, dots="…" if sheet.is_unicode else "...")
    room = min(rest - cell_len(value), rest // 2, _MOST_SPARK)
    line = sparkline(tile.spark, width=room, is_unicode=sheet.is_unicode) if room > 0 else ""
    gap = " " * (rest - cell_len(value) - len(line) + 1)
    return f"{tile.label:<{_LABEL}} {value}{gap}{line}"


def _say_in_flight(tile: InFlightTile) -> str:
    if tile.capacity is None:
        return f"{tile.count:,}"
    return f"{tile.count:,} of {'~' if tile.is_assumed else ''}{tile.capacity:,}"


def _say_progress(tile: ProgressTile, now_ns: int) -> str:
    if tile.step is None:
        return "no step yet"
    done = f"{tile.done:,}" if tile.of is None else f"{tile.done:,}/{tile.of:,}"
    if not tile.is_running:
        return f"{done}, step {tile.step} over"
    return f"{done}{_say_eta(tile.eta, now_ns)}"


def _say_eta(eta: Eta | None, now_ns: int) -> str:
    """Write in how long a step will end, as a range."""
    if eta is None:
        return ""
    if eta.outliers and eta.at_least_ns is not None:
        return f", ends in {say_whole(eta.at_least_ns)} or more"
    if eta.step_end is None:
        return ""
    low, high = (
        say_whole(max(at_ns - now_ns, 0)) for at_ns in (eta.step_end.p10_ns, eta.step_end.p90_ns)
    )
    return f", ends in {low} to {high}" if low != high else f", ends in {low}"


def _say_tokens(tile: RateTile) -> str:
    """Write how fast tokens come; a dash where none were recorded."""
    return f"{say_number(tile.rate, 0)} per s" if any(tile.spark) or tile.rate else "-"


def _say_oldest(tile: OldestTile) -> str:
    if tile.session_id is None:
        return "nothing open"
    where = "" if tile.name is None else f" {say_phase(tile.name, tile.detail)}"
    return f"{say_ns(tile.age_ns)}{where}"


def _say_errors(tile: ErrorTile) -> str:
    minutes = tile.window_ns // 60_000_000_000
    return f"{tile.recent:,} in {minutes}m, mean {say_number(tile.run_per_minute, 1)}/m"
