"""What the formats that write files share: where they go, which steps they hold, what was made."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rollscope.analysis.wording import say_seconds
from rollscope.errors import CommandError

if TYPE_CHECKING:
    from rollscope.exporting.picking import Steps
    from rollscope.store.embedded import RunStore

__all__ = ["TO_OUTPUT", "chosen_place", "chosen_steps", "tell_made"]

TO_OUTPUT: Final = "-"


def chosen_place(args: Namespace, run: Path, ending: str) -> Path | None:
    """Give the file or folder to write, None for the program's output.

    Raises:
        CommandError: It was not named, and what it would be called is there already.
    """
    if args.output is not None:
        return None if args.output == TO_OUTPUT else Path(args.output)
    from rollscope.exporting.output import inferred_path

    path = inferred_path(run, ending)
    if path.exists():
        raise CommandError(f"{path} is there already; say -o {path} to replace it")
    return path


def chosen_steps(args: Namespace, store: "RunStore") -> "Steps | None":
    """Give the steps that were asked for; None for all there is."""
    from rollscope.answers.scope import resolve_scope

    scope = resolve_scope(store, args.scope)
    return None if scope.first is None or scope.last is None else (scope.first, scope.last)


def tell_made(args: Namespace, path: Path, made: dict[str, int], seconds: float) -> None:
    """Say what was written where; as JSON if that was asked for."""
    if args.json:
        from rollscope.cli.terminal.output import print_json

        print_json({"file": str(path), "exported": made})
        return
    size = made.get("bytes", 0)
    told = ", ".join(f"{n} {what}" for what, n in made.items() if what != "bytes" and n)
    print(f"{path}: {told or 'nothing'}, {size / 1e6:.1f} MB, {say_seconds(seconds)}")
