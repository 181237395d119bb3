"""Sending what runs show, every few seconds, to where nobody can come and scrape it.

Each receiver has a bounded queue and a thread, so that one that is slow or away holds up neither
the server nor the others. When a queue is full the oldest goes first: what comes later says more.
"""

import asyncio
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from rollscope.metrics.families import Exposed
from rollscope.otlp.answering import Signal
from rollscope.otlp.export.sending import (
    Again,
    Delivered,
    ExportFailed,
    Sending,
    Stopped,
    Target,
    TooLarge,
)

__all__ = ["Outlet", "Pushed", "Pusher", "Writer"]

_MOST_BYTES: Final = 16 * 1024 * 1024
_LAST_WORD_S: Final = 0.5
"""How long the end of a server may take because of a receiver."""
_log = logging.getLogger("uvicorn.rollscope")


class Writer(Protocol):
    """Writes what families stand at as requests of a protocol."""

    def encode(self, exposed: Sequence[Exposed], at_ns: int) -> list[bytes]:
        """Write what families stand at."""

    def encode_ending(self, at_ns: int) -> list[bytes]:
        """Write that nothing of it is known any more."""


class Outlet:
    """One receiver: what waits for it, and the thread that sends it."""

    def __init__(
        self,
        name: str,
        writer: Writer,
        target: Target,
        *,
        most_bytes: int = _MOST_BYTES,
        tell: Callable[[str], None] = _log.error,
    ) -> None:
        """Make ready; nothing is sent yet.

        Args:
            name: What it is called where failures are counted.
            writer: Its protocol.
            target: The way there.
            most_bytes: That may wait; what is over it is dropped, the oldest first.
            tell: Told of trouble, once for each time of it.
        """
        self.name = name
        self._failures: Counter[str] = Counter({name: 0})
        self._writer, self._target, self._tell = writer, target, tell
        self._most_bytes = most_bytes
        self._writing = threading.Lock()
        self._waiting: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._is_busy = False
        self._stop = threading.Event()
        self._last_told = ""
        self._sending = Sending(self, None, sleep=self._stop.wait, tell=self._tell_once)
        self._thread = threading.Thread(
            target=self._work, name=f"rollscope-push-{name}", daemon=True
        )

    @property
    def failures(self) -> int:
        """How many tries failed, and requests were dropped without one."""
        return self._failures[self.name]

    def count_in(self, failures: Counter[str]) -> None:
        """Have failures counted beside those of others, under the outlet's name."""
        failures[self.name] += self.failures
        self._failures = failures

    def _count(self) -> None:
        self._failures[self.name] += 1

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def offer(self, exposed: Sequence[Exposed], at_ns: int) -> None:
        """Have what families stand at sent, as soon as all before it was."""
        with self._writing:
            self._put(self._writer.encode(exposed, at_ns))

    def _put(self, requests: Iterable[bytes]) -> None:
        with self._changed:
            self._waiting.extend(requests)
            while sum(map(len, self._waiting)) > self._most_bytes:
                self._waiting.popleft()
                self._count()
            self._changed.notify_all()

    def send(self, signal: Signal, body: bytes) -> Delivered:
        """Send a request once, and count it if that fails."""
        try:
            return self._target.send(signal, body)
        except (Again, TooLarge, ExportFailed):
            self._count()
            raise

    def _work(self) -> None:
        while (body := self._take()) is not None:
            try:
                self._note(self._sending.deliver(Signal.METRICS, body))
            except (ExportFailed, TooLarge) as error:
                self._tell_once(f"{error}; these metrics are left out")
            except Stopped:
                break
            except Exception as error:  # the next request may fare better
                self._count()
                self._tell_once(f"metrics could not be sent to {self.name}: {error!r}")
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()
        self._target.close()

    def _note(self, said: Delivered) -> None:
        """See whether all of a request was kept that was taken."""
        if said.rejected:
            self._count()
            self._tell_once(f"{said.rejected} points were left out by {self.name}: {said.message}")
        else:
            self._last_told = ""

    def _take(self) -> bytes | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stop.is_set())
            if self._stop.is_set():
                return None
            self._is_busy = True
            return self._waiting.popleft()

    def _tell_once(self, what: str) -> None:
        if what != self._last_told:
            self._last_told = what
            self._tell(what)

    def close(self) -> None:
        """Say that nothing is known any more, if the receiver listens, and let go of it."""
        with self._changed:
            is_listening = not self._is_busy and not self._waiting
        if is_listening:
            with self._writing:
                self._put(self._writer.encode_ending(time.time_ns()))
            with self._changed:
                self._changed.wait_for(
                    lambda: not self._is_busy and not self._waiting, _LAST_WORD_S
                )
        with self._changed:
            self._stop.set()
            self._changed.notify_all()
        self._thread.join(_LAST_WORD_S)


class Pushed(NamedTuple):
    """Who is told what runs show, and how often."""

    outlets: Sequence[Outlet] = ()
    every_s: float = 15.0


class Pusher:
    """Looks at what runs show, and hands it to every receiver."""

    def __init__(
        self,
        look: Callable[[], Awaitable[Sequence[Exposed]]],
        pushed: Pushed,
        failures: Counter[str],
    ) -> None:
        """Make ready.

        Args:
            look: Gives what all families stand at.
            pushed: Who is told, and how often.
            failures: Where deliveries that failed are counted, by outlet.
        """
        self._look = look
        self._outlets, self._every_s = pushed
        for outlet in self._outlets:
            outlet.count_in(failures)
        self._problem = ""

    async def run(self) -> None:
        """Push until cancelled; what cannot be worked out is told, and tried again."""
        for outlet in self._outlets:
            outlet.start()
        while self._outlets:
            began_s = time.monotonic()
            try:
                exposed, at_ns = await self._look(), time.time_ns()
                for outlet in self._outlets:
                    await asyncio.to_thread(outlet.offer, exposed, at_ns)
                self._problem = ""
            except Exception as error:  # the next look may fare better
                if repr(error) != self._problem:
                    self._problem = repr(error)
                    _log.exception("metrics could not be made ready to be sent")
            spent_s = time.monotonic() - began_s
            await asyncio.sleep(max(self._every_s - spent_s, 0.1))

    async def close(self) -> None:
        """Let go of every receiver, in a second at most."""
        await asyncio.gather(*(asyncio.to_thread(each.close) for each in self._outlets))
