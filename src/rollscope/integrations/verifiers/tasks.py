"""Tasks that episodes belong to: those of one task share it while one of them goes on."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextvars import copy_context
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Span

__all__ = ["Tasks"]

_MOST_KEYS: Final = 10_000
"""Tasks whose samples are counted; of one that did not come again for so long it starts anew."""


class Tasks:
    """Those that are open; for any thread."""

    def __init__(self) -> None:
        """Begin empty."""
        self._lock = threading.Lock()
        self._open: dict[tuple[Recorder, str], tuple[Span, int]] = {}
        self._samples: OrderedDict[str, int] = OrderedDict()
        self._recorder: Recorder | None = None
        """Whose samples are counted: another run counts from 0."""

    def enter(self, recorder: Recorder, key: str) -> tuple[Span, int]:
        """Give the task of a key, and the number of the next sample of it."""
        with self._lock:
            if recorder is not self._recorder:
                self._recorder = recorder
                self._samples.clear()
            task, count = self._open.get((recorder, key), (None, 0))
            if task is None:
                task = recorder.types.new_task(key, None, None, {})
                copy_context().run(task.__enter__)  # so that it is current for nobody
            self._open[recorder, key] = (task, count + 1)
            sample = self._samples.pop(key, 0)
            self._samples[key] = sample + 1
            if len(self._samples) > _MOST_KEYS:
                self._samples.popitem(last=False)
            return task, sample

    def leave(self, recorder: Recorder, key: str) -> None:
        """Say that an episode of the task is over."""
        with self._lock:
            task, count = self._open.pop((recorder, key))
            if count > 1:
                self._open[recorder, key] = (task, count - 1)
            else:
                copy_context().run(task.__exit__, None, None, None)
