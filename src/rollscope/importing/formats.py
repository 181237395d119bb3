"""What a module of a foreign format has to offer, and the list of those there are.

A new format is one module with an `Importer`, and one line in `importers`.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from rollscope.importing.accounts import FileAccount, Report
from rollscope.importing.writing import RunWriter

__all__ = ["Importer", "Options", "Place", "importers"]


NO_OUTLINE: Final[Mapping[str, Any]] = {}


class Place(NamedTuple):
    """Where a record stands."""

    file: FileAccount
    file_number: int
    line: int
    outline: Mapping[str, Any] = NO_OUTLINE
    """Of a document, its small members beside the records; whole when all was surveyed."""

    @property
    def number(self) -> int:
        """The place as one number, the same in both passes and in the order of reading."""
        return self.file_number << 40 | self.line


class Options(NamedTuple):
    """What the user asked for."""

    batch_size: int | None = None
    align: bool = False
    """Whether clocks without an anchor may be estimated from what happens in two processes."""
    min_us: int | None = None
    """The least length of spans of Chrome traces; by default that of their writer."""


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
    from rollscope.importing.chrome import Chrome
    from rollscope.importing.jaeger import JaegerFiles
    from rollscope.importing.otlp import OtlpFiles
    from rollscope.importing.prometheus_text import PrometheusText
    from rollscope.importing.rl_insight import RlInsight
    from rollscope.importing.rl_insight_sessions import AgentSessions
    from rollscope.importing.rollscope_lines import RollscopeLines
    from rollscope.importing.slime_rows import SlimeRows
    from rollscope.importing.verifiers_episodes import VerifiersEpisodes
    from rollscope.importing.xtuner_producer import XtunerProducer
    from rollscope.importing.xtuner_sandbox import XtunerSandbox

    agents = AgentSessions(report)

    every: tuple[Importer, ...] = (
        OtlpFiles(writer, report),
        JaegerFiles(writer, report),
        ArealSessions(writer, report, options),
        ArealPerf(writer, report, options),
        Chrome(writer, report, options),
        XtunerProducer(writer, report),
        XtunerSandbox(writer, report),
        RlInsight(writer, report, agents),
        PrometheusText(writer, report, agents),
        RollscopeLines(writer, report),
        VerifiersEpisodes(writer, report),
        SlimeRows(writer, report),
    )
    return {importer.format: importer for importer in every}
