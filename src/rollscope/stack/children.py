"""One member as a process of ours: started in a session of its own, ended with all it started."""

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from rollscope.stack.members import Member
from rollscope.stack.processes import Identity, identify

__all__ = ["Child", "keep_one_old", "last_lines"]

_POLL_S: Final = 0.02
_TAIL_BYTES: Final = 4096
_TAIL_LINES: Final = 8
_MOST_LOG_BYTES: Final = 8 * 1024 * 1024


class Child:
    """A running member.

    Its session is its own, so that Ctrl+C in a terminal reaches the supervisor alone, which ends
    the members in their order.
    """

    def __init__(self, member: Member, log: Path) -> None:
        """Start the program.

        Raises:
            OSError: It cannot be started.
        """
        with log.open("ab") as file:
            self._process = subprocess.Popen(  # noqa: S603  (what the plan says)
                member.command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=log.parent,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self.identity = _identify(self.pid, member.command)
        """None if it was over before it could be looked at."""

    def has_ended(self) -> bool:
        """Say whether it is over; whatever it has left running is ended then."""
        if self._process.returncode is not None:
            return True
        state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if state is None:
            return False
        # Before the number is given back: until then nobody else can have it.
        self._signal(signal.SIGKILL)
        self._process.wait()
        return True

    def end(self, patience_s: float) -> None:
        """Ask it to end, and kill it if it does not."""
        self.ask_to_end()
        if not self.wait(patience_s):
            self._signal(signal.SIGKILL)
            self.wait(None)

    def ask_to_end(self) -> None:
        """Send its group SIGTERM."""
        self._signal(signal.SIGTERM)

    def wait(self, patience_s: float | None) -> bool:
        """Wait for its end; false if the time is up before."""
        deadline = None if patience_s is None else time.monotonic() + patience_s
        while not self.has_ended():
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def say_end(self) -> str:
        """Say how it ended."""
        code = self._process.returncode
        if code is not None and code < 0:
            with suppress(ValueError):
                return f"was killed by {signal.Signals(-code).name}"
        return f"has ended with code {code}"

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


def _identify(pid: int, command: tuple[str, ...]) -> Identity | None:
    """Describe a process that was just started.

    For a moment the kernel shows the command line of the process that it was forked from.
    """
    found = identify(pid)
    return None if found is None else msgspec.structs.replace(found, command=command)


def last_lines(log: Path) -> list[str]:
    """Give the last lines of a log, those that say why something went wrong, fit for a terminal."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    lines = [line for line in text.splitlines() if line.strip()][-_TAIL_LINES:]
    return ["".join(c if c.isprintable() else "\ufffd" for c in line) for line in lines]


def keep_one_old(log: Path) -> None:
    """Set a log that has grown large aside, in place of the one that was set aside before.

    Copied and emptied, not renamed: whoever writes to it has it open, and only ever appends.
    """
    with suppress(OSError):
        if log.stat().st_size > _MOST_LOG_BYTES:
            shutil.copyfile(log, log.with_suffix(".old.log"))
            os.truncate(log, 0)
