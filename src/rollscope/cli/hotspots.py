"""`rollscope hotspots`: where session time goes, by span path."""

from argparse import ArgumentParser, Namespace

from rollscope.cli.arguments import add_examples, add_scope
from rollscope.cli.reading import add_reading_arguments, check_extra, open_source
from rollscope.errors import CommandError

__all__ = ["HotspotsCommand"]


class HotspotsCommand:
    """Ranks span paths by self time."""

    name = "hotspots"
    summary = "say where the time of all sessions goes, by span path"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add_reading_arguments(parser)
        add_scope(parser)
        parser.add_argument(
            "--by",
            choices=("path", "name", "host", "tool", "family"),
            default="path",
            help="take spans together by name alone, or apart by host, tool or task family "
            "(default: path)",
        )
        parser.add_argument(
            "--outside",
            action="store_true",
            help="look at what is not part of a session: trainers, syncs, services",
        )
        parser.add_argument(
            "--limit", type=int, default=12, help="how many rows; 0 for all (default: 12)"
        )
        add_examples(parser, "example: rollscope hotspots runs/first --scope 30-40 --by tool")

    def run(self, args: Namespace) -> int:
        """Print the paths, the one with most self time first."""
        check_extra()
        if args.limit < 0:
            raise CommandError(f"--limit must be 0 or more, not {args.limit}", 2)
        from rollscope.answers.hotspots import find_hotspots
        from rollscope.answers.scope import resolve_scope
        from rollscope.cli.terminal.output import print_json
        from rollscope.cli.terminal.pager import print_text
        from rollscope.screens.hotspots import hotspots_screen
        from rollscope.screens.tables import Screen

        with open_source(args) as store:
            scope = resolve_scope(store, args.scope)
            answer = find_hotspots(store, scope, args.by, outside=args.outside)
        if args.json:
            print_json(answer)
        else:
            print_text(hotspots_screen(answer, Screen.of(), most=args.limit or None))
        return 0
