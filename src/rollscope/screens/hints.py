"""Commands that a screen tells its reader to type next, such that they can be pasted."""

import shlex

import msgspec

__all__ = ["Hints"]


class Hints(msgspec.Struct, frozen=True):
    """How the reader calls the program and the run."""

    run: str | None = None
    """The run's directory or address; None for the newest one, which commands mean anyway."""
    command: str = "rollscope"

    def line(self, verb: str, *rest: str) -> str:
        """Write a command on the run."""
        words = (verb, *rest) if self.run is None else (verb, self.run, *rest)
        return f"{self.command} {shlex.join(words)}"
