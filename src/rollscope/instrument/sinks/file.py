"""The file sink: one append-only log per process in the run directory.

A frame is one `write` to a file opened for appending, so it lies in the kernel's hands, safe from
`kill -9`, when `write` returns. A frame that was cut short by a full disk is taken back, so that a
log never has a torn frame in its middle.
"""

import os
import re
from typing import NamedTuple

import msgspec

from rollscope.instrument.sinks import Frame, Opening
from rollscope.model.batch import SCHEMA_VERSION
from rollscope.model.rundir import LOG_DIR, LOG_SUFFIX, PAYLOAD_DIR, RUN_FILE, RunFile

__all__ = ["FileSink"]


class _OpenFile(NamedTuple):
    descriptor: int
    identity: tuple[int, int]


class FileSink:
    """Writes `log/<host>-<pid>-<boot>.rsl` and, when asked to keep payloads, its twin."""

    def __init__(self) -> None:
        self._directory = ""
        self._name = ""
        self._open_files: dict[bool, _OpenFile] = {}

    def open(self, opening: Opening) -> None:
        """Make the run directory and the log."""
        self.close()
        host = re.sub(r"[^A-Za-z0-9.]+", "_", opening.header.host) or "host"
        self._name = f"{host}-{opening.header.pid}-{opening.process.hex()[-8:]}{LOG_SUFFIX}"
        self._directory = os.path.join(opening.directory, opening.run)
        os.makedirs(self._directory, exist_ok=True)
        _write_run_file(os.path.join(self._directory, RUN_FILE), opening)
        self._file(is_payload=False)

    def _file(self, *, is_payload: bool) -> int:
        """Give the descriptor of a log, opened anew if the program has closed it under us."""
        known = self._open_files.get(is_payload)
        if known is None or not _is_open(known):
            folder = PAYLOAD_DIR if is_payload else LOG_DIR
            directory = os.path.join(self._directory, folder)
            os.makedirs(directory, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            file = os.open(os.path.join(directory, self._name), flags, 0o644)
            known = self._open_files[is_payload] = _OpenFile(file, _identity(file))
        return known.descriptor

    def write(self, frame: Frame) -> None:
        """Append one frame, wholly or not at all."""
        file = self._file(is_payload=frame.is_payload)
        before = os.fstat(file).st_size
        written = 0
        try:
            while written < len(frame.data):
                written += os.write(file, frame.data[written:] if written else frame.data)
        except OSError:
            if written:
                os.ftruncate(file, before)
            raise

    def close(self) -> None:
        """Close the files."""
        while self._open_files:
            known = self._open_files.popitem()[1]
            if _is_open(known):
                os.close(known.descriptor)


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _is_open(file: _OpenFile) -> bool:
    """Say whether a descriptor is still the file it was: a program may close any number."""
    try:
        return _identity(file.descriptor) == file.identity
    except OSError:
        return False


def _write_run_file(path: str, opening: Opening) -> None:
    """Write run.json unless another process of the run was first."""
    if os.path.exists(path):
        return
    content = RunFile(
        name=opening.run,
        created_ns=opening.header.started_ns,
        schema=SCHEMA_VERSION,
        tags=opening.tags,
    )
    draft = f"{path}.{opening.process.hex()}.tmp"
    with open(draft, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
    try:
        os.link(draft, path)  # fails if it exists: the first process wins, whole file or none
    except FileExistsError:
        pass
    except OSError:  # no hard links on this file system
        os.replace(draft, path)
        return
    os.unlink(draft)
