"""One import: from files to a run, whole or not at all.

The run is written beside its place and moved there when it is finished. An import that was stopped
leaves that draft behind, and in the user's cache what it knew; the next one goes on from there if
nothing has changed, and else starts over. None is ever doubled.
"""

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from rollscope.errors import CommandError
from rollscope.importing.accounts import Report
from rollscope.importing.checkpoints import Keeper
from rollscope.importing.formats import Options
from rollscope.importing.passes import Import, Progress
from rollscope.importing.sources import Source, find_sources
from rollscope.model.undecodable import UNDECODABLE
from rollscope.store.collecting import no_cycles

__all__ = ["REPORT_FILE", "Interrupted", "import_run", "kept_report"]

REPORT_FILE: Final = "import.json"


class Interrupted(KeyboardInterrupt):
    """An import was stopped by Ctrl+C."""

    def __init__(self, share: float | None) -> None:
        """Say how much need not be done again, of 1; None if nothing was kept."""
        super().__init__()
        self.share = share


def kept_report(run: Path) -> Report | None:
    """Give the report of the import that made a run; None if none did."""
    try:
        return msgspec.json.decode((run / REPORT_FILE).read_bytes(), type=Report)
    except (OSError, *UNDECODABLE):
        return None


def import_run(
    places: Iterable[str | Path],
    run: Path,
    *,
    format: str | None = None,
    offsets: Mapping[str, int] | None = None,
    options: Options | None = None,
    replace: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Import files, folders and patterns as one run.

    Args:
        places: What to read.
        run: The run directory to be made.
        format: Take every file for this one; else each is recognised.
        offsets: By the name of a clock domain, what is added to its times, in nanoseconds.
        options: What formats may be told.
        replace: Whether a run that was made by an import of other files may go.
        progress: Told how many bytes of how many are done.

    Returns:
        The account; of the earlier import if the run holds exactly this already.

    Raises:
        CommandError: There is nothing to import, the run exists and is not ours to replace, or
            another import into it is going on.
        Interrupted: The user has stopped it.
    """
    sources = find_sources(places)
    options = options or Options()
    asked = {"format": format, "offsets": dict(offsets or {}), **options._asdict()}
    before = kept_report(run)
    if before is not None and before.options == asked and _same_files(before, sources):
        return before
    _check_place(run, before, sources, replace=replace)
    draft = run.parent / f".{run.name}.importing"
    with _held(draft, run):
        keeper = Keeper(run, draft, (asked, [tuple(map(str, source)) for source in sources]))
        work = keeper.find()
        if not isinstance(work, Import):
            keeper.forget()
            _clear(draft)
            work = None
        try:
            share = keeper.share
            work = work or Import(sources, run.name, draft, format, offsets or {}, options)
            with no_cycles():
                report = work.run(progress, keeper)
            report.options, report.resumed_at = asked, share
            _keep(draft / REPORT_FILE, report)
            _move(draft, run)
        except KeyboardInterrupt:
            if keeper.share is None:
                shutil.rmtree(draft, ignore_errors=True)
            raise Interrupted(keeper.share) from None
        except BaseException:
            keeper.forget()
            shutil.rmtree(draft, ignore_errors=True)
            raise
        keeper.forget()
    return report


def _check_place(run: Path, before: Report | None, sources: list[Source], *, replace: bool) -> None:
    """Refuse to replace what must stay."""
    if before is not None:
        same_paths = [file.path for file in before.files] == [str(s.path) for s in sources]
        if not (replace or same_paths):
            raise CommandError(
                f"{run} holds an import of other files; give another --run, or --replace"
            )
    elif run.exists() and (not run.is_dir() or any(run.iterdir())):
        raise CommandError(f"{run} exists and was not made by an import; give another --run")


@contextmanager
def _held(draft: Path, run: Path) -> Iterator[None]:
    """Make the draft, if there is none, and let nobody else write into it."""
    draft.mkdir(parents=True, exist_ok=True)
    folder = os.open(draft, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            told = f"another import into {run} is going on; wait until it is done"
            raise CommandError(told) from None
        yield
    finally:
        os.close(folder)


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _same_files(before: Report, sources: list[Source]) -> bool:
    held = [(file.path, file.size, file.modified_ns) for file in before.files]
    return held == [(str(s.path), s.size, s.modified_ns) for s in sources]


def _keep(path: Path, report: Report) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def _move(draft: Path, run: Path) -> None:
    old = run.parent / f".{run.name}.replaced"
    shutil.rmtree(old, ignore_errors=True)
    if run.exists():
        os.replace(run, old)
    os.replace(draft, run)
    shutil.rmtree(old, ignore_errors=True)
