"""`rollscope export --format chrome` and `--format perfetto`: a run as a file for trace viewers."""

import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rollscope.analysis.wording import say_seconds
from rollscope.cli.exporting.places import TO_OUTPUT, chosen_place, chosen_steps
from rollscope.cli.reading import check_extra, open_run
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from rollscope.exporting.chrome import ByteSink
    from rollscope.exporting.reading import Exported, PlacedRun

__all__ = ["ChromeFormat", "PerfettoFormat"]


class ChromeFormat:
    """Writes Chrome's trace JSON."""

    name = "chrome"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the options of this format."""
        group = parser.add_argument_group("as Chrome JSON")
        group.add_argument(
            "--async",
            dest="as_async",
            action="store_true",
            help="pairs of beginning and end with an id, instead of tracks that nest",
        )
        group.add_argument("--gzip", action="store_true", help="pack the file: RUN.json.gz")

    def run(self, args: Namespace) -> int:
        """Write the file and say what is in it."""
        from rollscope.exporting.chrome import write_chrome

        def write(run: "PlacedRun", sink: "ByteSink") -> None:
            write_chrome(run, sink, as_async=args.as_async)

        if args.gzip and args.output not in (None, TO_OUTPUT) and not args.output.endswith(".gz"):
            raise CommandError(f"--gzip and -o {args.output}: let the name end with .gz", 2)
        if args.gzip and args.output == TO_OUTPUT:
            raise CommandError("--gzip and -o - exclude each other; pipe it through gzip", 2)
        return _export(args, ".json.gz" if args.gzip else ".json", write)


class PerfettoFormat:
    """Writes Perfetto's own format."""

    name = "perfetto"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare nothing: there is nothing to choose."""

    def run(self, args: Namespace) -> int:
        """Write the file and say what is in it."""
        from rollscope.exporting.perfetto import write_perfetto

        if args.output == TO_OUTPUT and sys.stdout.isatty():
            raise CommandError("what Perfetto reads is no text; say -o FILE, or pipe it", 2)
        return _export(args, ".pftrace", write_perfetto)


if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[[PlacedRun, ByteSink], None]


def _export(args: Namespace, ending: str, write: "Write") -> int:
    check_extra()
    from rollscope.cli.terminal.progress import bar_of
    from rollscope.exporting.output import open_output
    from rollscope.exporting.reading import PlacedRun

    began = time.monotonic()
    with open_run(args) as store:
        path = chosen_place(args, store.path, ending)
        with (
            bar_of("Exporting", are_bytes=False) as progress,
            PlacedRun(
                store, steps=chosen_steps(args, store), threads=args.threads, progress=progress
            ) as run,
            open_output(path) as sink,
        ):
            write(run, sink)
        run.exported.bytes = sink.bytes if path is None else path.stat().st_size
    if path is not None:
        _tell(args, path, run.exported, time.monotonic() - began)
    return 0


def _tell(args: Namespace, path: Path, exported: "Exported", seconds: float) -> None:
    if args.json:
        from rollscope.cli.terminal.output import print_json

        print_json({"file": str(path), "exported": exported})
        return
    parts = [f"{exported.spans} spans"]
    parts += [f"{exported.open} of them open"] * bool(exported.open)
    parts += [f"{exported.events} events"] * bool(exported.events)
    parts += [f"{exported.samples} samples of metrics"] * bool(exported.samples)
    told = f"{', '.join(parts)} on {exported.tracks} tracks"
    print(f"{path}: {told}, {exported.bytes / 1e6:.1f} MB, {say_seconds(seconds)}")
