"""The one guard between Rollscope's own faults and the host program.

Everything a host program calls goes through `guarded` or ends in `tell_once`: an internal fault is
logged in one sentence, once per place, and the host goes on. With `ROLLSCOPE_RAISE=1` faults are
raised instead; our own tests run that way.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rollscope.config import RAISE_VARIABLE

__all__ = ["SINK_TROUBLE", "forget_told", "guarded", "pass_over", "tell", "tell_once"]

SINK_TROUBLE = "sink"
"""The one key of everything to be told about a sink: a program hears one sentence of it."""

_MOST_TOLD = 1000
_told: set[str] = set()


def tell(message: str, *args: object) -> None:
    """Log a warning."""
    import logging  # 5 ms, spent only when there is something to tell

    with suppress(Exception):  # the handlers are the host's, and one that fails must not end us
        logging.getLogger("rollscope").warning(message, *args)


def tell_once(key: str, message: str, *args: object) -> None:
    """Log a warning the first time `key` comes up in this process; a thousand of them at most."""
    if key in _told or len(_told) > _MOST_TOLD:
        return
    _told.add(key)
    if len(_told) > _MOST_TOLD:
        # A program that makes up names as it goes would fill its log, and our memory.
        message, args = "Rollscope has told %d different things and keeps quiet now", (_MOST_TOLD,)
    tell(message, *args)


def forget_told() -> None:
    """Let every message be told again: a forked child and a new run start afresh."""
    _told.clear()


def pass_over(place: str, error: Exception) -> None:
    """Deal with an internal fault that was caught, where a `guarded` block would cost too much."""
    if os.environ.get(RAISE_VARIABLE) == "1":
        raise error
    tell_once(
        f"fault:{place}",
        "Rollscope failed in %s of process %d and goes on without it: %s: %s",
        place,
        os.getpid(),
        type(error).__name__,
        error,
    )


@contextmanager
def guarded(place: str) -> Iterator[None]:
    """Keep an internal fault from the host program; as a decorator too."""
    try:
        yield
    except Exception as error:
        pass_over(place, error)
