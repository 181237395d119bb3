"""One import: from files to a run, whole or not at all.

The run is written beside its place and moved there when it is finished, so that an import that was
killed leaves nothing behind but a folder that the next one removes, and none is ever doubled.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from rollscope.errors import CommandError
from rollscope.importing.accounts import FileAccount, Report
from rollscope.importing.formats import Importer, Options, Place, importers
from rollscope.importing.reading import Line, Reader
from rollscope.importing.recognising import Found, recognise, recognise_record
from rollscope.importing.sources import Source, find_sources
from rollscope.importing.values import decode_object
from rollscope.importing.writing import RunWriter
from rollscope.instrument.sinks.file import write_run_file
from rollscope.model.rundir import RUN_FILE
from rollscope.model.undecodable import UNDECODABLE
from rollscope.store.collecting import no_cycles

__all__ = ["REPORT_FILE", "import_run", "kept_report"]

REPORT_FILE: Final = "import.json"
_TELL_EVERY: Final = 2048
Progress = Callable[[int, int], None]


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
        CommandError: There is nothing to import, or the run exists and is not ours to replace.
    """
    sources = find_sources(places)
    options = options or Options()
    asked = {"format": format, "offsets": dict(offsets or {}), **options._asdict()}
    before = kept_report(run)
    if before is not None:
        if before.options == asked and _same_files(before, sources):
            return before
        same_paths = [file.path for file in before.files] == [str(s.path) for s in sources]
        if not (replace or same_paths):
            raise CommandError(
                f"{run} holds an import of other files; give another --run, or --replace"
            )
    elif run.exists() and any(run.iterdir()):
        raise CommandError(f"{run} exists and was not made by an import; give another --run")
    draft = run.parent / f".{run.name}.importing"
    shutil.rmtree(draft, ignore_errors=True)  # of one that was killed
    draft.mkdir(parents=True)
    try:
        work = _Import(sources, run.name, draft, format, offsets or {}, options, progress)
        with no_cycles():
            report = work.run()
        report.options = asked
        _keep(draft / REPORT_FILE, report)
        _move(draft, run)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return report


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


class _Import:
    def __init__(
        self,
        sources: list[Source],
        name: str,
        folder: Path,
        format_name: str | None,
        offsets: Mapping[str, int],
        options: Options,
        progress: Progress | None,
    ) -> None:
        self._folder, self._offsets, self._progress = folder, offsets, progress
        self._report = Report(run=name)
        self._writer = RunWriter(folder, self._report, offsets)
        self._importers = importers(self._writer, self._report, options)
        if format_name is not None and format_name not in self._importers:
            known = ", ".join(sorted(self._importers))
            raise CommandError(f"there is no format {format_name!r}; there is {known}", 2)
        self._files: list[tuple[Source, Found, FileAccount]] = []
        for source in sources:
            found = recognise(source)
            if format_name is not None:
                found = found._replace(format=format_name)
            account = FileAccount(
                path=str(source.path),
                format=found.format,
                size=source.size,
                modified_ns=source.modified_ns,
            )
            if found.format == "unknown":
                account.note = "no format that is known; it was not read"
            elif found.format not in self._importers:
                account.note = f"this looks like {found.title}, which is not read yet"
            self._files.append((source, found, account))
            self._report.files.append(account)
        # Lines say more than what was converted from them, and the first of two equals stays.
        self._files.sort(key=lambda file: file[1].is_document)
        self._total = 2 * sum(source.size for source in sources) or 1
        self._done = 0

    def run(self) -> Report:
        if not any(found.format in self._importers for _, found, _ in self._files):
            notes = "; ".join(f"{file.path}: {file.note}" for file in self._report.files[:5])
            raise CommandError(f"there is nothing to import: {notes}")
        write_run_file(
            str(self._folder / RUN_FILE),
            self._report.run,
            time.time_ns(),
            {"source": "import"},
            b"import",
        )
        for place, line, importer in self._records():
            if importer is not None and line.trouble in ("", "torn"):
                importer.survey(place, line.raw)
        for importer in self._importers.values():
            importer.settle()
        for place, line, importer in self._records():
            self._take(place, line, importer)
        for importer in self._importers.values():
            importer.finish()
        self._writer.close()
        unused = set(self._offsets) - self._writer.used_offsets
        if unused:
            names = ", ".join(domain.name for domain in self._report.domains[:20])
            raise CommandError(f"no clock domain is called {min(unused)}; there is {names}", 2)
        return self._report

    def _records(self) -> Iterator[tuple[Place, Line, Importer | None]]:
        for number, (source, found, account) in enumerate(self._files):
            main = self._importers.get(found.format)
            if main is not None:
                reader = Reader(source)
                try:
                    lines = (
                        reader.lines() if found.member is None else reader.elements(found.member)
                    )
                    for line in lines:
                        place = Place(account, number, line.number)
                        yield place, line, self._route(main, line)
                        if self._progress and not line.number % _TELL_EVERY:
                            self._progress(self._done + reader.done_bytes(), self._total)
                finally:
                    reader.close()
            self._done += source.size

    def _route(self, main: Importer, line: Line) -> Importer | None:
        """Find who reads a line; most are of the format of their file."""
        if main.claims(line.raw):
            return main
        read = decode_object(line.raw)
        name = None if read is None else recognise_record(read[0])
        return None if name is None else self._importers.get(name)

    def _take(self, place: Place, line: Line, importer: Importer | None) -> None:
        account = place.file
        account.read += 1
        why: Any = line.trouble if not line.raw else ""
        if not why and importer is not None:
            why = importer.take(place, line.raw)
            name = importer.format
            account.formats[name] = account.formats.get(name, 0) + 1
        elif not why:
            is_object = decode_object(line.raw) is not None
            why = "of no format that is read" if is_object else "bad: no JSON object"
        if why == "duplicate":
            account.duplicates += 1
        elif not why:
            account.imported += 1
        else:
            is_torn = line.trouble == "torn" and why.startswith("bad: ")
            account.leave("torn" if is_torn else why, line.number)
