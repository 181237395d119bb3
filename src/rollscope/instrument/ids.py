"""Where ids come from: the operating system's randomness, never the host's seeded generators.

A process draws one random 63-bit number and counts up from it, which costs 25 ns a span instead of
a system call, and collides less than independent random ids would: two processes clash only if
their short ranges overlap. Trace ids are wholly random, as W3C asks, and drawn in bulk.
"""

import os
from itertools import count
from typing import Protocol

__all__ = ["IdSource", "RandomIds", "span_counter"]

_TRACES_PER_DRAW = 256


class IdSource(Protocol):
    """Gives the ids of one process."""

    def process_id(self) -> bytes:
        """Give 8 bytes that name this process; asked for first, also anew after a fork."""

    def first_span_id(self) -> int:
        """Give the number from which this process's span ids count up; below 2**63."""

    def trace_id(self) -> bytes:
        """Give a fresh trace id of 16 bytes; called from any thread."""


class RandomIds:
    """Ids from `os.urandom`."""

    def __init__(self) -> None:
        """Draw nothing yet."""
        self._pool: list[bytes] = []

    def process_id(self) -> bytes:
        """Give 8 random bytes, and forget what a parent process drew."""
        self._pool.clear()
        return os.urandom(8)

    def first_span_id(self) -> int:
        """Give a random number with its top bit clear, so that counting up stays in 64 bits."""
        return (int.from_bytes(os.urandom(8)) >> 1) | 1

    def trace_id(self) -> bytes:
        """Give 16 random bytes."""
        try:
            return self._pool.pop()
        except IndexError:
            drawn = os.urandom(16 * _TRACES_PER_DRAW)
            fresh = [drawn[at : at + 16] for at in range(0, len(drawn), 16)]
            trace_id = fresh.pop()
            self._pool.extend(fresh)
            return trace_id


def span_counter(ids: IdSource) -> "count[int]":
    """Give the iterator that counts a process's span ids."""
    return count(ids.first_span_id())
