"""What the programs of the tests import: sinks that fail, calls that hang, and meters."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

from rollscope.instrument.sinks.file import FileSink
from rollscope.model.batch import decode_batch
from rollscope.model.frames import scan_frames

if TYPE_CHECKING:
    from types import FrameType

    from rollscope.instrument.sinks import Frame, Opening

__all__ = [
    "CountingSink",
    "DeadSink",
    "ExitingSink",
    "FlakySink",
    "GateSink",
    "RssWatch",
    "SlowSink",
    "StuckSink",
    "hang_in_native_code",
]


def hang_in_native_code(file: int) -> None:
    """Lock a plain mutex twice: no signal interrupts that, and the interpreter lock is free.

    Args:
        file: Where a line is written to once it hangs.
    """
    libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    watcher = threading.Thread(target=_tell_when_still, args=(sys._getframe(), file), daemon=True)
    watcher.start()
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_lock(mutex)


def _tell_when_still(frame: FrameType, file: int) -> None:
    """Wait until a frame has not moved for a while."""
    seen: list[int] = []
    while seen[-10:] != [frame.f_lasti] * 10:
        seen.append(frame.f_lasti)
        time.sleep(0.01)
    os.write(file, b"hangs\n")


class SlowSink(FileSink):
    """Takes a while for each frame."""

    def write(self, frame: Frame) -> None:
        time.sleep(0.3)
        super().write(frame)


class GateSink(FileSink):
    """Blocks until the gate is opened, then works."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def write(self, frame: Frame) -> None:
        self.gate.wait()
        super().write(frame)


class StuckSink(FileSink):
    """Never comes back."""

    def open(self, opening: Opening) -> None:
        threading.Event().wait()


class FlakySink(FileSink):
    """Fails every other time."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = 0

    def write(self, frame: Frame) -> None:
        self._calls += 1
        if self._calls % 2:
            raise ConnectionError("try again")
        super().write(frame)


class DeadSink(FileSink):
    """Never works."""

    def write(self, frame: Frame) -> None:
        raise ConnectionError("gone")


class ExitingSink(FileSink):
    """Tries to end the program."""

    def write(self, frame: Frame) -> None:
        sys.exit("the sink wants out")


class CountingSink:
    """Keeps no frame, only how much was in them and how much was dropped."""

    def __init__(self) -> None:
        self.spans = 0
        self.counted = 0.0
        self.drops: dict[str, int] = {}

    def open(self, opening: Opening) -> None:
        pass

    def write(self, frame: Frame) -> None:
        for body in scan_frames(frame.data).bodies:
            batch = decode_batch(body)
            if batch.spans is not None:
                self.spans += len(batch.spans.what) - batch.spans.status.count(0)  # 0: open
            self.counted += sum(metric.value for metric in batch.metrics)
            self.drops = batch.drops or self.drops

    def close(self) -> None:
        pass


class RssWatch:
    """Tells how much more memory the process took at its peak than at the beginning."""

    def __init__(self) -> None:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # makes the kernel forget earlier peaks
        self._before = self._peak_mb()

    @property
    def growth_mb(self) -> float:
        return self._peak_mb() - self._before

    @staticmethod
    def _peak_mb() -> float:
        with open("/proc/self/status") as file:
            (peak_kb,) = [int(line.split()[1]) for line in file if line.startswith("VmHWM:")]
        return peak_kb / 1024
