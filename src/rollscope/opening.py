"""The door from the package to its readers, which a training program never goes through."""

import os
from typing import TYPE_CHECKING

from rollscope.errors import MissingExtra

if TYPE_CHECKING:
    from rollscope.answers.run import Run

__all__ = ["open"]


def open(run: str | os.PathLike[str], *, dir: str = "runs", threads: int | None = None) -> "Run":
    """Open a recorded run to ask it questions; it may still be written to.

    Args:
        run: Its directory, one of its logs, or its name in `dir`.
        dir: Where runs are looked for by name.
        threads: How many threads a query may use; all cores if not given.

    Raises:
        NotARunError: There is none; the message says what is there instead.
        MissingExtra: What reads runs is not installed.
    """
    try:
        from rollscope.answers.run import open_run  # a training program never loads it
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"reading runs needs {error.name}, which is not installed: "
            "pip install 'rollscope[server]'"
        ) from error
    return open_run(run, dir=dir, threads=threads)
