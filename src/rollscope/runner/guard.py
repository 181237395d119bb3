"""Runs code of the user's whose errors must not stop what comes after it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["log", "quietly"]

log: Final = logging.getLogger("rollscope.runner")


@contextmanager
def quietly(doing: str) -> Iterator[None]:
    """Log an error instead of letting it pass."""
    try:
        yield
    except Exception:
        log.exception("%s raised an error", doing)
