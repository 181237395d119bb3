"""What a format of `rollscope export` is, all of them, and which options belong to which."""

from argparse import ArgumentParser, Namespace
from typing import Final, Protocol

from rollscope.cli.exporting.areal import ArealFormat
from rollscope.cli.exporting.jsonlines import JsonLinesFormat
from rollscope.cli.exporting.otlp import OtlpFormat
from rollscope.cli.exporting.tables import CsvFormat, ParquetFormat
from rollscope.cli.exporting.traces import ChromeFormat, PerfettoFormat
from rollscope.errors import CommandError

__all__ = ["FORMATS", "Format", "check_options", "configure_formats"]

_OWNERS: Final = "option_owners"
_SHARED: Final = {"tables": ("csv",)}
"""Who else takes an option than the format that declares it."""


class Format(Protocol):
    """One format: its name, its options and what it does."""

    name: str

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the options that only this format has."""

    def run(self, args: Namespace) -> int:
        """Export and give the exit code.

        Raises:
            RollscopeError: It cannot be done.
        """


_ALL: Final[tuple[Format, ...]] = (
    OtlpFormat(),
    ChromeFormat(),
    PerfettoFormat(),
    JsonLinesFormat(),
    ParquetFormat(),
    CsvFormat(),
    ArealFormat(),
)
FORMATS: Final = {one.name: one for one in _ALL}


def configure_formats(parser: ArgumentParser) -> None:
    """Declare the options of all formats, and note whose each is."""
    owners: dict[str, tuple[tuple[str, ...], str, object]] = {}
    for one in _ALL:
        known = len(parser._actions)
        one.configure(parser)
        for action in parser._actions[known:]:
            takers = (one.name, *_SHARED.get(action.dest, ()))
            owners[action.dest] = (takers, action.option_strings[0], action.default)
    parser.set_defaults(**{_OWNERS: owners})


def check_options(args: Namespace) -> None:
    """See that no option of another format was given.

    Raises:
        CommandError: One was.
    """
    for dest, (takers, option, default) in getattr(args, _OWNERS).items():
        if args.format not in takers and getattr(args, dest) != default:
            known = " or ".join(takers)
            raise CommandError(f"{option} goes with --format {known}, not {args.format}", 2)
