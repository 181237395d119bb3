"""Forks, exits and SIGTERM: keeping records from being lost or doubled at a process's edges.

- Normal exit: an `atexit` hook. Children of multiprocessing leave by `os._exit`, past `atexit`, so
  they get a finalizer of multiprocessing's own.
- Fork: the child gets a new recorder; what the parent had recorded stays the parent's.
- SIGTERM: handled only where the program leaves it to the system. A Python handler runs in the
  main thread, which may hang in native code; then the writer thread, woken by the signal itself,
  does the work after a moment, so a stuck program can still be terminated.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from rollscope.instrument.guard import forget_told, guarded

if TYPE_CHECKING:
    from types import FrameType

    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.tracer import Tracer

__all__ = ["forget", "watch_over"]

_EXIT_TIMEOUT_S: Final = 5.0
_SIGTERM_TIMEOUT_S: Final = 2.0
_MAIN_THREAD_GRACE_S: Final = 0.5

_tracers: WeakSet[Tracer] = WeakSet()
_hooked = False


def watch_over(tracer: Tracer, recorder: Recorder) -> None:
    """See to it that what the tracer records outlives the process."""
    global _hooked
    _tracers.add(tracer)
    if not _hooked:
        _hooked = True
        atexit.register(_at_exit)
        os.register_at_fork(after_in_child=_in_forked_child)
    _hook_multiprocessing()
    if recorder.settings.sigterm and threading.current_thread() is threading.main_thread():
        _take_sigterm(recorder)


def forget(tracer: Tracer, recorder: Recorder) -> None:
    """Stop watching over a tracer that was shut down."""
    _tracers.discard(tracer)
    if threading.current_thread() is not threading.main_thread():
        return  # signals are the main thread's business; the handler, finding no tracer, does none
    if recorder.on_signal is not None:
        if recorder.wake_fd == _wakeup_fd():
            signal.set_wakeup_fd(-1)
        recorder.on_signal = None
    if not _tracers and signal.getsignal(signal.SIGTERM) is _on_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _at_exit() -> None:
    for tracer in list(_tracers):
        with guarded("writing at exit"):
            tracer.shutdown(timeout_s=_EXIT_TIMEOUT_S, why="exit")


def _in_forked_child() -> None:
    forget_told()
    for tracer in list(_tracers):
        with guarded("recording in a forked child"):
            tracer.restart_after_fork()


def _hook_multiprocessing() -> None:
    """Let multiprocessing run the exit hook in its children."""
    util, process = (
        sys.modules.get("multiprocessing.util"),
        sys.modules.get("multiprocessing.process"),
    )
    if util is None or process is None:
        return
    if process.parent_process() is not None:
        util.Finalize(None, _at_exit, exitpriority=0)
    else:
        # Runs in each child that multiprocessing forks from here, after it cleared its finalizers.
        util.register_after_fork(
            _AFTER_FORK, lambda _: util.Finalize(None, _at_exit, exitpriority=0)
        )


class _Anchor:
    """Something alive for multiprocessing to hold its after-fork hook by."""


_AFTER_FORK: Final = _Anchor()


def _wakeup_fd() -> int:
    fd = signal.set_wakeup_fd(-1)
    if fd >= 0:
        signal.set_wakeup_fd(fd, warn_on_full_buffer=False)
    return fd


def _take_sigterm(recorder: Recorder) -> None:
    handler = signal.getsignal(signal.SIGTERM)
    if handler is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)
    elif handler is not _on_sigterm:
        return
    if _wakeup_fd() < 0:
        recorder.on_signal = _on_signal_in_writer
        signal.set_wakeup_fd(recorder.wake_fd, warn_on_full_buffer=False)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    """Write everything, then let SIGTERM do what it would have done."""
    for tracer in list(_tracers):
        with guarded("writing at SIGTERM"):
            tracer.shutdown(timeout_s=_SIGTERM_TIMEOUT_S, why="sigterm")
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


def _on_signal_in_writer(signals: bytes) -> None:
    if signal.SIGTERM in signals:
        threading.Thread(target=_stand_in_for_main, name="rollscope-sigterm", daemon=True).start()


def _stand_in_for_main() -> None:
    """End the process if the main thread did not get to its handler."""
    time.sleep(_MAIN_THREAD_GRACE_S)
    if signal.getsignal(signal.SIGTERM) is not _on_sigterm:
        return  # the program has a handler of its own by now, or the main thread is at it
    tracers = list(_tracers)
    for tracer in tracers:
        with guarded("writing at SIGTERM"):
            tracer.flush(timeout_s=_SIGTERM_TIMEOUT_S)
    import ctypes  # only here: `signal.signal` is the main thread's privilege

    ctypes.pythonapi.PyOS_setsig(int(signal.SIGTERM), ctypes.c_void_p(0))
    os.kill(os.getpid(), signal.SIGTERM)
