"""What a verb of the command line is."""

from argparse import ArgumentParser, Namespace
from typing import Protocol

__all__ = ["Command"]


class Command(Protocol):
    """One verb: a module-level object with a name, its arguments and what it does."""

    name: str
    summary: str

    def configure(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""

    def run(self, args: Namespace) -> int:
        """Do the work and give the exit code.

        Raises:
            RollscopeError: It cannot be done; the message is shown to the user.
        """
