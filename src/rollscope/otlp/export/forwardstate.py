"""What a forwarder remembers on disk: how far each run was sent, and which ones to their end.

The directory stands for one receiver, by whatever address that is reached: it may have moved.
"""

import fcntl
import hashlib
import os
from pathlib import Path
from typing import Final

import msgspec

from rollscope.errors import CommandError
from rollscope.instrument.wholefile import replace_file
from rollscope.model.rundir import LOG_DIR, LOG_SUFFIX
from rollscope.model.undecodable import UNDECODABLE

__all__ = ["ForwardState", "signature_of"]

_FINISHED_FILE: Final = "finished.json"
_POSITION_SUFFIX: Final = ".position"
_MOST_NAME_BYTES: Final = 200
"""Of a run's name in that of a file, which may have 255 with all that is added to it."""


def signature_of(run: Path) -> str:
    """Say in short what the logs of a run hold: it is the same as long as nobody writes to them."""
    digest = hashlib.sha256()
    for log in sorted((run / LOG_DIR).glob(f"*{LOG_SUFFIX}")):
        digest.update(f"{log.name} {log.stat().st_size}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:32]


class ForwardState:
    """A directory that belongs to one forwarder at a time."""

    receiver: Final = "the receiver of this directory"

    def __init__(self, directory: Path) -> None:
        """Take the directory, which is made if it is not there.

        Raises:
            CommandError: It cannot be used, or another forwarder does.
        """
        self._directory = directory
        self._finished: dict[str, str] = {}
        """What the logs of runs held when these were sent to their end."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise CommandError(
                f"--state-dir {directory} cannot be used: {error.strerror}"
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise CommandError(
                f"another export sends the runs of --state-dir {directory}; end it first, or give "
                "another directory for another receiver"
            ) from None
        self._load()

    def _load(self) -> None:
        try:
            data = (self._directory / _FINISHED_FILE).read_bytes()
            self._finished = msgspec.json.decode(data, type=dict[str, str])
        except (OSError, *UNDECODABLE):
            self._finished = {}  # positions know it too; it only takes longer to find out

    def file_of(self, run: Path) -> Path:
        """Give the file that holds the position of a run."""
        path = run.resolve()
        where = hashlib.sha256(os.fsencode(path.parent)).hexdigest()[:8]
        name = path.name
        if len(os.fsencode(name)) > _MOST_NAME_BYTES:
            name = hashlib.sha256(os.fsencode(name)).hexdigest()
        return self._directory / f"{name}-{where}{_POSITION_SUFFIX}"

    def is_sent(self, run: Path, signature: str) -> bool:
        """Say whether a run was sent to its end, and nobody wrote to it since."""
        return self._finished.get(_key(run)) == signature

    def note_sent(self, run: Path, signature: str) -> None:
        """Remember that a run was sent to its end."""
        self._finished[_key(run)] = signature
        replace_file(self._directory / _FINISHED_FILE, msgspec.json.encode(self._finished))

    def close(self) -> None:
        """Let the directory go."""
        os.close(self._lock)


def _key(run: Path) -> str:
    return hashlib.sha256(os.fsencode(run.resolve())).hexdigest()[:32]
