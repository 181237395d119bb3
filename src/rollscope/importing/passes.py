"""The two passes of an import: every record is looked at, then every record is written.

An `Import` is pickled now and then; all that it holds must survive that.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from rollscope.errors import CommandError
from rollscope.importing.accounts import FileAccount, Report
from rollscope.importing.checkpoints import Keeper
from rollscope.importing.formats import Importer, Options, Place, importers
from rollscope.importing.reading import Line, Reader
from rollscope.importing.recognising import Found, recognise, recognise_record
from rollscope.importing.refused import why_refused
from rollscope.importing.sources import Source
from rollscope.importing.values import decode_object
from rollscope.importing.writing import RunWriter
from rollscope.instrument.sinks.file import write_run_file
from rollscope.model.rundir import RUN_FILE

__all__ = ["Import", "Progress"]

_TELL_EVERY: Final = 2048
Progress = Callable[[int, int], None]
"""Told how many bytes of how many are done."""


class _File(NamedTuple):
    source: Source
    found: Found
    account: FileAccount


class Import:
    """One import into a draft of a run."""

    def __init__(
        self,
        sources: list[Source],
        name: str,
        folder: Path,
        format_name: str | None,
        offsets: Mapping[str, int],
        options: Options,
    ) -> None:
        """Look at the files.

        Raises:
            CommandError: None of them can be read, or there is no such format.
        """
        self._folder, self._offsets = folder, dict(offsets)
        self._report = Report(run=name)
        self._writer = RunWriter(folder, self._report, offsets)
        self._importers = importers(self._writer, self._report, options)
        if format_name is not None and format_name not in self._importers:
            known = ", ".join(sorted(self._importers))
            raise CommandError(f"there is no format {format_name!r}; there is {known}", 2)
        self._files = [self._look(source, format_name) for source in sources]
        self._report.files = [file.account for file in self._files]
        self._check()
        # Lines say more than what was converted from them, and the first of two equals stays.
        self._files.sort(key=lambda file: file.found.is_document)
        self._total = 2 * sum(source.size for source in sources) or 1
        self._is_surveyed = False
        self._file_number = 0
        self._count = 0
        """How many records of that file went by."""
        self._progress: Progress | None = None
        self._keeper: Keeper | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_progress": None, "_keeper": None}

    def _look(self, source: Source, format_name: str | None) -> _File:
        account = FileAccount(
            path=str(source.path),
            format="unknown",
            size=source.size,
            modified_ns=source.modified_ns,
        )
        try:
            found = recognise(source)
        except OSError as error:
            account.note = f"it cannot be read: {error.strerror}"
            return _File(source, Found("unknown", ""), account)
        if format_name is not None:
            found = found._replace(format=format_name)
        account.format = found.format
        if not source.size:
            account.note = "it is empty"
        elif found.format == "unknown":
            unknown = "no format that is known; it was not read"
            account.note = why_refused(source.path) or unknown
        elif found.format not in self._importers:
            account.note = f"this looks like {found.title}, which is not read yet"
        return _File(source, found, account)

    def _check(self) -> None:
        if any(file.found.format in self._importers for file in self._files):
            return
        raise CommandError(f"there is nothing to import: {'; '.join(self._report.notes())}")

    def run(self, progress: Progress | None, keeper: Keeper) -> Report:
        """Do what has not been done yet.

        Raises:
            CommandError: An offset was given for a clock domain that is not there.
        """
        self._progress, self._keeper = progress, keeper
        self._write_run_file(None)
        if not self._is_surveyed:
            for place, line, importer in self._records():
                if importer is not None and line.trouble in ("", "torn"):
                    importer.survey(place, line.raw)
            for importer in self._importers.values():
                importer.settle()
            self._is_surveyed, self._file_number = True, 0
        for place, line, importer in self._records():
            self._take(place, line, importer)
        for importer in self._importers.values():
            importer.finish()
        self._writer.close()
        self._write_run_file(self._writer.first_ns())
        unused = set(self._offsets) - self._writer.used_offsets
        if unused:
            names = ", ".join(domain.name for domain in self._report.domains[:20])
            raise CommandError(f"no clock domain is called {min(unused)}; there is {names}", 2)
        return self._report

    def _write_run_file(self, first_ns: int | None) -> None:
        """Say that there is a run; it began when its data does, if that is known."""
        path = self._folder / RUN_FILE
        path.unlink(missing_ok=True)
        created_ns = first_ns or time.time_ns()
        write_run_file(str(path), self._report.run, created_ns, {"source": "import"}, b"import")

    def _records(self) -> Iterator[tuple[Place, Line, Importer | None]]:
        base = sum(file.source.size for file in self._files[: self._file_number])
        base += self._is_surveyed * self._total // 2
        while self._file_number < len(self._files):
            file = self._files[self._file_number]
            main = self._importers.get(file.found.format)
            if main is not None:
                yield from self._records_of(file, main, base)
            base += file.source.size
            self._file_number, self._count = self._file_number + 1, 0

    def _records_of(
        self, file: _File, main: Importer, base: int
    ) -> Iterator[tuple[Place, Line, Importer | None]]:
        number, skipped, claims = self._file_number, self._count, main.claims
        try:
            reader = Reader(file.source)
        except OSError as error:
            file.account.note = f"it cannot be read any more: {error.strerror}"
            return
        try:
            for line in reader.records(file.found.member):
                if skipped:
                    skipped -= 1
                    continue
                place = Place(file.account, number, line.number, reader.outline)
                yield place, line, main if claims(line.raw) else self._route(line)
                self._count += 1
                if not self._count % _TELL_EVERY:
                    self._pause(base + reader.done_bytes())
        finally:
            reader.close()

    def _pause(self, done: int) -> None:
        """Tell how far it is, and keep the state if it is time."""
        if self._progress is not None:
            self._progress(done // 2, self._total // 2)  # every byte is read twice
        if self._keeper is not None and self._keeper.is_due():
            self._writer.rest()
            self._keeper.keep(self, min(done / self._total, 1.0))

    def _route(self, line: Line) -> Importer | None:
        """Find who reads a line that may not be of the format of its file."""
        read = decode_object(line.raw)
        name = None if read is None else recognise_record(read[0])
        return None if name is None else self._importers.get(name)

    def _take(self, place: Place, line: Line, importer: Importer | None) -> None:
        account = place.file
        account.read += 1
        why = line.trouble if not line.raw else ""
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
