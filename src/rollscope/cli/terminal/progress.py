"""A bar on the error stream while something takes long."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from rollscope.store.sealer import Progress as Report

__all__ = ["bar_of"]

_PATIENCE_S: Final = 0.5
"""How long nothing is shown: most runs are read in less."""


class _Bar:
    """Appears when told of progress after the first half second."""

    def __init__(self, label: str, *, are_bytes: bool) -> None:
        self._label = label
        self._are_bytes = are_bytes
        self._due = time.monotonic() + _PATIENCE_S
        self._shown: Progress | None = None

    def __call__(self, done: int, total: int) -> None:
        if self._shown is None:
            if time.monotonic() < self._due or done >= total:
                return
            self._shown = _start(self._label, are_bytes=self._are_bytes)
        self._shown.update(self._shown.task_ids[0], completed=done, total=total)

    def close(self) -> None:
        if self._shown is not None:
            self._shown.stop()


def _start(label: str, *, are_bytes: bool) -> Progress:
    shown = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn() if are_bytes else MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    shown.add_task(label, total=None)
    shown.start()
    return shown


@contextmanager
def bar_of(label: str, *, are_bytes: bool = True) -> Iterator[Report | None]:
    """Give what is to be told of how much is done and of all; None where nobody would see it.

    Args:
        label: What takes long.
        are_bytes: Whether bytes are counted, or parts of the work.
    """
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(label, are_bytes=are_bytes)
    try:
        yield bar
    finally:
        bar.close()
