"""Options of `rollscope view` that say which inference engines are asked for their metrics."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rollscope.errors import CommandError

if TYPE_CHECKING:
    from rollscope.collect.scraping import ScrapeSettings

__all__ = ["add_scrape_arguments", "scrape_settings"]

_EVERY_S: Final = 2.0
_LEAST_EVERY_S: Final = 0.2
_MOST_EVERY_S: Final = 3600.0


def add_scrape_arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--scrape",
        action="append",
        default=[],
        metavar="NAME=URL",
        help="ask this inference engine for its metrics, and show them for the replica NAME; "
        "may be repeated",
    )
    parser.add_argument(
        "--scrape-file",
        type=Path,
        metavar="FILE",
        help="ask those that a file lists, in the form of Prometheus' file discovery, as Ray "
        "writes it; read again when it changes",
    )
    parser.add_argument(
        "--scrape-every",
        type=float,
        default=_EVERY_S,
        metavar="S",
        help=f"how many seconds apart (default: {_EVERY_S:g})",
    )
    parser.add_argument(
        "--scrape-also",
        action="append",
        default=[],
        metavar="GLOB",
        help="keep metrics of such names too, as ray_node_*; may be repeated",
    )
    parser.add_argument(
        "--sd-dir",
        type=Path,
        metavar="DIR",
        help="write all that are asked to a file there, for a Prometheus that discovers services "
        "by files; kept up to date",
    )


def scrape_settings(args: Namespace) -> "ScrapeSettings":
    """Read the options.

    Raises:
        CommandError: One of them cannot be used.
    """
    from rollscope.collect.scraping import ScrapeSettings
    from rollscope.collect.targets import parse_named_target

    if not _LEAST_EVERY_S <= args.scrape_every <= _MOST_EVERY_S:
        raise CommandError(
            f"--scrape-every has to be from {_LEAST_EVERY_S:g} to {_MOST_EVERY_S:g} seconds", 2
        )
    try:
        targets = tuple(parse_named_target(text) for text in args.scrape)
    except ValueError as error:
        raise CommandError(f"--scrape: {error}", 2) from None
    return ScrapeSettings(
        targets, args.scrape_file, args.scrape_every, tuple(args.scrape_also), args.sd_dir
    )
