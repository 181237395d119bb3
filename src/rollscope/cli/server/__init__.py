"""`rollscope server`: our server and, if asked for, Prometheus and its kin, as one stack."""

from argparse import ArgumentParser, Namespace

from rollscope.cli.command import Command
from rollscope.cli.server.config import ConfigCommand
from rollscope.cli.server.start import StartCommand
from rollscope.cli.server.status import StatusCommand
from rollscope.cli.server.stop import StopCommand

__all__ = ["ServerCommand"]

_ACTIONS: tuple[Command, ...] = (StartCommand(), StopCommand(), StatusCommand(), ConfigCommand())


class ServerCommand:
    """Starts, stops and configures the monitoring stack."""

    name = "server"
    summary = "run the page with Prometheus and its kin beside it"

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the actions."""
        actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
        for action in _ACTIONS:
            verb = actions.add_parser(action.name, help=action.summary, description=action.summary)
            action.configure(verb)
            verb.set_defaults(act=action.run)

    def run(self, args: Namespace) -> int:
        """Do what the action says."""
        code: int = args.act(args)
        return code
