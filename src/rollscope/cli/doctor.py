"""`rollscope doctor`: what is wrong with a run, and what to do."""

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Final

from rollscope.cli.reading import add_reading_arguments, check_extra, open_run

if TYPE_CHECKING:
    from rollscope.answers.doctor import Checkup
    from rollscope.screens.tables import Screen

__all__ = ["DoctorCommand"]

_STYLES: Final = {"problem": "bold red", "warning": "yellow", "note": "dim"}


class DoctorCommand:
    """Examines a run."""

    name = "doctor"
    summary = "say what is wrong with a run's data and what to do about it"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add_reading_arguments(parser)
        parser.add_argument(
            "--quick", action="store_true", help="do not read every sealed file to its end"
        )

    def run(self, args: Namespace) -> int:
        """Print the findings; the exit code is 1 if there are any but notes."""
        check_extra()
        from rollscope.answers.doctor import examine
        from rollscope.cli.terminal.output import FINE, FOUND, print_json
        from rollscope.cli.terminal.progress import bar_of
        from rollscope.screens.tables import Screen

        with open_run(args, tell=False) as store, bar_of("Checking segments") as progress:
            checkup = examine(store, deep=not args.quick, progress=progress)
        if args.json:
            print_json(checkup)
        else:
            sys.stdout.write(_report(checkup, Screen.of()))
        return FINE if checkup.is_fine else FOUND


def _report(checkup: "Checkup", screen: "Screen") -> str:
    from rich.text import Text

    from rollscope.analysis.wording import say_count
    from rollscope.screens.tables import render, say_size, wrap

    checked = (
        f", {say_size(checkup.checked_bytes)} of segments read" if checkup.checked_bytes else ""
    )
    state = "imported" if 0 < checkup.processes == checkup.imported else f"{checkup.alive} alive"
    summary = (
        f"{say_count(checkup.processes, 'process')}, {state}; "
        f"{say_count(checkup.spans, 'span')}{checked}; {say_size(checkup.free_bytes)} free on disk"
    )
    parts = [Text(wrap(checkup.run, screen), style="bold"), Text(wrap(summary, screen))]
    for finding in checkup.findings:
        word = finding.severity.value
        said = wrap(f"{word}: {finding.sentence}", screen)
        parts.append(Text.assemble("\n", (word, _STYLES[word]), said[len(word) :]))
        parts.append(Text(wrap(f"-> {finding.advice}", screen, indent=2, hang=3)))
    if checkup.is_fine:
        parts.append(Text("\nNothing is wrong with it.", style="green"))
    return render(parts, screen)
