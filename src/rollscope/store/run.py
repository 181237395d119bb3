"""A run directory: finding it, naming what is wrong with a path, following all its logs."""

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from rollscope.errors import NotARunError
from rollscope.model.records import Record
from rollscope.model.rundir import LOG_DIR, LOG_SUFFIX, PAYLOAD_DIR, RUN_FILE, RunFile
from rollscope.model.undecodable import UNDECODABLE
from rollscope.store.log import LogFollower

__all__ = ["RunFollower", "find_run", "list_runs", "read_run_file"]


def find_run(given: str, directory: str = "runs") -> Path:
    """Find a run by the path of its directory or one of its logs, or by its name in `directory`.

    Raises:
        NotARunError: There is none; the message says what is there instead.
    """
    try:
        return _find(given, directory)
    except OSError as error:
        raise NotARunError(f"cannot look for the run {given!r}: {error.strerror}") from None


def _find(given: str, directory: str) -> Path:
    path = Path(given)
    for candidate in (path, Path(directory, given)):
        if _is_run(candidate) or (candidate.is_file() and candidate.suffix == LOG_SUFFIX):
            return candidate
    if path.is_file():
        raise NotARunError(
            f"{path} is a file but no {LOG_SUFFIX} log; give a run directory or a file in its "
            f"{LOG_DIR}/ folder"
        )
    if path.is_dir():
        runs = list_runs(path)
        hint = f"it holds the runs: {', '.join(runs)}" if runs else "it holds no run either"
        raise NotARunError(f"{path} is not a run directory (no {LOG_DIR}/ folder); {hint}")
    known = list_runs(Path(directory))
    hint = f"runs in {directory}: {', '.join(known)}" if known else f"there are none in {directory}"
    raise NotARunError(f"there is no run {given!r}; {hint}")


def _is_run(path: Path) -> bool:
    return (path / LOG_DIR).is_dir()


def list_runs(directory: Path) -> list[str]:
    """Name the runs in a directory, the oldest first."""
    if not directory.is_dir():
        return []
    runs = [path for path in directory.iterdir() if _is_run(path)]
    return [path.name for path in sorted(runs, key=lambda run: (run.stat().st_mtime, run.name))]


def read_run_file(run: Path) -> RunFile | None:
    """Read run.json; None if it is missing or cannot be read, which no reader depends on."""
    try:
        return msgspec.json.decode((run / RUN_FILE).read_bytes(), type=RunFile)
    except (OSError, *UNDECODABLE):
        return None


class RunFollower:
    """Follows all logs of a run, new ones included."""

    def __init__(self, path: Path, *, payloads: bool = False) -> None:
        self.path = path
        self._payloads = payloads
        self.logs: dict[Path, LogFollower] = {}

    def poll(self, *, final: bool = False) -> Iterator[Record]:
        """Read what was added since the last call, and which open spans have been lost.

        Args:
            final: Read once and for all: a torn end counts as damage where its process is gone.
        """
        for path in self._files():
            log = self.logs.setdefault(path, LogFollower(path))
            try:
                yield from self._poll_log(log, final=final)
            except (NotARunError, OSError) as error:
                # One file of zeros, as a power cut leaves them, or one that cannot be read does
                # not hide the other logs.
                if path == self.path:
                    raise
                if str(error) not in log.problems:
                    log.problems.append(str(error))

    def _poll_log(self, log: LogFollower, *, final: bool) -> Iterator[Record]:
        yield from log.poll()
        now_ns = time.time_ns()
        if log.is_over(now_ns):
            # Once more: it may have written and ended between the two looks.
            yield from log.poll(final=final)
        yield from log.lost_spans(now_ns)

    def _files(self) -> list[Path]:
        if self.path.is_file():
            return [self.path]
        files = list((self.path / LOG_DIR).glob(f"*{LOG_SUFFIX}"))
        if self._payloads:
            files += (self.path / PAYLOAD_DIR).glob(f"*{LOG_SUFFIX}")
        return sorted(files)

    @property
    def problems(self) -> list[str]:
        """What is wrong with the logs read so far, in sentences."""
        return [problem for log in self.logs.values() for problem in log.problems]
