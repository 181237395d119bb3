"""Arguments that several reading commands take: which steps, examples in help, a leading minus."""

import re
from argparse import ArgumentParser, RawDescriptionHelpFormatter

__all__ = ["add_examples", "add_scope", "allow_minus"]


def add_scope(parser: ArgumentParser, *, default: str | None = "all") -> None:
    """Let the caller say which steps are meant."""
    shown = "" if default is None else f" (default: {default})"
    parser.add_argument(
        "--scope",
        default=default,
        metavar="STEPS",
        help=f"which steps' sessions: latest, all, a step as 37, or 30-40{shown}",
    )


def add_examples(parser: ArgumentParser, *lines: str) -> None:
    """Show examples, and whatever else has to be kept as it is, at the end of the help."""
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = "\n".join(lines)


def allow_minus(parser: ArgumentParser, pattern: str) -> None:
    """Let values such as `-5m` and `-ran` follow an option as a word of their own.

    argparse takes a word with a minus for an option unless it looks like a negative number, and
    has no other way to be told what such a number looks like.
    """
    parser._negative_number_matcher = re.compile(rf"-(?:{pattern})$")
