"""The reference of the command line, from its parser.

It says what `--help` prints, which each version of Python lays out in its own way.
"""

import argparse
import re
from collections.abc import Iterator
from typing import Final

from docs.generators.tables import GENERATED, table
from rollscope.cli.main import make_parser

__all__ = ["commands_page"]

_ABOUT: Final = """\
[Questions and the commands that answer them](../commands.md) shows what they print.
`rollscope COMMAND --help` says the same as this page."""


def commands_page() -> str:
    """Give the page with every command, its arguments and options."""
    parser = make_parser()
    lines = ["# The command line", "", GENERATED, "", _ABOUT, ""]
    commands = list(_commands(parser))
    rows = [(f"[`{name}`](#{_anchor(name)})", about) for name, about, _ in commands]
    lines += table(("command", ""), rows)
    for name, about, one in commands:
        lines += ["", f"## {name}", "", f"{about[:1].upper()}{about[1:]}.", "", *_usage(name, one)]
        lines += _arguments(one)
    return "\n".join(lines) + "\n"


def _commands(
    parser: argparse.ArgumentParser, prefix: str = "rollscope"
) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Give each command that does something, with what it does."""
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        about = {one.dest: one.help or "" for one in action._choices_actions}
        for name, one in action.choices.items():
            whole = f"{prefix} {name}"
            if any(isinstance(deeper, argparse._SubParsersAction) for deeper in one._actions):
                yield from _commands(one, whole)
            else:
                yield whole, about[name], one


def _usage(name: str, parser: argparse.ArgumentParser) -> list[str]:
    given = [_placed(action) for action in parser._actions if not action.option_strings]
    needed = [_written(action) for action in parser._actions if _is_needed_option(action)]
    return ["```text", " ".join([name, *needed, "[OPTION…]", *given]), "```", ""]


def _is_needed_option(action: argparse.Action) -> bool:
    return bool(action.option_strings) and action.required


def _arguments(parser: argparse.ArgumentParser) -> list[str]:
    rows = []
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction) or action.help == argparse.SUPPRESS:
            continue
        written = _written(action) if action.option_strings else _name(action)
        rows.append((f"`{written}`", _help(action)))
    return table(("argument", "meaning"), rows) if rows else []


def _written(action: argparse.Action) -> str:
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return names
    value = _name(action)
    return f"{names} [{value}]" if action.nargs == "?" else f"{names} {value}"


def _placed(action: argparse.Action) -> str:
    name = _name(action)
    return {"?": f"[{name}]", "*": f"[{name}…]", "+": f"{name}…"}.get(str(action.nargs), name)


def _name(action: argparse.Action) -> str:
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    if action.metavar:
        return action.metavar
    if action.choices:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper() if action.option_strings else action.dest


def _help(action: argparse.Action) -> str:
    text = (action.help or "").replace("%%", "%")
    return re.sub(r"%\((\w+)\)s", lambda found: str(getattr(action, found[1])), text)


def _anchor(name: str) -> str:
    return name.replace(" ", "-")
