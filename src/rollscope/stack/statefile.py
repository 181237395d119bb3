"""The directory that says what `rollscope server` runs here: its state, its lock, its logs.

One process, the supervisor, holds the lock and alone writes the state. Others read it; they trust
the lock for whether somebody is there, and the state for who was started.
"""

import fcntl
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import msgspec

from rollscope.errors import CommandError
from rollscope.instrument.wholefile import replace_file
from rollscope.stack.filelocks import wait_for_lock
from rollscope.stack.processes import Identity, identify

__all__ = ["Lock", "MemberState", "StackState", "StateDir", "default_state_dir"]

_LOOKING_S: Final = 0.2
"""How long the lock may look taken because somebody else looks whether it is."""


class MemberState(msgspec.Struct, kw_only=True):
    """One program of the stack, as the supervisor last saw it."""

    name: str
    state: Literal["waiting", "starting", "running", "restarting", "failed", "stopped"]
    address: str
    """Where a browser finds it; empty if it listens nowhere."""
    health: str
    """The address that answers when it is ready; empty if it has none."""
    version: str
    log: str
    process: Identity | None = None
    restarts: int = 0
    problem: str = ""


class StackState(msgspec.Struct, kw_only=True):
    """All that was started together."""

    supervisor: Identity
    page: str
    """Address of the page, without the token."""
    runs: str
    token_file: str | None = None
    is_ready: bool = False
    members: list[MemberState]


class StateDir:
    """The directory itself, with the names of what is in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state_file = path / "state.json"
        self.lock_file = path / "lock"
        self.token_file = path / "token"
        self.logs = path / "logs"

    def prepare(self) -> None:
        """Make the directory, for its owner alone.

        Raises:
            CommandError: It cannot be made, or belongs to somebody else.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if self.path.stat().st_uid != os.geteuid():
                raise CommandError(
                    f"{self.path} belongs to somebody else; give another --state-dir"
                )
            self.path.chmod(0o700)
            self.logs.mkdir(exist_ok=True)
        except OSError as error:
            raise CommandError(
                f"cannot use the state directory {self.path}: {error.strerror}; give another "
                "with --state-dir"
            ) from error

    def log_of(self, name: str) -> Path:
        """Give the file that a member's output goes to."""
        return self.logs / f"{name}.log"

    def read(self) -> StackState | None:
        """Read what was started; None if nothing was, or if nobody can tell any more."""
        try:
            return msgspec.json.decode(self.state_file.read_bytes(), type=StackState)
        except (OSError, msgspec.DecodeError):
            return None

    def write(self, state: StackState) -> None:
        """Replace the state as a whole: whoever reads sees the old one or the new one."""
        replace_file(self.state_file, msgspec.json.format(msgspec.json.encode(state)))

    def forget(self) -> None:
        """Take note that nothing runs any more."""
        self.state_file.unlink(missing_ok=True)

    def holder(self) -> Identity | None:
        """Tell who holds the lock; None if nobody does."""
        try:
            file = os.open(self.lock_file, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return self._named_in_lock()
        finally:
            os.close(file)
        return None

    def _named_in_lock(self) -> Identity:
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(self.lock_file.read_bytes(), type=Identity)
        # Taken a moment ago, by somebody who is about to write down who it is.
        return Identity(0, "", "", os.uname().nodename, ())


class Lock:
    """The lock of a state directory, held by this process until it is let go or dies."""

    def __init__(self, file: int) -> None:
        self._file = file

    @classmethod
    def take(cls, where: StateDir) -> "Lock | None":
        """Take it and write down who holds it; None if another process has it."""
        file = os.open(where.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not wait_for_lock(file, _LOOKING_S):
            os.close(file)
            return None
        os.ftruncate(file, 0)
        os.write(file, msgspec.json.encode(identify(os.getpid())))
        return cls(file)

    def release(self) -> None:
        """Let go of it."""
        os.ftruncate(self._file, 0)
        os.close(self._file)


def default_state_dir(environ: Mapping[str, str], given: str | None = None) -> Path:
    """Say where the state of the stack is kept: below what is given, or set, or usual."""
    if given := given or environ.get("ROLLSCOPE_STATE_DIR"):
        return Path(given).expanduser().absolute() / "server"
    state = environ.get("XDG_STATE_HOME", "")
    home = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return home / "rollscope" / "server"
