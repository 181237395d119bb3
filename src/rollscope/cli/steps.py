"""`rollscope steps`: the steps of a run, or the whole story of one of them."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from rollscope.cli.arguments import add_examples
from rollscope.cli.reading import add_reading_arguments, check_extra, hints_of, open_source
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from rollscope.answers.steps import StepAnswer, Steps
    from rollscope.store.clickhouse.store import ClickHouseStore
    from rollscope.store.embedded import RunStore

__all__ = ["StepsCommand"]


class StepsCommand:
    """Lists steps and says why they took so long."""

    name = "steps"
    summary = "list the steps with what made them slow, or tell one's story"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add_reading_arguments(parser)
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            "--scope", metavar="STEPS", help="latest, all, a step as 37, or 30-40; one step is told"
        )
        which.add_argument(
            "--last", type=int, metavar="N", help="list the last so many steps (default: 10)"
        )
        which.add_argument("--step", type=int, metavar="N", help="tell the story of this step")
        add_examples(
            parser,
            "examples: rollscope steps runs/first",
            "          rollscope steps runs/first --step 37",
        )

    def run(self, args: Namespace) -> int:
        """Print the list, or one step."""
        check_extra()
        if args.last is not None and args.last < 1:
            raise CommandError(f"--last must be 1 or more, not {args.last}", 2)
        from rollscope.cli.terminal.output import print_json
        from rollscope.cli.terminal.pager import print_text
        from rollscope.screens.step import step_screen
        from rollscope.screens.steps import steps_screen
        from rollscope.screens.tables import Screen

        with open_source(args) as store:
            one, listed = _ask(store, args)
            hints = hints_of(args, store)
            if args.json:
                print_json(listed if one is None else one)
            elif one is not None:
                print_text(step_screen(one, Screen.of(), now_ns=store.now_ns, hints=hints))
            elif listed is not None:
                print_text(steps_screen(listed, Screen.of(), hints))
        return 0


def _ask(
    store: "RunStore | ClickHouseStore", args: Namespace
) -> "tuple[StepAnswer | None, Steps | None]":
    from rollscope.answers.scope import known_steps, resolve_scope
    from rollscope.answers.steps import one_step, steps

    if args.step is not None:
        return one_step(store, args.step), None
    if args.scope is not None:
        scope = resolve_scope(store, args.scope)
        if scope.first is not None and scope.first == scope.last:
            return one_step(store, scope.first), None
        return None, steps(store, scope)
    known = known_steps(store)
    return None, steps(store, most=min(args.last or 10, max(len(known), 1)))
