"""`rollscope export --format jsonl`: a run as JSON lines, which `rollscope import` reads back."""

import time
from argparse import ArgumentParser, Namespace

import msgspec

from rollscope.cli.exporting.places import chosen_place, chosen_steps, tell_made
from rollscope.cli.reading import check_extra, open_run

__all__ = ["JsonLinesFormat"]


class JsonLinesFormat:
    """Writes one object a line."""

    name = "jsonl"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare nothing: there is nothing to choose."""

    def run(self, args: Namespace) -> int:
        """Write the file and say what is in it."""
        check_extra()
        from rollscope.cli.terminal.progress import bar_of
        from rollscope.exporting.jsonlines import write_lines
        from rollscope.exporting.output import open_output
        from rollscope.exporting.scratch import Scratch

        began = time.monotonic()
        with open_run(args) as store:
            path = chosen_place(args, store.path, ".jsonl")
            steps = chosen_steps(args, store)
            with (
                bar_of("Exporting", are_bytes=False) as progress,
                Scratch(store, threads=args.threads) as scratch,
                open_output(path) as sink,
            ):
                name = store.path.resolve().name
                written = write_lines(scratch, name, sink, steps=steps, progress=progress)
        if path is not None:
            made = msgspec.structs.asdict(written) | {"bytes": path.stat().st_size}
            tell_made(args, path, made, time.monotonic() - began)
        return 0
