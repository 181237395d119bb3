"""`rollscope compare`: what changed from run to run or step to step, and what sets some apart."""

import re
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rollscope.cli.arguments import add_examples
from rollscope.cli.reading import add_shared_arguments, check_extra, chosen_run, open_run
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from rollscope.answers.compare import Comparison, Selection

__all__ = ["CompareCommand", "split_side"]

_SIDE: Final = re.compile(r"(?P<run>.*)@(?P<scope>latest|all|\d+(?:-\d+)?)", re.IGNORECASE)


class CompareCommand:
    """Holds two sides against each other."""

    name = "compare"
    summary = "compare runs, steps, or some sessions with all others"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "first", nargs="?", metavar="A", help="a run, RUN@STEPS, or @STEPS of the newest run"
        )
        parser.add_argument("second", nargs="?", metavar="B", help="what to hold against it")
        add_shared_arguments(parser)
        parser.add_argument(
            "--filter", metavar="TEXT", help="compare the sessions it lets through with the rest"
        )
        parser.add_argument("--scope", metavar="STEPS", help="with --filter: which steps' sessions")
        parser.add_argument("--scope-a", metavar="STEPS", help="the same as A@STEPS")
        parser.add_argument("--scope-b", metavar="STEPS", help="the same as B@STEPS")
        add_examples(
            parser,
            "examples: rollscope compare runs/before runs/after",
            "          rollscope compare @3-5 @9-11",
            "          rollscope compare runs/first --filter 'ran>30s'",
        )

    def run(self, args: Namespace) -> int:
        """Print both sides and how they differ."""
        check_extra()
        from rollscope.cli.terminal.output import print_json
        from rollscope.cli.terminal.pager import print_text
        from rollscope.screens.compare import comparison_screen, selection_screen
        from rollscope.screens.tables import Screen

        _check(args)
        if args.filter is not None:
            chosen = _select(args)
            text = "" if args.json else selection_screen(chosen, Screen.of(), args.filter)
            answer: Comparison | Selection = chosen
        else:
            found = _compare(args)
            text = "" if args.json else comparison_screen(found, Screen.of())
            answer = found
        if args.json:
            print_json(answer)
        else:
            print_text(text)
        return 0


def _check(args: Namespace) -> None:
    if args.filter is not None:
        if args.second is not None or args.scope_a or args.scope_b:
            raise CommandError("--filter compares within one run: give one run and --scope", 2)
        return
    if args.scope is not None:
        raise CommandError("--scope goes with --filter; else write A@STEPS B@STEPS", 2)
    if args.second is None and not (args.scope_a and args.scope_b):
        raise CommandError(
            "two sides are needed: two runs, RUN@3 RUN@4, @3 @4 of the newest run, or one run with "
            "--scope-a and --scope-b; --filter compares some sessions with the rest",
            2,
        )


def split_side(text: str | None) -> tuple[str | None, str | None]:
    """Take a side apart into a run and its steps; either may be left out."""
    if text is None:
        return None, None
    match = _SIDE.fullmatch(text)
    if match is None or Path(text).exists():
        return text, None
    return match["run"] or None, match["scope"].lower()


def _named(args: Namespace, run: str | None) -> Namespace:
    return Namespace(run=run, dir=args.dir, threads=args.threads)


def _compare(args: Namespace) -> "Comparison":
    from rollscope.answers.compare import compare_runs
    from rollscope.answers.scope import resolve_scope

    first_run, first_scope = split_side(args.first)
    second_run, second_scope = split_side(args.first if args.second is None else args.second)
    first_path = chosen_run(_named(args, first_run))
    second_path = chosen_run(_named(args, second_run))
    with ExitStack() as stack:
        first = second = stack.enter_context(open_run(_named(args, first_run)))
        if second_path.resolve() != first_path.resolve():
            second = stack.enter_context(open_run(_named(args, str(second_path))))
        left = resolve_scope(first, args.scope_a or first_scope or "all")
        right = resolve_scope(second, args.scope_b or second_scope or "all")
        if first is second and left == right:
            raise CommandError("both sides are the same; compare two runs, or @3 with @4", 2)
        names = first_path.name, second_path.name
        if first is second:
            names = f"step {left.text}", f"step {right.text}"
        else:
            names = _side_name(names[0], left.text), _side_name(names[1], right.text)
        return compare_runs(first, left, second, right, names)


def _side_name(run: str, scope: str) -> str:
    return run if scope == "all" else f"{run}@{scope}"


def _select(args: Namespace) -> "Selection":
    from rollscope.analysis.filters import FilterError, parse_filter
    from rollscope.answers.compare import compare_selection
    from rollscope.answers.scope import resolve_scope
    from rollscope.cli.terminal.filters import filter_trouble

    try:
        expression = parse_filter(args.filter)
    except FilterError as error:
        raise filter_trouble(args.filter, error) from None
    run, scope = split_side(args.first)
    with open_run(_named(args, run)) as store:
        chosen = resolve_scope(store, args.scope or scope or "all")
        return compare_selection(store, chosen, expression)
