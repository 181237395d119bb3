"""`rollscope sessions`: find rollouts by step, time and a filter, and list them in any order."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from rollscope.cli.arguments import add_examples, add_scope, allow_minus
from rollscope.cli.reading import add_reading_arguments, check_extra, open_source
from rollscope.cli.times import TIME_PATTERN, add_times, parse_time
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from rollscope.store.clickhouse.store import ClickHouseStore
    from rollscope.store.embedded import RunStore

__all__ = ["SessionsCommand"]

_KEYS = ("start", "end", "ran", "waited", "reward", "tokens")


class SessionsCommand:
    """Lists sessions."""

    name = "sessions"
    summary = "find rollouts by filter, steps and time, and list them"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add_reading_arguments(parser)
        add_scope(parser)
        parser.add_argument(
            "--filter",
            default="",
            metavar="TEXT",
            help="which sessions, such as 'phase:toolcall host:gpu-07 ran>30s "
            "outcome:failed,timeout reward<=0 -family:swe'",
        )
        parser.add_argument(
            "--sort",
            default="-start",
            metavar="KEY",
            help=f"{', '.join(_KEYS)}; a minus puts the greatest first (default: -start)",
        )
        parser.add_argument("--limit", type=int, default=15, help="how many to list (default: 15)")
        add_times(parser)
        allow_minus(parser, "|".join([TIME_PATTERN, *_KEYS]))
        add_examples(
            parser, "example: rollscope sessions runs/first --filter 'outcome:failed' --sort -ran"
        )

    def run(self, args: Namespace) -> int:
        """Print the sessions."""
        check_extra()
        if args.limit < 1:
            raise CommandError(f"--limit must be 1 or more, not {args.limit}", 2)
        from rollscope.analysis.filters import FilterError
        from rollscope.answers.scope import resolve_scope
        from rollscope.answers.sessions import list_sessions
        from rollscope.cli.terminal.filters import filter_trouble
        from rollscope.cli.terminal.output import print_json
        from rollscope.cli.terminal.pager import print_text
        from rollscope.screens.sessions import sessions_screen
        from rollscope.screens.tables import Screen

        with open_source(args) as store:
            scope = resolve_scope(store, args.scope)
            since_ns, until_ns = _times(store, args)
            try:
                answer = list_sessions(
                    store, scope, args.filter, args.sort, args.limit, since_ns, until_ns
                )
            except FilterError as error:
                raise filter_trouble(args.filter, error) from None
        if args.json:
            print_json(answer)
        else:
            print_text(sessions_screen(answer, Screen.of(), scope=scope.text, sort=args.sort))
        return 0


def _times(store: "RunStore | ClickHouseStore", args: Namespace) -> tuple[int | None, int | None]:
    """Read both times; of a run that is over, they count from its end."""
    if args.since is None and args.until is None:
        return None, None
    from rollscope.answers.moment import moment_of

    now_ns = moment_of(store).now_ns
    since_ns = None if args.since is None else parse_time(args.since, now_ns)
    until_ns = None if args.until is None else parse_time(args.until, now_ns)
    if since_ns is not None and until_ns is not None and until_ns < since_ns:
        raise CommandError(f"--until {args.until} is before --since {args.since}", 2)
    return since_ns, until_ns
