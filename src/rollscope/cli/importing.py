"""`rollscope import`: other projects' files as a run."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollscope.cli.arguments import add_examples, allow_minus
from rollscope.cli.reading import check_extra
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollscope.importing.accounts import Report

__all__ = ["ImportCommand", "count_foreign", "import_aside"]

_MOST_JUDGED = 100


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
            "--align",
            action="store_true",
            help="estimate clocks of AReaL's perf events from weight updates seen on both sides",
        )
        parser.add_argument(
            "--min-us",
            type=_micros,
            metavar="N",
            help="leave out shorter spans of Chrome traces (default: 100 of torch's profiler)",
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
        from rollscope.cli.importreport import show_report, show_warnings
        from rollscope.cli.terminal.output import print_json
        from rollscope.importing.formats import Options

        run = Path(args.dir, _checked(args.run or _name_of(args.paths[0])))
        options = Options(batch_size=args.batch_size, align=args.align, min_us=args.min_us)
        report = _import(
            args.paths,
            run,
            format=args.format,
            offsets=dict(args.offset),
            options=options,
            replace=args.replace,
        )
        if args.json:
            print_json(report)
        else:
            show_report(report, run)
        sys.stdout.flush()
        show_warnings(report)
        return 0


def import_aside(place: Path) -> Path:
    """Import a foreign file or folder into the cache, and give the run.

    Raises:
        CommandError: There is nothing in it that can be imported.
    """
    import os

    from rollscope.cli.importreport import show_warnings
    from rollscope.importing.values import stable_bytes

    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    key = stable_bytes(6, place.resolve()).hex()
    run = Path(cache, "rollscope", "imports", key, _name_of(str(place)))
    show_warnings(_import([place], run))
    return run


def count_foreign(folder: Path) -> int:
    """Say how many files of a folder, of the first hundred, another tool has written."""
    from contextlib import suppress

    from rollscope.importing.recognising import recognise
    from rollscope.importing.sources import find_sources

    try:
        sources = find_sources([folder])
    except CommandError:
        return 0
    count = 0
    for source in sources[:_MOST_JUDGED]:
        with suppress(OSError):
            count += recognise(source).format != "unknown"
    return count


def _import(places: "Sequence[str | Path]", run: Path, **asked: Any) -> "Report":
    """Import with a bar; one that is stopped says how to go on."""
    from rollscope.cli.terminal.progress import bar_of
    from rollscope.importing.running import Interrupted, import_run

    try:
        with bar_of("Importing") as progress:
            return import_run(places, run, progress=progress, **asked)
    except Interrupted as stopped:
        if stopped.share is None:
            raise CommandError("stopped; nothing was imported", 130) from None
        told = f"stopped; the same command goes on from {stopped.share:.0%}"
        raise CommandError(told, 130) from None


def _name_of(place: str) -> str:
    name = Path(place).resolve().name
    for ending in (".gz", ".zst", ".jsonl", ".json"):
        name = name.removesuffix(ending)
    kept = "".join(c if c.isalnum() or c in "-_." else "-" for c in name[:100]).strip("-.")
    return kept or "imported"


def _checked(name: str) -> str:
    if name.startswith(".") or "/" in name or "\0" in name or len(name) > 200:
        told = "it needs one to 200 characters, no slash, and no dot at its beginning"
        raise CommandError(f"{name!r} is no name for a run: {told}", 2)
    return name


def _micros(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 13):
        raise ArgumentTypeError(f"{text!r} is no number of microseconds")
    return int(text)


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
