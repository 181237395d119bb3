"""`rollscope phases`: how long phases take, how much of it is queueing, and what fails in them."""

from argparse import ArgumentParser, Namespace

from rollscope.cli.arguments import add_examples, add_scope
from rollscope.cli.reading import add_reading_arguments, check_extra, open_source

__all__ = ["PhasesCommand"]


class PhasesCommand:
    """Measures phases."""

    name = "phases"
    summary = "say how long generation, tools and rewards take, and what fails"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add_reading_arguments(parser)
        add_scope(parser)
        parser.add_argument(
            "--by",
            choices=("name", "detail", "family", "worker"),
            default="name",
            help="split phases by tool or model (detail), task family or worker (default: name)",
        )
        parser.add_argument(
            "--phase", metavar="NAME", help="only this phase, with a histogram of its durations"
        )
        add_examples(parser, "example: rollscope phases runs/first --phase toolcall --by detail")

    def run(self, args: Namespace) -> int:
        """Print the phases, the one with most time first."""
        check_extra()
        from rollscope.answers.phases import phases
        from rollscope.answers.scope import resolve_scope
        from rollscope.cli.terminal.output import print_json
        from rollscope.cli.terminal.pager import print_text
        from rollscope.screens.phases import one_phase, phases_screen
        from rollscope.screens.tables import Screen

        with open_source(args) as store:
            scope = resolve_scope(store, args.scope)
            answer = phases(store, scope, args.by)
            if args.phase is not None:
                answer = one_phase(store, scope, answer, args.phase)
        if args.json:
            print_json(answer)
        else:
            print_text(phases_screen(answer, Screen.of()))
        return 0
