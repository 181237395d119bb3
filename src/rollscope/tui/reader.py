"""Reading a run for a page: one thread that looks again and again, and tells what it found.

Nothing here knows of a terminal. The thread finds and opens the run, takes in what was added, asks
what the page in view wants to know, and rests. A run that is not there yet, or no longer, is told
of and looked for again. Heavy modules are loaded by the thread: a terminal is drawn at once.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from rollscope.errors import CommandError, NotARunError, QueryError, RollscopeError

if TYPE_CHECKING:
    from rollscope.answers.overview import Overview
    from rollscope.store.embedded import RunStore

__all__ = ["Fault", "Opening", "Reader", "Reading", "Report", "Trouble", "Wish"]

_EVERY_S: Final = 1.0
_LEAVE_S: Final = 3.0
"""How long quitting waits for the thread; it may be sealing what it read for the next reader."""


class Wish(msgspec.Struct, frozen=True):
    """What a page wants to know: a question of the registry, and its parameters."""

    question: str
    given: tuple[tuple[str, str], ...] = ()


class Reading(msgspec.Struct, frozen=True):
    """What was found."""

    wish: Wish
    run: "Overview"
    answer: msgspec.Struct | None
    refusal: str = ""
    """Why there is no answer, in a sentence."""


class Opening(msgspec.Struct, frozen=True):
    """How much of the run's logs has been taken in, while it is opened."""

    share: float


class Trouble(msgspec.Struct, frozen=True):
    """The run cannot be read now; it will be looked at again."""

    sentence: str


class Fault(msgspec.Struct, frozen=True):
    """Something is wrong with the program itself; the thread has ended."""

    error: Exception


Report = Reading | Opening | Trouble | Fault


class Reader:
    """Looks at a run once a second, from `start` to `stop`."""

    def __init__(
        self,
        find: Callable[[], Path],
        tell: Callable[[Report], None],
        *,
        every_s: float = _EVERY_S,
        threads: int | None = None,
    ) -> None:
        """Prepare to read.

        Args:
            find: Finds the run; raises while there is none.
            tell: Is told what was found, by the thread.
            every_s: How often to look.
            threads: How many threads a query may use; all cores if not given.
        """
        self._find = find
        self._tell = tell
        self._every_s = every_s
        self._threads = threads
        self._changed = threading.Condition()
        self._wish: Wish | None = None
        self._is_paused = False
        self._is_stopping = False
        self._is_asking = False
        self._store: RunStore | None = None
        self._identity: tuple[int, int] = (0, 0)
        self._last: Reading | None = None
        self._thread = threading.Thread(target=self._work, name="rollscope-top", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and let go of the run; what takes too long is left to the end of the process."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        self._interrupt()
        self._thread.join(_LEAVE_S)

    def want(self, wish: Wish | None) -> None:
        """Say what the page in view wants to know; it is asked at once, even while pausing."""
        with self._changed:
            if wish == self._wish:
                return
            self._wish = wish
            self._last = None
            self._changed.notify()
        self._interrupt()

    def pause(self, is_paused: bool) -> None:
        """Stop looking for what is new, or go on."""
        with self._changed:
            self._is_paused = is_paused
            self._changed.notify()

    def _interrupt(self) -> None:
        """Cut a question short; never the taking in of logs, which would have to start anew."""
        store = self._store
        if store is not None and self._is_asking:
            with suppress(Exception):  # it is being closed by its own thread
                store.interrupt()

    def _work(self) -> None:
        try:
            while not self._is_stopping:
                began_s = time.monotonic()
                self._look()
                self._rest(time.monotonic() - began_s)
        except Exception as error:
            self._tell(Fault(error))
        finally:
            self._lose()

    def _rest(self, took_s: float) -> None:
        """Wait until the next look is due: as long as the last one took, where that is long."""
        due_s = time.monotonic() + max(self._every_s - took_s, took_s)
        with self._changed:
            while not self._is_stopping:
                is_new = self._wish is not None and self._last is None and self._store is not None
                left_s = due_s - time.monotonic()
                if is_new or (left_s <= 0 and not self._is_paused):
                    return
                self._changed.wait(None if self._is_paused else left_s)

    def _look(self) -> None:
        wish = self._wish
        try:
            found = self._follow()
            if wish is not None and (found or self._is_due(wish)):
                self._is_asking = True
                self._ask(wish)
        except QueryError as error:
            if self._wish == wish and not self._is_stopping:  # else it was interrupted
                self._trouble(str(error))
        except (RollscopeError, OSError) as error:
            self._trouble(str(error))
        finally:
            self._is_asking = False

    def _trouble(self, sentence: str) -> None:
        self._lose()
        self._tell(Trouble(sentence))
        with self._changed:
            self._last = None

    def _follow(self) -> bool:
        """Take in what was added; say whether anything was."""
        if self._store is None:
            from rollscope.store.embedded import RunStore

            path = self._find()
            self._identity = _identity(path)
            self._store = RunStore(path, threads=self._threads, progress=self._note)
            return True
        if _identity(self._store.path) != self._identity:
            raise NotARunError(f"another run has taken the place of {self._store.path}")
        return self._store.refresh()

    def _is_due(self, wish: Wish) -> bool:
        """Say whether an answer may have changed though nothing was added: time goes on."""
        last = self._last
        return last is None or last.wish != wish or last.run.is_alive

    def _ask(self, wish: Wish) -> None:
        from rollscope.answers.questions import QUESTIONS

        store = self._store
        if store is None:
            return
        run: Overview = QUESTIONS["overview"].ask(store)  # type: ignore[assignment]  # by its name
        try:
            reading = Reading(wish, run, QUESTIONS[wish.question].ask(store, dict(wish.given)))
        except CommandError as error:
            reading = Reading(wish, run, None, str(error))
        with self._changed:
            if self._wish == wish:
                self._last = reading
        self._tell(reading)

    def _note(self, done: int, total: int) -> None:
        self._tell(Opening(done / max(total, 1)))

    def _lose(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            with suppress(RollscopeError, OSError):  # its files may be gone
                store.close()


def _identity(path: Path) -> tuple[int, int]:
    """Tell a run from another one that lies at the same place.

    Raises:
        NotARunError: There is none any more.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise NotARunError(f"the files of {path} cannot be reached: {error.strerror}") from None
    return status.st_dev, status.st_ino
