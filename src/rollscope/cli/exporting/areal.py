"""`rollscope export --format areal`: sessions for AReaL's own tools."""

import time
from argparse import ArgumentParser, Namespace

import msgspec

from rollscope.cli.exporting.places import chosen_place, chosen_steps, tell_made
from rollscope.cli.reading import check_extra, open_run
from rollscope.errors import CommandError

__all__ = ["ArealFormat"]


class ArealFormat:
    """Writes session records, a file for each role and rank."""

    name = "areal"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the options of this format."""
        group = parser.add_argument_group("as AReaL's session records")
        group.add_argument(
            "--strict", action="store_true", help="only the keys that AReaL writes itself"
        )

    def run(self, args: Namespace) -> int:
        """Write the files and say what is in them."""
        check_extra()
        from rollscope.exporting.areal import write_areal, write_areal_lines
        from rollscope.exporting.output import open_output
        from rollscope.exporting.scratch import Scratch

        began = time.monotonic()
        with open_run(args) as store:
            folder = chosen_place(args, store.path, "-session_tracer")
            if folder is not None and folder.exists() and not folder.is_dir():
                raise CommandError(
                    f"{folder} is no folder; AReaL has a file for each role and rank"
                )
            steps, name = chosen_steps(args, store), store.path.resolve().name
            with Scratch(store, threads=args.threads) as scratch:
                if folder is None:
                    with open_output(None) as sink:
                        write_areal_lines(scratch, name, sink, steps=steps, strict=args.strict)
                    return 0
                written = write_areal(scratch, name, folder, steps=steps, strict=args.strict)
        tell_made(args, folder, msgspec.structs.asdict(written), time.monotonic() - began)
        return 0
