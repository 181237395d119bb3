"""Redaction: the user's own function decides what of a payload is kept.

It runs in a thread of its own, before anything is encoded: nobody waits for it, neither the caller
nor what else is to be written, and nothing it would have taken out is ever written. It fails
closed: a payload that it fails on is dropped, and so is every payload if the function cannot be
found or does not return.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument.guard import tell_once
from rollscope.instrument.heldbytes import held_bytes
from rollscope.instrument.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.instrument.clock import Clock

    Payload = tuple[bytes, int, int, str, Any]
    """As the buffer holds it: trace id, span id, monotonic time, name, value."""

__all__ = ["Redaction", "function_path"]

_PATIENCE_S: Final = 30
"""Long enough to load a model at the first call."""
_MOST_WAITING: Final = 2_000


class _Waiting:
    """A payload that waits for the function."""

    __slots__ = ("number", "payload", "size")

    def __init__(self, payload: Payload, number: int) -> None:
        self.payload = payload
        self.number = number
        self.size = 0
        """What it holds; 0 until it has waited for a while, since few do."""


class Redaction:
    """Puts payloads through the function that a user gave.

    What waits is bounded, the oldest is dropped first. A function that does not return in time
    costs the payload it was given, what waits, and what comes until it does.
    """

    def __init__(
        self,
        given: Callable[[str, Any], Any] | str,
        clock: Clock,
        count_drop: Callable[[dict[str, int], str], None],
        limit_bytes: int,
    ) -> None:
        """Take a function or its import path; nothing is imported yet.

        Args:
            given: The function, or its path.
            clock: Says when it has taken too long.
            count_drop: Is told what was dropped, and why.
            limit_bytes: What may wait takes no more than this, about.
        """
        self._given = given
        self._clock = clock
        self._count_drop = count_drop
        self._limit_bytes = limit_bytes
        # Taken by the writer and this thread only, as that of the outbox.
        self._lock = threading.Lock()
        self._wakeups: SimpleQueue[None] = SimpleQueue()
        self._waiting: deque[_Waiting] = deque()
        self._done: list[Payload] = []
        self.handed_over = 0
        """How many payloads came so far."""
        self._current = 0
        """The number of the one that the function is at, or was."""
        self._begun_ns: int | None = None
        """When the function was called; None while it is not running."""
        self._is_given_up = False
        """Whether what the function is at has been counted as dropped."""
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="rollscope-redact", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is to be expected of the function, and all was taken that it gave."""
        return self.is_through(self.handed_over) and not self._done

    def is_through(self, number: int) -> bool:
        """Whether none of so many first payloads waits for the function.

        The program's threads ask this while they flush, so it takes no lock.
        """
        try:
            is_waiting = self._waiting[0].number <= number
        except IndexError:
            is_waiting = False
        # Asked after that: a call begins before its payload waits no longer.
        is_calling = self._begun_ns is not None and not self._is_given_up
        return not is_waiting and not (is_calling and self._current <= number)

    def exchange(self, payloads: list[Payload]) -> list[Payload]:
        """Hand over what was recorded, and get what is to be kept of what was handed over."""
        self._give_up_if_late()
        with self._lock:
            self._bound()
            first = self.handed_over + 1
            self.handed_over += len(payloads)
            if self._is_given_up:
                self._drop(len(payloads))
            else:
                self._waiting.extend(map(_Waiting, payloads, count(first)))
            done, self._done = self._done, []
        if payloads:
            self._wakeups.put(None)
        return done

    def finish(self, timeout_s: float) -> list[Payload]:
        """Wait for the function as long as that; drop what it has not done, give what it has."""
        wait_until(lambda: self.is_through(self.handed_over), timeout_s)
        with self._lock:
            if not self.is_through(self.handed_over):
                self._give_up("was not through with them at the end")
            done, self._done = self._done, []
        return done

    def stop(self) -> None:
        """End the thread, unless it hangs in the function."""
        self._closing = True
        self._wakeups.put(None)

    def _bound(self) -> None:
        """Drop the oldest of what has waited since the last time, if it takes too much."""
        room, number = self._limit_bytes, 0
        for one in reversed(self._waiting):
            one.size = one.size or held_bytes(one.payload[-1], self._limit_bytes)
            room -= one.size
            if room < 0 or number == _MOST_WAITING:
                break
            number += 1
        excess = len(self._waiting) - number
        if excess:
            for _ in range(excess):
                self._waiting.popleft()
            self._drop(excess)
            tell_once(
                "redact-slow",
                "Rollscope drops payloads because the redact function takes less than come in; "
                "the run counts them",
            )

    def _give_up_if_late(self) -> None:
        with self._lock:
            if self._begun_ns is not None and not self._is_given_up:
                late_ns = self._clock.mono_ns() - self._begun_ns
                if late_ns > _PATIENCE_S * 1_000_000_000:
                    self._give_up(f"has not returned for {_PATIENCE_S} s")

    def _give_up(self, why: str) -> None:
        is_calling = self._begun_ns is not None
        self._is_given_up = is_calling
        self._drop(len(self._waiting) + is_calling)
        self._waiting.clear()
        tell_once(
            "redact-hangs",
            "Rollscope drops payloads because the redact function %s; the run counts them",
            why,
        )

    def _drop(self, number: int) -> None:
        if number:
            self._count_drop({"payload": number}, "redact")

    def _work(self) -> None:
        while True:
            payload = self._next()
            if payload is not None:
                self._put_through(payload)
            elif self._closing:
                return
            else:
                self._wakeups.get()

    def _next(self) -> Payload | None:
        with self._lock:
            if not self._waiting:
                return None
            self._current = self._waiting[0].number
            self._begun_ns = self._clock.mono_ns()
            return self._waiting.popleft().payload

    def _put_through(self, payload: Payload) -> None:
        trace_id, span_id, mono_ns, name, value = payload
        kept, has_failed = None, False
        try:
            if isinstance(self._given, str):
                self._given = _find(self._given)
            kept = self._given(name, value)
        except BaseException as error:  # this thread ends when it is told to, not by the function
            has_failed = True
            # Its message may hold what was to be taken out, so only its type is told.
            tell_once(
                "redact",
                "Rollscope drops payloads because the redact function fails with %s; "
                "the run counts them",
                type(error).__name__,
            )
        with self._lock:
            if not self._is_given_up:  # else it has been counted
                if has_failed:
                    self._drop(1)
                elif kept is not None or value is None:
                    self._done.append((trace_id, span_id, mono_ns, name, kept))
            self._begun_ns, self._is_given_up = None, False


def _find(path: str) -> Callable[[str, Any], Any]:
    from importlib import import_module

    module, _, names = path.partition(":")
    found: Any = import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    if not callable(found):
        raise TypeError(f"{path} is no function")
    function: Callable[[str, Any], Any] = found
    return function


def function_path(given: Callable[[str, Any], Any] | str) -> str | None:
    """Give the import path by which another process finds the function; None if it cannot."""
    if isinstance(given, str):
        return given
    module = getattr(given, "__module__", None)
    name = getattr(given, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str) and module != "__main__":
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is given:
            return f"{module}:{name}"
    tell_once(
        "redact-portable",
        "Rollscope keeps no payloads in processes that this one starts, because they cannot import "
        "the redact function; make it a function of a module, or give its path as module:function",
    )
    return None
