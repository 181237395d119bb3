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
from typing import TYPE_CHECKING, Final, Protocol

from rollscope.instrument.guard import forget_told, guarded

if TYPE_CHECKING:
    from types import FrameType

    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.tracer import Tracer

__all__ = ["Companion", "forget", "give_wakeup_back", "leave_alone", "watch_along", "watch_over"]

_EXIT_TIMEOUT_S: Final = 5.0
_SIGTERM_TIMEOUT_S: Final = 2.0
_MAIN_THREAD_GRACE_S: Final = 0.5


class Companion(Protocol):
    """Writes something beside a tracer, and must lose as little of it."""

    def flush(self, timeout_s: float) -> bool:
        """Write what there is."""

    def shutdown(self, timeout_s: float, *, why: str) -> bool:
        """Write what there is and stop."""

    def restart_after_fork(self) -> None:
        """Begin anew in a forked child, with nothing of the parent's."""


# Held until it is shut down: what a tracer that nobody refers to recorded must be written too.
_tracers: set[Tracer | Companion] = set()
_hooked = False
_forking = threading.local()
_main_thread_acts = False
"""Whether the main thread has got to its SIGTERM handler."""


def watch_over(tracer: Tracer, recorder: Recorder) -> None:
    """See to it that what the tracer records outlives the process."""
    global _hooked
    _tracers.add(tracer)
    if not _hooked:
        _hooked = True
        atexit.register(_at_exit)
        os.register_at_fork(
            before=_hold_sigterm,
            after_in_parent=_release_sigterm,
            after_in_child=_in_forked_child,
        )
    _hook_multiprocessing()
    if recorder.settings.sigterm and threading.current_thread() is threading.main_thread():
        _take_sigterm(recorder)


def forget(tracer: Tracer, recorder: Recorder) -> None:
    """Stop watching over a tracer that was shut down."""
    _tracers.discard(tracer)
    if threading.current_thread() is not threading.main_thread():
        return  # signals are the main thread's business; the handler, finding no tracer, does none
    give_wakeup_back(recorder)
    if not _tracers and signal.getsignal(signal.SIGTERM) is _on_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def watch_along(companion: Companion) -> None:
    """See to what is written beside a tracer; one must be watched over already."""
    _tracers.add(companion)


def leave_alone(companion: Companion) -> None:
    """Stop seeing to it."""
    _tracers.discard(companion)


def give_wakeup_back(recorder: Recorder) -> None:
    """Let signals no longer wake a recorder, so that its pipe may be closed.

    An event loop that took the wake-up descriptor over may put ours back when it ends. Then the
    pipe has to stay, or signals would be written into whatever file gets its number.
    """
    if recorder.on_signal is not None and _swap_wakeup(recorder.wake_fd, -1):
        recorder.on_signal = None


def _at_exit() -> None:
    for tracer in list(_tracers):
        with guarded("writing at exit"):
            tracer.shutdown(timeout_s=_EXIT_TIMEOUT_S, why="exit")


def _hold_sigterm() -> None:
    """Keep SIGTERM waiting while a fork is under way.

    A child that got it before it had found itself would wake the writer of its parent, which would
    then end the parent, or wait for threads that only the parent has.
    """
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    _forking.was_held = signal.SIGTERM in held


def _release_sigterm() -> None:
    if not _forking.was_held:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _in_forked_child() -> None:
    global _main_thread_acts
    _main_thread_acts = False
    forget_told()
    for tracer in list(_tracers):
        with guarded("recording in a forked child"):
            tracer.restart_after_fork()
    _release_sigterm()


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


def _swap_wakeup(old: int, new: int) -> bool:
    """Replace the wake-up descriptor for signals if it is `old`; else leave it and say no."""
    found = signal.set_wakeup_fd(new, warn_on_full_buffer=False)
    if found == old:
        return True
    signal.set_wakeup_fd(found, warn_on_full_buffer=False)
    return False


def _take_sigterm(recorder: Recorder) -> None:
    if os.getpid() == 1:
        return  # the kernel spares process 1 (of a container) a signal that it has no handler for
    handler = signal.getsignal(signal.SIGTERM)
    if handler is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)
    elif handler is not _on_sigterm:
        return
    if _swap_wakeup(-1, recorder.wake_fd):
        recorder.on_signal = _on_signal_in_writer


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    """Write everything, then let SIGTERM do what it would have done.

    A second SIGTERM, or one that comes during a shutdown, waits for what is being written.
    """
    global _main_thread_acts
    _main_thread_acts = True
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
    if _main_thread_acts or signal.getsignal(signal.SIGTERM) is not _on_sigterm:
        return  # the main thread is at it, or the program has a handler of its own by now
    tracers = list(_tracers)
    for tracer in tracers:
        with guarded("writing at SIGTERM"):
            tracer.flush(timeout_s=_SIGTERM_TIMEOUT_S)
    import ctypes  # only here: `signal.signal` is the main thread's privilege

    ctypes.pythonapi.PyOS_setsig(int(signal.SIGTERM), ctypes.c_void_p(0))
    os.kill(os.getpid(), signal.SIGTERM)
