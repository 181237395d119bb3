"""`python -m rollscope.integrations.areal convert|plot`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from rollscope.integrations.areal.converting import (
    convert_jsonl_to_chrome_trace,
    output_for,
    write_trace,
)
from rollscope.integrations.areal.plotting import plot
from rollscope.integrations.areal.reading import Skipped

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one of the commands."""
    options = _parser().parse_args(argv)
    if options.command == "plot":
        return plot(options)
    return _convert(options)


def _convert(options: argparse.Namespace) -> int:
    skipped = Skipped()
    output = options.output or output_for(options.input)
    if str(output).endswith(".jsonl"):
        # A shell that expands a pattern hands over the second of its files as the output.
        sys.stderr.write(f"{output} would be overwritten; put the pattern into quotes\n")
        return 2
    to_file = None if options.output == "-" else output
    trace = convert_jsonl_to_chrome_trace(
        options.input, to_file, display_time_unit=options.display_time_unit, skipped=skipped
    )
    if to_file is None:
        write_trace(trace, sys.stdout)
    if skipped.bad or skipped.other:
        sys.stderr.write(f"{skipped}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m rollscope.integrations.areal")
    commands = parser.add_subparsers(dest="command", required=True)
    convert = commands.add_parser("convert", help="make one Chrome trace of perf files")
    convert.add_argument("input", help="a file, a folder, or a pattern in quotes")
    convert.add_argument("output", nargs="?", help="where to write; - for standard output")
    convert.add_argument("--display-time-unit", default="ms")
    plotting = commands.add_parser("plot", help="draw sessions as pages that need no network")
    plotting.add_argument("input", help="a file, a folder, or a pattern in quotes")
    plotting.add_argument("-B", "--consumer-batch-size", type=int, required=True)
    plotting.add_argument("-L", "--enable-lifecycle", action="store_true")
    plotting.add_argument("-N", "--max-lifecycle-sessions", type=int)
    plotting.add_argument("--output", help="of the overall page; the steps' gets -step")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
