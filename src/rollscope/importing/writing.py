"""Writing what was read as logs of a run, one per clock domain."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from rollscope._version import __version__
from rollscope.collect.authored import AuthoredLog
from rollscope.importing.accounts import DomainAccount, Report
from rollscope.importing.values import stable_bytes
from rollscope.model.batch import Fact, Metric, ProcessHeader
from rollscope.model.kinds import EVENT_CODE
from rollscope.otlp.rows import Row, columns_of

__all__ = ["ZERO_NS", "Domain", "RunWriter"]

ZERO_NS: Final = 946_684_800_000_000_000
"""Where a clock without an anchor has its zero if no wall time is known at all: the first second of
the year 2000, since a time of 0 means "open" in a frame. Else it is the earliest wall time, so that
the page need not span decades; every span then says that its clock is not anchored."""
_HELD_ROWS: Final = 65_536
_MOST_OPEN_LOGS: Final = 200
_FOREVER_S: Final = 1e9
"""Between signs of life: nobody knows whether the writer of a file is gone."""
_LEAST_NS: Final = 1


class Domain:
    """A process in one of its lives, whose times share a clock; gets rows in nanoseconds."""

    def __init__(self, writer: "RunWriter", account: DomainAccount, header: ProcessHeader) -> None:
        self._writer = writer
        self.account = account
        self.header = header
        self.is_gone = False
        """Whether its process is known to be over: what is open then is lost."""
        self.shift_ns = 0
        """What is added to every time."""
        self._rows: list[Row] = []
        self._facts: list[Fact] = []
        self._first_ns = 0
        self._last_ns = 0
        self._log: AuthoredLog | None = None

    @property
    def name(self) -> str:
        """What the user knows it by."""
        return self.account.name

    def anchor(self, zero_ns: int) -> None:
        """Say where the zero of its clock stands; what the user says goes first."""
        if self.account.clock == "unanchored":
            self.account.clock, self.shift_ns = "anchored", zero_ns

    def add(self, row: Row) -> None:
        """Take a span or an event; its times are the source's."""
        if self.account.clock == "unanchored":
            self.shift_ns = self._writer.zero_ns or ZERO_NS
        if self.shift_ns:
            end = row.end_ns and row.end_ns + self.shift_ns
            row = row._replace(start_ns=row.start_ns + self.shift_ns, end_ns=end)
        if row.end_ns == 0 and row.what != EVENT_CODE:
            self.account.open += 1
        self._rows.append(row)
        self._writer.held += 1
        if self._writer.held >= _HELD_ROWS:
            self._writer.flush()

    def fact(self, trace_id: bytes, span_id: int, at_ns: int, facts: Mapping[str, Any]) -> None:
        """Take a late fact about a span."""
        self._facts.append(Fact(trace_id, span_id, at_ns + self.shift_ns, dict(facts)))
        self._writer.held += 1

    def metric(self, at_ns: int, metrics: list[Metric]) -> None:
        """Take metrics of one moment."""
        self._open(at_ns + self.shift_ns).write(at_ns=at_ns + self.shift_ns, metrics=metrics)

    def flush(self) -> None:
        """Write what is held."""
        if not self._rows and not self._facts:
            return
        rows, self._rows = self._rows, []
        self.account.rows += len(rows)
        latest = max((max(row.start_ns, row.end_ns) for row in rows), default=self._last_ns)
        first = min((row.start_ns for row in rows), default=latest)
        self._last_ns = max(self._last_ns, latest)
        log = self._open(first)
        for columns in columns_of(rows):
            log.write(at_ns=self._last_ns, spans=columns)
        if self._facts:
            log.write(at_ns=self._last_ns, facts=self._facts)
            self._facts = []

    def release(self) -> None:
        """Close the log's file until it is needed again."""
        if self._log is not None:
            self._log.release()

    def close(self) -> None:
        """Write the rest; a log with something open stays open, unless its process is gone."""
        self.flush()
        if self._log is not None and (self.is_gone or not self.account.open):
            self._log.write(at_ns=max(self._last_ns, _LEAST_NS), end="imported")
        self.release()

    def _open(self, first_ns: int) -> AuthoredLog:
        if self._log is None:
            self.header.started_ns = self.header.started_mono_ns = max(first_ns, _LEAST_NS)
            process = stable_bytes(8, "domain", self.name)
            self._log = AuthoredLog(self._writer.folder, process, self.header)
        return self._log


class RunWriter:
    """The run that is being written, with the account of it."""

    def __init__(self, folder: Path, report: Report, offsets: Mapping[str, int]) -> None:
        """Write nothing yet.

        Args:
            folder: The run directory.
            report: Where domains are listed.
            offsets: By the name of a domain, what is to be added to its times, in nanoseconds.
        """
        self.folder = folder
        self.report = report
        self.held = 0
        self.zero_ns: int | None = None
        """The earliest wall time, as far as it is known before anything is written."""
        self.used_offsets: set[str] = set()
        self._offsets = offsets
        self._domains: dict[str, Domain] = {}

    def domain(
        self,
        name: str,
        *,
        role: str = "",
        rank: int | None = None,
        host: str = "",
        pid: int = 0,
        is_wall: bool = True,
    ) -> Domain:
        """Give the domain of a name; who it is counts only the first time."""
        found = self._domains.get(name)
        if found is None:
            header = ProcessHeader(
                host=host or name,
                pid=pid if 0 <= pid < 2**31 else 0,
                role=role or name,
                started_ns=_LEAST_NS,
                started_mono_ns=_LEAST_NS,
                heartbeat_s=_FOREVER_S,
                python="",
                version=__version__,
                rank=rank if rank is not None and 0 <= rank < 2**31 else None,
            )
            account = DomainAccount(name=name, clock="wall" if is_wall else "unanchored")
            found = self._domains[name] = Domain(self, account, header)
            if name in self._offsets:
                self.used_offsets.add(name)
                found.shift_ns = self._offsets[name]
                account.clock = "offset"
                account.offset_s = str(Decimal(found.shift_ns).scaleb(-9))
            self.report.domains.append(account)
        return found

    def note_wall(self, time_ns: int) -> None:
        """Learn of a wall time; to be called while records are surveyed or settled."""
        self.zero_ns = time_ns if self.zero_ns is None else min(self.zero_ns, time_ns)

    def flush(self) -> None:
        """Write everything that is held."""
        self.held = 0
        for domain in self._domains.values():
            domain.flush()
            if len(self._domains) > _MOST_OPEN_LOGS:
                domain.release()

    def close(self) -> None:
        """Write the rest and close all logs."""
        for domain in self._domains.values():
            domain.close()
