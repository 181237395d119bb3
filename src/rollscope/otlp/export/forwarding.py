"""Every run of a directory sent on, new ones as they come, each from where it was left.

A few runs are held open at a time, those that have had something to send lately; the others are
looked at again every few seconds. One that has ended is sent to its end and left alone from then
on, unless somebody writes to it again.
"""

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from rollscope.errors import RollscopeError
from rollscope.otlp.export.exporter import Exported, Exporter, Wanted
from rollscope.otlp.export.forwardstate import ForwardState, signature_of
from rollscope.otlp.export.position import Position
from rollscope.otlp.export.sending import Sending
from rollscope.otlp.export.settings import ExportSettings
from rollscope.store.embedded import RunStore
from rollscope.store.run import list_runs

__all__ = ["Forwarder"]

_MOST_OPEN: Final = 4
"""Each may take several hundred megabytes."""
_LOOK_AGAIN_S: Final = 10.0
"""Opening a run means to read what of it nobody has sealed yet."""
_SET_ASIDE_S: Final = 60.0
"""For a run that cannot be sent, as one that is damaged, or refused by the endpoint."""


class _Held(msgspec.Struct):
    """A run that is open."""

    store: RunStore
    exporter: Exporter
    active_s: float
    """When it last had something to send."""


class Forwarder:
    """Exports the runs of a directory to one place, in one thread."""

    def __init__(
        self,
        directory: Path,
        state: ForwardState,
        sending: Sending,
        settings: ExportSettings,
        wanted: Wanted,
        *,
        as_json: bool = False,
        threads: int | None = None,
        stop: threading.Event | None = None,
        tell: Callable[[str], None] | None = None,
        most_open: int = _MOST_OPEN,
        again_s: float = _LOOK_AGAIN_S,
    ) -> None:
        """Make ready.

        Args:
            directory: Where the runs are; it need not be there yet.
            state: What was sent before; kept up to date.
            sending: The way to the endpoint.
            settings: How spans look, and how often runs are looked at.
            wanted: What to send of each run.
            as_json: Whether requests are written in JSON.
            threads: How many threads reading a run may use; all cores if not given.
            stop: Once set, it ends the work after the request that is on its way.
            tell: Told which runs were sent to their end, and which cannot be.
            most_open: How many runs are held open at a time.
            again_s: How often the others are looked at.
        """
        self._directory, self._state, self._sending = directory, state, sending
        self._settings, self._wanted, self._as_json = settings, wanted, as_json
        self._threads, self._most_open, self._again_s = threads, most_open, again_s
        self._stop = stop or threading.Event()
        self._tell = tell or (lambda _: None)
        self._held: dict[str, _Held] = {}
        self._due_s: dict[str, float] = {}
        """When to look again at runs that are not open."""
        self._looked_s = 0.0
        self.problems: dict[str, str] = {}
        """Why runs could not be sent, those of them that have not been since."""
        self.exported = Exported()
        """What was taken of all runs that are not open now."""

    def forward(self) -> Exported:
        """Send everything that has not been sent yet, of every run."""
        for name in list_runs(self._directory):
            if not self._stop.is_set():
                self._tend(name)
                self._let_go(name)
        return self.exported

    def follow(self) -> Exported:
        """Send what comes, until told to stop; ends with a last look at the runs that are open."""
        while not self._stop.is_set():
            self._look()
            self._stop.wait(self._settings.every_s)
        for name in list(self._held):
            self._guarded(name, partial(self._held[name].exporter.look_again, is_last=True))
            self._let_go(name)
        return self.exported

    def _look(self) -> None:
        now_s = time.monotonic()
        # Where many have come together, the newest are those that somebody waits for.
        try:
            names = list_runs(self._directory)[::-1]
        except OSError:
            return  # a run was deleted this instant
        for name in [each for each in self._held if each not in names]:
            self._let_go(name)  # it was deleted
        for name in names:
            if self._stop.is_set():
                return
            if name in self._held:
                self._tend(name)
            elif self._due_s.get(name, 0.0) <= now_s:
                self._due_s[name] = now_s + self._again_s
                self._tend(name)

    def _tend(self, name: str) -> None:
        """Send what is new of a run, and let go of it once it has ended."""
        self._guarded(name, partial(self._send, name))

    def _guarded(self, name: str, action: Callable[[], object]) -> None:
        """Keep what is wrong with one run from the others."""
        try:
            action()
        except (RollscopeError, OSError, UnicodeError) as error:
            self._let_go(name)
            self._due_s[name] = time.monotonic() + _SET_ASIDE_S
            if self.problems.get(name) != str(error):
                self.problems[name] = str(error)
                self._tell(f"run {name} is not sent: {error}")
        else:
            self.problems.pop(name, None)

    def _send(self, name: str) -> None:
        run = self._directory / name
        # This and whether it is over before the look: what comes after it is not taken for sent.
        signature = signature_of(run)
        held = self._held.get(name)
        if held is None:
            if self._state.is_sent(run, signature):
                return
            held = self._open(name)
        before = msgspec.structs.astuple(held.exporter.exported)
        is_over = _is_over(held.store)
        held.exporter.look_again(is_over=is_over)
        if msgspec.structs.astuple(held.exporter.exported) != before:
            held.active_s = time.monotonic()
        if is_over and not self._stop.is_set():
            self._let_go(name)
            self._state.note_sent(run, signature)
            self._tell(f"run {name} has ended, and all of it was sent")

    def _open(self, name: str) -> _Held:
        """Open a run and send what was there before, which may take long."""
        while len(self._held) >= self._most_open:
            self._let_go(min(self._held, key=lambda each: self._held[each].active_s))
        path = self._directory / name
        position = Position(str(path.resolve()), self._state.receiver, self._state.file_of(path))
        store = RunStore(path, threads=self._threads)
        exporter = Exporter(
            store,
            self._sending,
            self._settings,
            position,
            self._wanted,
            as_json=self._as_json,
            stop=self._stop,
        )
        held = self._held[name] = _Held(store, exporter, time.monotonic())
        if position.intake is None:
            self._looked_s = time.monotonic()
            exporter.export(lambda *_: self._tend_others(name))
        return held

    def _tend_others(self, name: str) -> None:
        """Send what is new of the other open runs while one that was there before is on its way."""
        now_s = time.monotonic()
        if now_s - self._looked_s < self._settings.every_s:
            return
        for other in [each for each in self._held if each != name]:
            self._tend(other)
        self._looked_s = time.monotonic()

    def _let_go(self, name: str) -> None:
        held = self._held.pop(name, None)
        if held is not None:
            held.store.close()
            _add(self.exported, held.exporter.exported)
            self._due_s[name] = time.monotonic() + self._again_s


def _is_over(store: RunStore) -> bool:
    """Say whether somebody wrote to a run and nobody may any more."""
    states = store.query("SELECT DISTINCT status FROM processes")["status"].to_pylist()
    return bool(states) and "alive" not in states


def _add(total: Exported, more: Exported) -> None:
    for name in Exported.__struct_fields__:
        value = getattr(more, name)
        if isinstance(value, str):
            setattr(total, name, value or getattr(total, name))
        else:
            setattr(total, name, getattr(total, name) + value)
