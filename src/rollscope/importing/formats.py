"""What a module of a foreign format has to offer, and the list of those there are.

A new format is one module with an `Importer`, and one line in `importers`.
"""

from typing import NamedTuple, Protocol

from rollscope.importing.accounts import FileAccount, Report
from rollscope.importing.writing import RunWriter

__all__ = ["Importer", "Options", "Place", "importers"]


class Place(NamedTuple):
    """Where a record stands."""

    file: FileAccount
    file_number: int
    line: int


class Options(NamedTuple):
    """What the user asked for."""

    batch_size: int | None = None


class Importer(Protocol):
    """Reads the records of one format in one import.

    Every record goes by twice, in the same order: once to be looked at, so that what comes late can
    change what is written for what came early, and once to be written.
    """

    format: str

    def claims(self, raw: bytes) -> bool:
        """Say quickly whether a line of a file of this format surely is a record of it."""

    def survey(self, place: Place, raw: bytes) -> None:
        """Look at a record; one that cannot be read is passed over."""

    def settle(self) -> None:
        """Draw the conclusions, before anything is written."""

    def take(self, place: Place, raw: bytes) -> str:
        """Write a record.

        Returns:
            Empty if it was written, `duplicate`, or why it was set aside.
        """

    def finish(self) -> None:
        """Write what is known only at the end."""


def importers(writer: RunWriter, report: Report, options: Options) -> dict[str, Importer]:
    """Give an importer of every format that can be read."""
    from rollscope.importing.areal_perf import ArealPerf
    from rollscope.importing.areal_sessions import ArealSessions

    every: tuple[Importer, ...] = (
        ArealSessions(writer, report, options),
        ArealPerf(writer, report),
    )
    return {importer.format: importer for importer in every}
