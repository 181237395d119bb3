"""The one guard between Rollscope's own faults and the host program.

Everything a host program calls goes through `guarded` or ends in `tell_once`: an internal fault is
logged in one sentence, once per place, and the host goes on. With `ROLLSCOPE_RAISE=1` faults are
raised instead; our own tests run that way.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["forget_told", "guarded", "tell", "tell_once"]

_told: set[str] = set()


def tell(message: str, *args: object) -> None:
    """Log a warning."""
    import logging  # 5 ms, spent only when there is something to tell

    logging.getLogger("rollscope").warning(message, *args)


def tell_once(key: str, message: str, *args: object) -> None:
    """Log a warning the first time `key` comes up in this process."""
    if key in _told:
        return
    _told.add(key)
    tell(message, *args)


def forget_told() -> None:
    """Let every message be told again: a forked child and a new run start afresh."""
    _told.clear()


@contextmanager
def guarded(place: str) -> Iterator[None]:
    """Keep an internal fault from the host program; as a decorator too."""
    try:
        yield
    except Exception as error:
        if os.environ.get("ROLLSCOPE_RAISE") == "1":
            raise
        tell_once(
            f"fault:{place}",
            "Rollscope failed in %s and goes on without it: %s: %s",
            place,
            type(error).__name__,
            error,
        )
