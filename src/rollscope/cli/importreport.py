"""The account that an import ends with, as text."""

import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rollscope.screens.tables import Column, Screen, clean, show_table, wrap

if TYPE_CHECKING:
    from rollscope.importing.accounts import FileAccount, Report

__all__ = ["show_report", "show_warnings"]

_MOST_FILES: Final = 20
_MOST_LINES: Final = 20
_MOST_WARNINGS: Final = 10


def show_report(report: "Report", run: Path) -> None:
    """Print what became of everything that was read."""
    screen = Screen.of()
    out = sys.stdout
    out.write(_files(report, screen))
    for line in _lines(report):
        out.write(wrap(line, screen, hang=2) + "\n")
    # Not wrapped: it is to be copied.
    out.write(screen.fit(f"Look at the run with: rollscope view {clean(str(run))}\n"))


def show_warnings(report: "Report") -> None:
    """Print what the user should not miss, to the error stream."""
    screen = Screen.of(sys.stderr)
    warnings = list(report.warnings())
    more = len(warnings) - _MOST_WARNINGS
    if more > 0:
        warnings[_MOST_WARNINGS:] = [f"and {more:,} more such warnings"]
    for warning in warnings:
        print(wrap(f"rollscope: {warning}", screen, hang=2), file=sys.stderr)


def _files(report: "Report", screen: Screen) -> str:
    heads = ("read", "imported", "doubled", "set aside")
    folder = _folder(report)
    columns = (
        Column(f"file in {clean(folder)}" if folder else "file", can_shrink=True, least=24),
        Column("format", can_shrink=True, least=8),
        *(Column(head, "right") for head in heads),
    )
    read = [file for file in report.files if file.read]
    rows = [
        (clean(file.path.removeprefix(folder)), _formats(file), *_counts([file]))
        for file in read[:_MOST_FILES]
    ]
    others = read[_MOST_FILES:]
    if others:
        rows.append((f"{len(others):,} more files", "", *_counts(others)))
    return show_table(columns, rows, screen)


def _folder(report: "Report") -> str:
    """Give the folder that all files are in, with its slash; empty if that says nothing."""
    if len(report.files) < 2:
        return ""
    try:
        common = os.path.commonpath([os.path.dirname(file.path) for file in report.files])
    except ValueError:  # some from the root, others not
        return ""
    return f"{common}/" if common.strip("/") else ""


def _formats(file: "FileAccount") -> str:
    others = sorted(set(file.formats) - {file.format})
    return ", ".join((file.format, *others))


def _counts(files: list["FileAccount"]) -> tuple[str, ...]:
    aside = sum(one.count for file in files for one in file.set_aside.values())
    sums = (
        sum(file.read for file in files),
        sum(file.imported for file in files),
        sum(file.duplicates for file in files),
        aside,
    )
    return tuple(f"{number:,}" for number in sums)


def _lines(report: "Report") -> Iterator[str]:
    if report.resumed_at is not None:
        yield f"Went on from {report.resumed_at:.0%}, where an earlier import had been stopped."
    yield from _set_aside(report)
    if report.counts:
        yield f"Made: {_listed(report.counts)}."
    if len(report.named_runs) == 1:
        yield f"The data calls the run {report.named_runs[0]}."
    if report.unknown_statuses:
        yield f"Statuses that are not known: {_listed(report.unknown_statuses)}."
    if report.guessed:
        yield f"Guessed: {_listed(report.guessed)}."
    domains = [f"{clean(domain.name)} ({domain.clock})" for domain in report.domains[:_MOST_LINES]]
    more = len(report.domains) - len(domains)
    if domains:
        yield f"Clock domains: {', '.join(domains)}{f' and {more:,} more' if more else ''}."


def _set_aside(report: "Report") -> Iterator[str]:
    folder = _folder(report)
    every = [(file, why, one) for file in report.files for why, one in file.set_aside.items()]
    for file, why, one in every[:_MOST_LINES]:
        word = "line" if one.count == 1 else "lines"
        lines = ", ".join(map(str, one.lines)) + (", …" if one.count > len(one.lines) else "")
        path = file.path.removeprefix(folder)
        yield f"Set aside in {clean(path)}, {word} {lines}: {clean(why)} ({one.count:,})."
    if len(every) > _MOST_LINES:
        yield f"And {len(every) - _MOST_LINES:,} more such lines; see import.json in the run."


def _listed(counts: dict[str, int]) -> str:
    shown = ", ".join(f"{clean(what)} ({n:,})" for what, n in islice(counts.items(), _MOST_LINES))
    more = len(counts) - _MOST_LINES
    return f"{shown} and {more:,} more" if more > 0 else shown
