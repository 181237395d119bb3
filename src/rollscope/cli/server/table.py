"""What the actions of `rollscope server` share: the state directory, the table, the address."""

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from rollscope.stack.statefile import StateDir, default_state_dir

if TYPE_CHECKING:
    from rollscope.stack.looking import StackView

__all__ = ["add_state_dir", "print_stack", "say", "state_dir"]

_WRONG: Final = ("failed", "down", "silent", "orphaned", "restarting")


def add_state_dir(parser: ArgumentParser) -> None:
    """Let the caller say which stack is meant."""
    parser.add_argument(
        "--state-dir",
        metavar="DIR",
        help="where state, logs and data are kept, below DIR/server (default: "
        "$ROLLSCOPE_STATE_DIR, or rollscope in $XDG_STATE_HOME or ~/.local/state)",
    )


def state_dir(args: Namespace) -> StateDir:
    """Give the state directory that is meant."""
    return StateDir(default_state_dir(os.environ, args.state_dir))


def say(text: str) -> None:
    """Tell the user something; logs of programs may be quoted in it."""
    from rollscope.screens.tables import Screen, clean

    screen = Screen.of()
    print(*(screen.fit(clean(line)) for line in text.splitlines()), sep="\n", flush=True)


def print_stack(stack: "StackView") -> None:
    """Print a table of the members, and where the page is."""
    from rollscope.screens.tables import Column, Screen, show_table

    columns = (
        Column("member"),
        Column("state"),
        Column("address"),
        Column("pid", align="right"),
        Column("version"),
    )
    rows = [
        (each.name, each.state, each.address, str(each.pid or ""), each.version)
        for each in stack.members
    ]
    print(show_table(columns, rows, Screen.of()), end="")
    for each in stack.members:
        if each.problem and each.state in _WRONG:
            say(f"{each.name}: {each.problem}; restarted {each.restarts} times.")
    for folder in dict.fromkeys(str(Path(each.log).parent) for each in stack.members):
        say(f"\nLogs are in {folder}.")
    if stack.page:
        # On a line of its own, where a terminal does not break it and lets one click on it.
        say(f"The page, of the runs in {stack.runs}:")
        print(f"{stack.page}{_token(stack.token_file)}", flush=True)


def _token(path: str | None) -> str:
    """Give what has to follow the address so that a browser is let in."""
    try:
        token = "" if path is None else Path(path).read_text().strip()
    except OSError:
        return ""
    return f"?token={quote(token, safe='')}" if token else ""
