"""`rollscope stuck`: which rollouts are stuck right now, in which phase, since when, and where."""

import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Final

from rollscope.cli.arguments import add_examples
from rollscope.cli.reading import add_reading_arguments, check_extra, open_source

if TYPE_CHECKING:
    from rollscope.answers.stuck import Stuck
    from rollscope.store.clickhouse.store import ClickHouseStore
    from rollscope.store.embedded import RunStore

__all__ = ["ALARM", "StuckCommand"]

ALARM: Final = 3
"""The exit code for alarms, where `--fail` asks for it."""
_EVERY_S: Final = 2.0
_ROWS: Final = 12
"""How many sessions are listed without `--all`."""


class StuckCommand:
    """Judges what is open."""

    name = "stuck"
    summary = "say which rollouts are stuck right now, and at which line"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add_reading_arguments(parser)
        parser.add_argument("--all", action="store_true", help="list every open session")
        parser.add_argument(
            "--min-band",
            choices=("slow", "stuck"),
            help="list only what is at least slow (beyond p99) or stuck (beyond 3 x p99, overdue "
            "or silent)",
        )
        parser.add_argument(
            "--stacks", action="store_true", help="print the whole chain of awaits of each line"
        )
        parser.add_argument(
            "--fail", action="store_true", help="exit with 3 if anything is stuck; for scripts"
        )
        parser.add_argument(
            "--watch",
            nargs="?",
            type=_seconds,
            const=_EVERY_S,
            metavar="SECONDS",
            help="look again every so many seconds (2 if not given), until Ctrl-C; with --fail, "
            "until something is stuck",
        )
        add_examples(
            parser,
            "exit codes: 0 done; 3 with --fail: something is stuck, overdue or silent;",
            "1 the run cannot be read; 2 wrong usage",
            "",
            "example: rollscope stuck runs/first --fail --min-band stuck || page-me",
        )

    def run(self, args: Namespace) -> int:
        """Print the open sessions, the most suspicious first."""
        check_extra()
        from rollscope.answers.stuck import stuck

        with open_source(args) as store:
            if args.watch is not None:
                return _watch(store, args)
            answer = stuck(store)
            _print(store, answer, args)
        return ALARM if args.fail and answer.alarms else 0


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 86_400:
        raise ArgumentTypeError(
            f"{text!r} is no number of seconds from 0.1 up (a run goes before --watch)"
        )
    return seconds


def _print(
    store: "RunStore | ClickHouseStore", answer: "Stuck", args: Namespace, *, rows: int = _ROWS
) -> None:
    from rollscope.cli.terminal.output import print_json
    from rollscope.cli.terminal.pager import print_text
    from rollscope.screens.stuck import look_at_lost, stuck_screen
    from rollscope.screens.tables import Screen

    if args.json:
        print_json(answer)
        return
    text = stuck_screen(
        answer,
        Screen.of(),
        lost=look_at_lost(store),
        min_band=args.min_band,
        is_all=args.all,
        most=rows,
        has_stacks=args.stacks,
    )
    if args.watch is None:
        print_text(text)
    else:
        sys.stdout.write(text)


def _watch(store: "RunStore | ClickHouseStore", args: Namespace) -> int:
    """Look again and again; each look replaces the last one on a terminal."""
    import shutil

    from rollscope.answers.stuck import stuck

    is_drawn = sys.stdout.isatty() and not args.json
    try:
        while True:
            answer = stuck(store)
            if is_drawn:
                # Home, and clear from there on: clearing first would flicker.
                sys.stdout.write("\x1b[H\x1b[J")
            # The sentence, the heads and the lines that sessions hang at take the rest.
            rows = max(shutil.get_terminal_size().lines - 14, 3) if is_drawn else _ROWS
            _print(store, answer, args, rows=rows)
            if is_drawn:
                now = time.strftime("%H:%M:%S")
                sys.stdout.write(f"\n{now}, looking every {args.watch:g} s; Ctrl-C ends.\n")
            sys.stdout.flush()
            if args.fail and answer.alarms:
                return ALARM
            time.sleep(args.watch)
            store.refresh()
    except KeyboardInterrupt:
        return 0
