"""`rollscope import`: other projects' files as a run."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rollscope.cli.arguments import add_examples, allow_minus
from rollscope.cli.reading import check_extra
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from rollscope.importing.accounts import Report

__all__ = ["ImportCommand", "import_aside"]


class ImportCommand:
    """Imports."""

    name = "import"
    summary = "read other projects' trace files into a run"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "paths", nargs="+", metavar="PATH", help="files, folders, or quoted patterns"
        )
        parser.add_argument("--dir", default="runs", help="where runs are (default: runs)")
        parser.add_argument("--run", help="the run's name (default: that of the first path)")
        parser.add_argument("--format", help="take every file for this format (default: look)")
        parser.add_argument(
            "--offset",
            action="append",
            default=[],
            type=_offset,
            metavar="NAME=SECONDS",
            help="add seconds to the times of a clock domain, which the report names",
        )
        parser.add_argument(
            "--batch-size",
            type=_positive,
            metavar="B",
            help="infer steps of AReaL sessions: every B accepted tasks end one",
        )
        parser.add_argument(
            "--replace", action="store_true", help="replace an import of other files"
        )
        parser.add_argument("--json", action="store_true", help="print the report as JSON")
        allow_minus(parser, r"[\d.]+")
        add_examples(
            parser,
            "example: rollscope import logs/trial/session_tracer --run trial",
            "         rollscope import 'old/**/*.jsonl.gz' --offset rollout-r3=-0.35",
        )

    def run(self, args: Namespace) -> int:
        """Import, and print what became of everything that was read."""
        check_extra()
        from rollscope.cli.terminal.output import print_json
        from rollscope.cli.terminal.progress import bar_of
        from rollscope.importing.formats import Options
        from rollscope.importing.running import import_run

        run = Path(args.dir, _checked(args.run or _name_of(args.paths[0])))
        with bar_of("Importing") as progress:
            report = import_run(
                args.paths,
                run,
                format=args.format,
                offsets=dict(args.offset),
                options=Options(batch_size=args.batch_size),
                replace=args.replace,
                progress=progress,
            )
        if args.json:
            print_json(report)
        else:
            _show(report, run)
        for warning in report.warnings():
            print(f"rollscope: {warning}", file=sys.stderr)
        return 0


def import_aside(place: Path) -> Path:
    """Import a foreign file or folder into the cache, and give the run.

    Raises:
        CommandError: There is nothing in it that can be imported.
    """
    import os

    from rollscope.cli.terminal.progress import bar_of
    from rollscope.importing.running import import_run
    from rollscope.importing.values import stable_bytes

    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    key = stable_bytes(6, place.resolve()).hex()
    run = Path(cache, "rollscope", "imports", key, _name_of(str(place)))
    with bar_of("Importing") as progress:
        report = import_run([place], run, progress=progress)
    for warning in report.warnings():
        print(f"rollscope: {warning}", file=sys.stderr)
    return run


def _name_of(place: str) -> str:
    name = Path(place).resolve().name
    for ending in (".gz", ".zst", ".jsonl", ".json"):
        name = name.removesuffix(ending)
    kept = "".join(c if c.isalnum() or c in "-_." else "-" for c in name).strip("-.")
    return kept or "imported"


def _checked(name: str) -> str:
    if name in (".", "..") or "/" in name or "\0" in name:
        raise CommandError(f"{name!r} is no name for a run", 2)
    return name


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)


def _offset(text: str) -> tuple[str, int]:
    from rollscope.importing.values import seconds_to_ns

    name, equals, seconds = text.rpartition("=")
    offset_ns = seconds_to_ns(seconds) if equals and name else None
    if offset_ns is None:
        raise ArgumentTypeError(f"{text!r} is not of the form NAME=SECONDS")
    return name, offset_ns


def _show(report: "Report", run: Path) -> None:
    from rollscope.screens.tables import Column, Screen, clean, show_table

    screen = Screen.of()
    heads = ("format", "read", "imported", "duplicates", "set aside")
    columns = (Column("file"), *(Column(head, "right") for head in heads))
    rows = []
    for file in report.files:
        aside = sum(one.count for one in file.set_aside.values())
        numbers = (file.read, file.imported, file.duplicates, aside)
        rows.append((clean(file.path), file.format, *(f"{number:,}" for number in numbers)))
    out = sys.stdout
    out.write(show_table(columns, rows, screen))
    for file in report.files:
        for why, one in file.set_aside.items():
            lines = ", ".join(map(str, one.lines)) + (", …" if one.count > len(one.lines) else "")
            out.write(f"{clean(file.path)}: {one.count:,} set aside, {clean(why)}: line {lines}\n")
    made = ", ".join(f"{count:,} {clean(what)}" for what, count in report.counts.items())
    out.write(f"Made: {made}.\n")
    for title, counts in (("Unknown status", report.unknown_statuses), ("Guessed", report.guessed)):
        for what, count in counts.items():
            out.write(f"{title}: {clean(what)} ({count:,}).\n")
    clocks = ", ".join(f"{clean(domain.name)} ({domain.clock})" for domain in report.domains[:20])
    out.write(f"Clock domains: {clocks}{', …' if len(report.domains) > 20 else ''}.\n")
    out.write(f"The run is {run}; look at it with: rollscope view {run}\n")
