"""The entry point: finds the verb, runs it, and turns errors into one clear line."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from rollscope._version import __version__
from rollscope.cli.cat import CatCommand
from rollscope.cli.command import Command
from rollscope.cli.compact import CompactCommand
from rollscope.cli.compare import CompareCommand
from rollscope.cli.completion import CompletionCommand
from rollscope.cli.demo import DemoCommand
from rollscope.cli.doctor import DoctorCommand
from rollscope.cli.export import ExportCommand
from rollscope.cli.feed import FeedCommand
from rollscope.cli.hotspots import HotspotsCommand
from rollscope.cli.importing import ImportCommand
from rollscope.cli.phases import PhasesCommand
from rollscope.cli.report import ReportCommand
from rollscope.cli.runs import RunsCommand
from rollscope.cli.server import ServerCommand
from rollscope.cli.sessions import SessionsCommand
from rollscope.cli.ship import ShipCommand
from rollscope.cli.show import ShowCommand
from rollscope.cli.sql import SqlCommand
from rollscope.cli.steps import StepsCommand
from rollscope.cli.stuck import StuckCommand
from rollscope.cli.targets import TargetsCommand
from rollscope.cli.top import TopCommand
from rollscope.cli.view import ViewCommand
from rollscope.errors import CommandError, RollscopeError

__all__ = ["main", "make_parser"]

_COMMANDS: tuple[Command, ...] = (
    DemoCommand(),
    ViewCommand(),
    ServerCommand(),
    ReportCommand(),
    TopCommand(),
    RunsCommand(),
    StuckCommand(),
    StepsCommand(),
    HotspotsCommand(),
    PhasesCommand(),
    SessionsCommand(),
    ShowCommand(),
    CompareCommand(),
    DoctorCommand(),
    SqlCommand(),
    CatCommand(),
    CompactCommand(),
    ImportCommand(),
    ExportCommand(),
    FeedCommand(),
    ShipCommand(),
    TargetsCommand(),
    CompletionCommand(),
)
"""In the order in which help lists them."""


def make_parser() -> ArgumentParser:
    """Give the parser of the whole command line."""
    parser = ArgumentParser(prog="rollscope", description="Shows where every rollout's time goes.")
    parser.add_argument("--version", action="version", version=f"rollscope {__version__}")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        verb = verbs.add_parser(command.name, help=command.summary, description=command.summary)
        command.configure(verb)
        verb.set_defaults(execute=command.run, refuse=verb.error)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and give the exit code."""
    args, unknown = make_parser().parse_known_args(argv)
    if unknown:  # with the usage of the command, which has what was meant
        args.refuse(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        code: int = args.execute(args)
        sys.stdout.flush()
    except RollscopeError as error:
        print(f"rollscope: {error}", file=sys.stderr)
        return error.exit_code if isinstance(error, CommandError) else 1
    except BrokenPipeError:
        # The reader of our output has gone, as in `| head`; there is nobody left to tell.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return 0
    except OSError as error:  # a file that may not be read, a disk that is gone
        print(f"rollscope: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return code
