"""Tables within pages: settings, and the metrics that a server shows."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from rollscope.config import all_settings
from rollscope.exposing.catalogue import FAMILIES

__all__ = ["DOCS", "GENERATED", "metrics_page", "settings_page", "table"]

DOCS: Final = Path(__file__).resolve().parent.parent
GENERATED: Final = "<!-- Written from the code by scripts/write-docs; do not edit. -->"
_FAMILIES: Final = "<!-- families -->"
_END_OF_FAMILIES: Final = "<!-- end of families -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Give the lines of a table; what would end a cell is escaped."""
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join(map(_cell, cells))} |" for cells in rows]
    return lines


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def settings_page() -> str:
    """Give the page that lists every setting."""
    lines = [
        "# Settings",
        "",
        "Each is a keyword of `rollscope.init` and `rollscope.Tracer`, and a variable. A keyword",
        "wins over a variable, except that `ROLLSCOPE=off` always wins.",
        "",
    ]
    rows = []
    for name, setting in all_settings().items():
        default = "" if setting.default in (None, {}) else f"`{setting.default}`"
        rows.append((f"`{name}`", f"`{setting.variable}`", default, setting.allowed, setting.doc))
    lines += table(("setting", "variable", "default", "allowed", "meaning"), rows)
    return "\n".join(lines) + "\n"


def metrics_page() -> str:
    """Give the page about metrics with the table of families as the catalogue declares them."""
    before, rest = (DOCS / "metrics.md").read_text().split(_FAMILIES)
    _, after = rest.split(_END_OF_FAMILIES)
    rows = [
        (f"`{one.name}`", one.kind, ", ".join(f"`{label}`" for label in one.labels), one.help)
        for one in FAMILIES
    ]
    lines = table(("name", "kind", "labels", "meaning"), rows)
    return "\n".join([before + _FAMILIES, "", *lines, "", _END_OF_FAMILIES + after])
