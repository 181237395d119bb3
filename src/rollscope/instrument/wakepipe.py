"""The pipe that wakes the writer: by a call, or by a signal through `signal.set_wakeup_fd`.

A program may close descriptors that are not its own, as daemons do, and its next file then gets
the same number. So who reads or writes asks first whether the pipe is still ours; if not, the
writer sleeps.
"""

import os
import select
import threading
import time

__all__ = ["WakePipe"]


class WakePipe:
    """Lets one thread wait for others and for signals."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._inode = os.fstat(self._read).st_ino
        # Not `select`, which refuses descriptors from 1024 on.
        self._poll = select.poll()
        self._poll.register(self._read, select.POLLIN)
        # Re-entrant, since a signal handler may stop a recorder inside one of its own calls.
        self._lock = threading.RLock()

    @property
    def fd(self) -> int:
        """The descriptor that wakes, fit for `signal.set_wakeup_fd`; -1 when closed."""
        return self._write

    def wake(self) -> None:
        """End the wait, or the next one; never blocks."""
        with self._lock:
            if self._is_ours(self._write):
                try:
                    os.write(self._write, b"\0")
                except BlockingIOError:  # full, so the waiting thread is about to wake anyway
                    return

    def wait(self, timeout_s: float) -> bytes:
        """Wait to be woken, or for the end of the time; give the numbers of signals that came."""
        if not self._poll.poll(timeout_s * 1000):
            return b""
        if not self._is_ours(self._read):  # asked only now, when it would be read
            time.sleep(timeout_s)
            return b""
        try:
            return os.read(self._read, 4096).strip(b"\0")
        except OSError:  # the pipe was closed meanwhile
            return b""

    def close(self) -> None:
        """Close both ends; whoever waits must have stopped."""
        with self._lock:
            for fd in (self._read, self._write):
                if self._is_ours(fd):
                    os.close(fd)
            self._read = self._write = -1

    def close_in_child(self) -> None:
        """Close both ends after a fork, where a thread that is gone may have held the lock."""
        self._lock = threading.RLock()
        self.close()

    def _is_ours(self, fd: int) -> bool:
        try:
            return fd >= 0 and os.fstat(fd).st_ino == self._inode
        except OSError:
            return False
