"""Options of `rollscope view` that say which monitoring programs stand beside it."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rollscope.server.monitors import Monitors

__all__ = ["add_monitor_arguments", "monitor_settings"]


def add_monitor_arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--grafana-url",
        type=_address,
        metavar="URL",
        help="where Grafana is, for links to dashboards and traces",
    )
    parser.add_argument(
        "--tempo-url", type=_address, metavar="URL", help="where Tempo is, to be tried and linked"
    )


def monitor_settings(args: Namespace) -> "Monitors":
    """Read the options."""
    from rollscope.server.monitors import Monitors

    token_file = None if args.token_file is None else args.token_file.absolute()
    return Monitors(args.grafana_url, args.tempo_url, token_file)


def _address(text: str) -> str:
    from rollscope.server.monitors import read_base_url

    try:
        return read_base_url(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
