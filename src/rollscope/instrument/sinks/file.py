"""The file sink: one append-only log per process in the run directory.

A frame is one `write` to a file opened for appending, so it lies in the kernel's hands, safe from
`kill -9`, when `write` returns. A frame that was cut short by a full disk is taken back, so that a
log never has a torn frame in its middle.
"""

import os
import re

import msgspec

from rollscope.instrument.sinks import Frame, Opening
from rollscope.instrument.sinks.ownfile import OwnFile, append_whole
from rollscope.model.batch import SCHEMA_VERSION
from rollscope.model.rundir import LOG_DIR, LOG_SUFFIX, PAYLOAD_DIR, RUN_FILE, RunFile

__all__ = ["FileSink", "log_name", "write_run_file"]

_HOST_CHARACTERS = 128
"""A file name has at most 255."""


class FileSink:
    """Writes `log/<host>-<pid>-<boot>.rsl` and, when asked to keep payloads, its twin."""

    def __init__(self) -> None:
        self._opening: Opening | None = None
        self._open_files: dict[bool, OwnFile] = {}

    def open(self, opening: Opening) -> None:
        """Make the run directory and the log."""
        self.close()
        self._opening = opening
        self._file(is_payload=False)

    def _file(self, *, is_payload: bool) -> int:
        """Give the descriptor of a log, opened anew if the program has closed it under us.

        Raises:
            FileNotFoundError: Somebody has removed it. It is made anew the next time: not at once,
                or who is removing the whole run could not.
        """
        known = self._open_files.get(is_payload)
        if known is not None and known.is_in_place:
            return known.fileno()
        if known is not None and known.is_removed:
            self._open_files.pop(is_payload).close()
            raise FileNotFoundError(f"{known.path} was removed")
        known = self._open_files[is_payload] = self._make_file(is_payload=is_payload)
        return known.fileno()

    def _make_file(self, *, is_payload: bool) -> OwnFile:
        opening = self._opening
        if opening is None:
            raise RuntimeError("a sink has to be opened before it is written to")
        run = os.path.join(opening.directory, opening.run)
        directory = os.path.join(run, PAYLOAD_DIR if is_payload else LOG_DIR)
        os.makedirs(directory, exist_ok=True)
        write_run_file(
            os.path.join(run, RUN_FILE),
            opening.run,
            opening.header.started_ns,
            opening.tags,
            opening.process,
        )
        name = log_name(opening.header.host, opening.header.pid, opening.process)
        path = os.path.join(directory, name)
        return OwnFile(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, frame: Frame) -> None:
        """Append one frame, wholly or not at all."""
        append_whole(self._file(is_payload=frame.is_payload), frame.data)

    def close(self) -> None:
        """Close the files."""
        while self._open_files:
            self._open_files.popitem()[1].close()


def log_name(host: str, pid: int, process: bytes) -> str:
    """Name the log of a process."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "_", host)[:_HOST_CHARACTERS] or "host"
    return f"{plain}-{pid}-{process.hex()[-8:]}{LOG_SUFFIX}"


def write_run_file(
    path: str, run: str, created_ns: int, tags: dict[str, str], process: bytes
) -> None:
    """Write run.json unless another process of the run was first.

    Args:
        path: Where.
        run: The run's name.
        created_ns: When it began.
        tags: Its labels.
        process: Who writes; several may at once.
    """
    if os.path.exists(path):
        return
    content = RunFile(name=run, created_ns=created_ns, schema=SCHEMA_VERSION, tags=tags)
    draft = f"{path}.{process.hex()}.tmp"
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
