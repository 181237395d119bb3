"""`rollscope show`: one rollout, what it did, when, and what became of it."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rollscope.cli.arguments import add_examples
from rollscope.cli.reading import add_reading_arguments, check_extra, open_source
from rollscope.errors import CommandError

__all__ = ["ShowCommand"]


class ShowCommand:
    """Tells everything about one session."""

    name = "show"
    summary = "show one rollout: phases, spans, where it hangs, its siblings"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add_reading_arguments(parser)
        parser.add_argument(
            "session", help="its id (16 hex digits), or task and sample as in gsm8k/8421#3"
        )
        parser.add_argument("--all", action="store_true", help="show every span, however many")
        add_examples(
            parser,
            "example: rollscope show runs/first 'gsm8k/8421#3'",
            "",
            "Without a run, the newest one is meant.",
        )

    def run(self, args: Namespace) -> int:
        """Print the session."""
        check_extra()
        from rollscope.answers.session import one_session
        from rollscope.cli.terminal.output import print_json
        from rollscope.cli.terminal.pager import print_text
        from rollscope.screens.session import session_screen
        from rollscope.screens.tables import Screen

        if args.run is None and Path(args.session).is_dir():
            raise CommandError(
                f"which session of {args.session}? Give its id or task#sample behind the run; "
                f"`rollscope sessions {args.session}` lists them",
                2,
            )
        with open_source(args) as store:
            answer = one_session(store, args.session)
        if args.json:
            print_json(answer)
        else:
            print_text(session_screen(answer, Screen.of(), is_whole=args.all))
        return 0
