"""`rollscope sql`: a run asked in SQL, by query, file, pipe or prompt."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rollscope.cli.reading import add_reading_arguments, check_extra, open_run
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from rollscope.store.prompt import Prompt

__all__ = ["SqlCommand"]

_VERBS: Final = ("select", "with", "from", "describe", "show", "summarize")
_SHOWN_ROWS: Final = 1_000
"""Rows of a table in a terminal; more than anybody reads, and few enough to draw at once."""


class SqlCommand:
    """Answers SQL over the views of a run; reads nothing else and writes nothing."""

    name = "sql"
    summary = "ask a run in SQL (DuckDB's), at a prompt or with a query"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add_reading_arguments(parser)
        parser.add_argument("file", nargs="?", help="a file of queries, or - for the input")
        parser.add_argument("-c", "--command", metavar="QUERY", help="run this query and end")
        parser.add_argument(
            "--format",
            choices=("table", "csv", "json"),
            default="table",
            help="how to print (default: table); --json is short for --format json",
        )
        parser.add_argument(
            "--rows",
            type=int,
            help=f"print at most so many (default: {_SHOWN_ROWS} as a table, else all)",
        )

    def run(self, args: Namespace) -> int:
        """Answer what is asked."""
        check_extra()
        text = _given_query(args)
        shape = "json" if args.json else args.format
        from rollscope.store.prompt import Prompt

        with open_run(args) as store, Prompt(store, threads=args.threads) as prompt:
            if text is None:
                from rollscope.cli.terminal.repl import talk

                return talk(prompt, _limit(args, shape), shape)
            _answer(prompt, text, _limit(args, shape), shape)
        return 0


def _given_query(args: Namespace) -> str | None:
    """Give what is to be asked; None to ask at the prompt."""
    if args.rows is not None and args.rows < 1:
        raise CommandError(f"--rows must be 1 or more, not {args.rows}", 2)
    if args.command is not None and args.file is not None:
        raise CommandError("give either -c QUERY or a file, not both", 2)
    if args.command is not None:
        return str(args.command)
    if args.file is None and sys.stdin.isatty():
        return None
    try:
        if args.file in (None, "-"):
            return sys.stdin.read()
        if _is_query(args.file):
            return str(args.file)
        return Path(args.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        where = "the input" if args.file in (None, "-") else args.file
        raise CommandError(f"cannot read the queries in {where}: {error}") from None


def _is_query(text: str) -> bool:
    """Say whether a query was given where a file belongs: no path has those words."""
    return text.split(None, 1)[0].lower() in _VERBS and not Path(text).exists()


def _limit(args: Namespace, shape: str) -> int | None:
    if args.rows is not None:
        return int(args.rows)
    return _SHOWN_ROWS if shape == "table" else None


def _answer(prompt: "Prompt", text: str, max_rows: int | None, shape: str) -> None:
    from rollscope.cli.terminal.results import print_answer

    answers = prompt.ask(text, max_rows=max_rows)
    if not answers:
        raise CommandError("there is no query in what was given", 2)
    for number, answer in enumerate(answers):
        if number and shape == "table":
            print()
        print_answer(answer, shape)
