"""A run that somebody looks at: its store, and the one thread that owns it.

The thread answers questions in the order they come, so that each sees the run at one moment, and
in between takes in what was added: up to four times a second while pages look, so that answers
have most of its time, and not at all while none does. The event loop only hands jobs over and
waits.
"""

import asyncio
import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from rollscope.errors import StoreError
from rollscope.server.cache import AnswerCache, Moment
from rollscope.server.failures import Failure
from rollscope.server.progress import Headway, RunProgress, first_seq
from rollscope.store.embedded import RunStore

__all__ = ["LIMIT_S", "THREAD_PREFIX", "OpenRun"]

T = TypeVar("T")

LIMIT_S: Final = 30.0
"""How long one question may take."""
THREAD_PREFIX: Final = "rollscope-"
"""How threads are named that work for a run."""
_EVERY_S: Final = 0.25
_REST: Final = 2
"""After taking in what was added, nothing is taken in for so many times as long as it took."""
_MOST_REST_S: Final = 0.5
_AT_ONCE_S: Final = 2.0
"""Taken in before anybody is told: the page shows a burst as it is read, not after it."""
_EVERY_OVER_S: Final = 2.0
"""Runs that are over seldom change, though one may be gone on with or shipped late; so only the
sizes of their logs are looked at more often."""
_LOOKED_AT_S: Final = 10.0
"""How long a run counts as looked at after a question."""

_LET_FINISH_S: Final = 5.0
"""How long closing waits for somebody who reads the store whole."""

_log = logging.getLogger("uvicorn.rollscope")
"""Below uvicorn's, so that faults of both go the same way."""

Job = tuple["Future[Any]", Callable[[RunStore], Any], float]


class OpenRun:
    """One run, opened."""

    def __init__(
        self,
        name: str,
        path: Path,
        tell: Callable[[RunProgress], None],
        *,
        threads: int | None = None,
    ) -> None:
        """Begin to open a run; jobs may be given at once.

        Args:
            name: What it is called in addresses.
            path: Where it lies.
            tell: Called by the thread when the run has come further.
            threads: How many threads a query may use.
        """
        self.name = name
        self.path = path
        self.answers = AnswerCache()
        self.watchers = 0
        """How many streams of events follow it; changed by the event loop only."""
        self.asked_s = time.monotonic()
        self.progress: RunProgress | None = None
        self.read_share: float | None = 0.0
        """How much of its logs has been taken in, until all has."""
        self.extras: dict[object, Any] = {}
        """What is kept along with the store until that is closed."""
        self.store: Future[RunStore] = Future()
        """Comes when the run is open; for those who only query it, which any thread may."""
        self._tell = tell
        self._threads = threads
        self._wanted_s = -math.inf
        self._refreshed_s = 0.0
        self._looked_s = 0.0
        self._taken_bytes = 0
        self._rest_s = 0.0
        self._is_behind = False
        self._is_closed = False
        self._still = threading.Lock()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"{THREAD_PREFIX}run-{name}")
        self._thread.daemon = True
        self._thread.start()

    async def ask(
        self, job: Callable[[RunStore], T], *, limit_s: float = LIMIT_S, is_looking: bool = True
    ) -> T:
        """Have the thread do something with the store.

        Args:
            job: What to do.
            limit_s: How long it may take.
            is_looking: Whether somebody looks on, so that what comes is taken in as it comes;
                else that is done for the next question, as one by a program every minute.

        Raises:
            Failure: It takes too long; the message says what to do.
        """
        self._check_open()
        self.asked_s = time.monotonic()
        if is_looking:
            self._wanted_s = self.asked_s
        future: Future[T] = Future()
        self._jobs.put((future, job, limit_s))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), limit_s + 1)
        except TimeoutError:
            raise self._too_long(limit_s) from None

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Let nothing be taken in or closed while the block runs, which may take long.

        Raises:
            Failure: The run was closed, maybe while this waited.
        """
        with self._still:
            self._check_open()
            yield

    def _check_open(self) -> None:
        if self._is_closed:
            raise Failure(503, "The run was closed meanwhile.", "Ask again.")

    def moment(self) -> Moment:
        """Say how far it has come, and whether it goes on."""
        progress = self.progress
        return (0, True) if progress is None else (progress.seq, progress.is_alive)

    def is_current(self) -> bool:
        """Say whether what is known of it is as new as it gets; being asked keeps it so."""
        self.asked_s = self._wanted_s = time.monotonic()
        return self.asked_s - self._refreshed_s < 2 * self._every_s()

    def is_idle_for(self, seconds: float) -> bool:
        """Say whether nobody has looked at it for so long."""
        return not self.watchers and time.monotonic() - self.asked_s > seconds

    def close(self, *, at_once: bool = False) -> None:
        """Ask the thread to end when it has done what it was given.

        Args:
            at_once: Stop the query that is running.
        """
        self._is_closed = True
        self._jobs.put(None)
        if at_once and self.store.done() and self.store.exception() is None:
            self.store.result().interrupt()

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has let go of the files."""
        self._thread.join(timeout_s)

    def _too_long(self, limit_s: float) -> Failure:
        if self.read_share is not None:
            return Failure(
                503,
                f"The run is still being read, {self.read_share:.0%} of it so far.",
                "Try again in a moment; what is read stays read.",
                headers={"Retry-After": "1"},
            )
        return Failure(
            503, f"This took longer than {limit_s:g} s and was stopped.", "Ask for less at a time."
        )

    def _work(self) -> None:
        try:
            store = RunStore(self.path, threads=self._threads, progress=self._note_read)
        except Exception as error:
            self.read_share = None
            self.store.set_exception(error)
            self._fail_all(error)
            return
        with store:
            self.read_share = None
            self._refreshed_s = self._looked_s = time.monotonic()
            self._taken_bytes = store.sealer.intake.total_bytes()[0]
            headway = Headway(self.name, store, first_seq())
            self.progress = headway.progress  # known to whoever waits for the store
            self.store.set_result(store)
            self._publish(headway.progress)
            try:
                while (job := self._next(store, headway)) is not None:
                    self._do(job, store, headway)
            except Exception as error:
                _log.exception("following the run %r failed", self.name)
                self._fail_all(error)
            # Who comes later finds the run closed; who reads it whole may finish.
            if self._still.acquire(timeout=_LET_FINISH_S):
                self._still.release()
            self.extras.clear()

    def _note_read(self, done: int, total: int) -> None:
        self.read_share = done / max(total, 1)

    def _fail_all(self, error: Exception) -> None:
        """Tell everybody who asks that the run cannot be opened, until it is closed."""
        while (job := self._jobs.get()) is not None:
            if job[0].set_running_or_notify_cancel():
                job[0].set_exception(error)

    def _next(self, store: RunStore, headway: Headway) -> Job | None:
        """Wait for a job; take in what was added whenever that is due."""
        while True:
            try:
                return self._jobs.get(timeout=self._due_in_s())
            except queue.Empty:
                self._looked_s = time.monotonic()
                if self._is_due() or self._has_grown(store):
                    self._refresh(store, headway)

    def _due_in_s(self) -> float | None:
        if not self.watchers and time.monotonic() - self._wanted_s > _LOOKED_AT_S:
            return None
        if self._is_behind:
            return 0.0
        every_s = min(self._every_s(), max(_EVERY_S, self._rest_s))
        return max(self._looked_s + every_s - time.monotonic(), 0.0)

    def _is_due(self) -> bool:
        return self._is_behind or time.monotonic() - self._refreshed_s >= self._every_s()

    def _has_grown(self, store: RunStore) -> bool:
        """Say whether something was added to the logs."""
        return store.sealer.intake.total_bytes()[1] != self._taken_bytes

    def _every_s(self) -> float:
        is_over = self.progress is not None and not self.progress.is_alive
        return _EVERY_OVER_S if is_over else max(_EVERY_S, self._rest_s)

    def _refresh(self, store: RunStore, headway: Headway) -> None:
        """Take in what was added, unless somebody needs the store to stand still."""
        began_s = time.monotonic()
        if self._still.acquire(blocking=False):
            self._taken_bytes = store.sealer.intake.total_bytes()[1]
            try:
                self._take_in(store, headway)
            finally:
                self._still.release()
        self._refreshed_s = self._looked_s = time.monotonic()
        self._rest_s = min(_REST * (self._refreshed_s - began_s), _MOST_REST_S)
        self._is_behind = store.is_behind

    def _take_in(self, store: RunStore, headway: Headway) -> None:
        try:
            found = store.refresh(max_s=_AT_ONCE_S)
        except (StoreError, OSError):
            found = False  # the next question will be told
        before = headway.progress
        after = headway.look()
        if found or after.changed or after.is_alive != before.is_alive:
            self._publish(after)
        else:
            self.progress = after

    def _publish(self, progress: RunProgress) -> None:
        self.progress = progress
        self._tell(progress)

    def _do(self, job: Job, store: RunStore, headway: Headway) -> None:
        future, work, limit_s = job
        if not future.set_running_or_notify_cancel():
            return
        try:
            if self._is_due():
                self._refresh(store, headway)
        except Exception as error:
            future.set_exception(error)
            raise
        is_over = threading.Event()

        def stop() -> None:
            is_over.set()
            store.interrupt()

        timer = threading.Timer(limit_s, stop)
        timer.daemon = True
        timer.start()
        try:
            future.set_result(work(store))
        except Exception as error:
            future.set_exception(self._too_long(limit_s) if is_over.is_set() else error)
        finally:
            timer.cancel()
