"""`rollscope top`: the run in a terminal, live; or one picture of it."""

import sys
from argparse import ArgumentParser, Namespace

from rollscope.cli.arguments import add_examples
from rollscope.cli.reading import add_place_arguments, check_extra, chosen_run, hints_of, open_run
from rollscope.errors import CommandError

__all__ = ["TopCommand"]


class TopCommand:
    """Watches a run."""

    name = "top"
    summary = "watch a run live in the terminal"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "run",
            nargs="?",
            help="a run directory or a run's name; it need not be there yet (default: the newest "
            "run in --dir)",
        )
        add_place_arguments(parser)
        parser.add_argument(
            "--once", action="store_true", help="print one picture and end; for logs and scripts"
        )
        add_examples(
            parser,
            "keys: g n now, g s steps, Enter open, Esc back, Space pause, ? all keys, q quit",
            "",
            "example: rollscope top runs/first",
            "         rollscope top runs/first --once >> health.log",
        )

    def run(self, args: Namespace) -> int:
        """Show the run until q is pressed."""
        if args.once:
            return _print_once(args)
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise CommandError("top needs a terminal; `rollscope top --once` prints one picture", 2)
        check_extra("textual")
        from rollscope.tui.app import TopApp

        error = TopApp(lambda: chosen_run(args), threads=args.threads).run()
        if error is not None:
            raise error
        return 0


def _print_once(args: Namespace) -> int:
    with open_run(args) as store:
        from rollscope.answers.now import now
        from rollscope.answers.overview import overview
        from rollscope.answers.steps import slowest_step
        from rollscope.screens.now import now_screen
        from rollscope.screens.tables import Screen

        text = now_screen(
            overview(store),
            now(store),
            Screen.of(),
            slowest=slowest_step(store),
            hints=hints_of(args, store),
        )
        sys.stdout.write(text)
    return 0
