"""`rollscope report`: one HTML file that shows a run and can be sent to anybody."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rollscope.cli.arguments import add_examples, add_scope
from rollscope.cli.reading import add_reading_arguments, open_run

if TYPE_CHECKING:
    from rollscope.reports import Written

__all__ = ["ReportCommand"]


class ReportCommand:
    """Writes the page of a run into one file."""

    name = "report"
    summary = "write a run into one HTML file that opens from disk"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add_reading_arguments(parser)
        parser.add_argument(
            "-o",
            "--output",
            type=Path,
            metavar="FILE",
            help="the file, which is replaced if there is one (default: the run's name and .html)",
        )
        add_scope(parser)
        parser.add_argument(
            "--payloads",
            action="store_true",
            help="put recorded text in too, of the sessions that are told of in full",
        )
        parser.add_argument(
            "--ids",
            action="store_true",
            help="keep the whole ids of sessions, for use with other commands",
        )
        add_examples(parser, "example: rollscope report runs/first -o first.html --scope 30-40")

    def run(self, args: Namespace) -> int:
        """Write the report, and say how large it is and what is in it."""
        with open_run(args) as store:
            from rollscope.cli.terminal.output import print_json
            from rollscope.cli.terminal.progress import bar_of
            from rollscope.reports import ReportChoices, write_report

            output = args.output or Path(f"{store.path.resolve().name}.html")
            choices = ReportChoices(scope=args.scope, payloads=args.payloads, ids=args.ids)
            with bar_of("Making the report", are_bytes=False) as progress:
                written = write_report(store, output, choices, progress=progress)
        if args.json:
            print_json(written)
        else:
            _tell(written)
        return 0


def _tell(written: "Written") -> None:
    from rollscope.screens.tables import clean

    size = f"{written.size_bytes / 1e6:.1f} MB"
    held = f"{written.steps} steps, {written.sessions_listed} sessions"
    print(f"{clean(written.path)}: {size}, {held}, {written.details} of them in full")
    for note in written.notes:
        print(note)
