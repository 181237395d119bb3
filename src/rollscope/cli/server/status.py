"""`rollscope server status`: what runs, and whether it answers."""

import os
from argparse import ArgumentParser, Namespace
from typing import Final

from rollscope.cli.reading import check_extra
from rollscope.cli.server.table import add_state_dir, print_stack, state_dir
from rollscope.stack.looking import look_at

__all__ = ["StatusCommand"]

_DOWN: Final = 1
_NOTHING: Final = 3


class StatusCommand:
    """Shows the stack."""

    name = "status"
    summary = "show what runs; exit code 1 if a member is down, 3 if nothing runs"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        add_state_dir(parser)
        parser.add_argument("--json", action="store_true", help="print the answer as JSON")

    def run(self, args: Namespace) -> int:
        """Look, and say what was seen."""
        check_extra()
        where = state_dir(args)
        stack = look_at(where)
        is_here = stack.host in ("", os.uname().nodename)
        if args.json:
            from rollscope.cli.terminal.output import print_json

            print_json(stack)
        elif not stack.is_running:
            print(f"Nothing is running in {where.path}; rollscope server start begins.")
        elif not is_here:
            print(f"It runs on {stack.host}: ask there.")
        elif not stack.members:
            print(f"It is being started by process {stack.supervisor}.")
        else:
            print_stack(stack)
        if not stack.is_supervised and stack.is_running and not args.json:
            print("\nIts supervisor is gone; rollscope server stop ends what is left.")
        if not stack.is_running:
            return _NOTHING
        return 0 if stack.is_fine else _DOWN
