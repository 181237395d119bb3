"""`rollscope completion`: what a shell needs to complete our command line."""

import sys
from argparse import Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Iterator
from typing import Final

from rollscope.cli.reading import check_extra

__all__ = ["CompletionCommand"]

_SHELLS: Final = ("bash", "zsh")
_RUNS: Final = "_rollscope_complete_runs"
_PREAMBLE: Final = {
    "bash": f"""
# Names of runs in ./runs or $ROLLSCOPE_DIR, and directories.
{_RUNS}() {{
  local names
  names=$(command ls -1 -- "${{ROLLSCOPE_DIR:-runs}}" 2>/dev/null)
  compgen -W "$names" -- "$1"
  compgen -d -- "$1"
}}
""",
    "zsh": f"""
# Names of runs in ./runs or $ROLLSCOPE_DIR, and directories.
{_RUNS}() {{
  local -a names
  names=(${{ROLLSCOPE_DIR:-runs}}/*(N/:t))
  compadd -a names
  _files -/
}}
""",
}


class CompletionCommand:
    """Prints a completion script."""

    name = "completion"
    summary = "print a completion script for your shell"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("shell", choices=_SHELLS)
        parser.epilog = (
            'bash: eval "$(rollscope completion bash)" in ~/.bashrc; '
            'zsh: eval "$(rollscope completion zsh)" in ~/.zshrc, after compinit'
        )

    def run(self, args: Namespace) -> int:
        """Print the script."""
        check_extra("shtab")
        import shtab

        from rollscope.cli.main import make_parser

        parser = make_parser()
        for action in _actions(parser):
            if action.dest == "run":
                # shtab reads this attribute.
                action.complete = dict.fromkeys(_SHELLS, _RUNS)  # type: ignore[attr-defined]
            elif action.dest in ("dir", "directory"):
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
            elif action.dest == "file":
                action.complete = shtab.FILE  # type: ignore[attr-defined]
        script = shtab.complete(parser, shell=args.shell, preamble=_PREAMBLE[args.shell])
        sys.stdout.write(script)
        return 0


def _actions(parser: ArgumentParser) -> Iterator[Action]:
    for action in parser._actions:  # argparse gives no other way, and shtab does the same
        yield action
        if isinstance(action, _SubParsersAction):
            for verb in action.choices.values():
                yield from _actions(verb)
