"""Writing what was read as logs of a run, one per clock domain."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from rollscope._version import __version__
from rollscope.collect.authored import AuthoredLog
from rollscope.importing.accounts import DomainAccount, Report
from rollscope.importing.values import stable_bytes
from rollscope.model.batch import IMPORTED, SNAPSHOT, Fact, Metric, ProcessHeader
from rollscope.model.kinds import EVENT_CODE, STATUS_CODES, Status
from rollscope.otlp.rows import Row, columns_of

__all__ = ["ZERO_NS", "Domain", "RunWriter"]

ZERO_NS: Final = 1_000_000_000_000_000_000
"""Where a clock without an anchor has its zero if no wall time is known at all: a billion seconds,
in September 2001. A time of 0 means "open" in a frame, and what is earlier than that is no wall
clock's to readers of other formats. Else it is the earliest wall time, so that the page need not
span decades; every span then says that its clock is not anchored."""
_HELD_ROWS: Final = 65_536
_METRICS: Final = 4096
"""In one frame."""
_MOST_OPEN_LOGS: Final = 200
_FOREVER_S: Final = 1e9
"""Between signs of life: a file has none, and gaps in it are no silence."""
_LEAST_NS: Final = 1
_MOST_NS: Final = 2**62
"""In the year 2116."""
_MOST_DOMAINS: Final = 10_000
_OTHERS: Final = "others"
"""Where the rest goes of an import that names more processes than any job has."""
_ENDED: Final = frozenset(STATUS_CODES[s] for s in (Status.OK, Status.ERROR, Status.CANCELLED))
"""What is so has an end, even if that is the zero of its clock."""
_start_of: Final = attrgetter("start_ns")
_end_of: Final = attrgetter("end_ns")
_moment_of: Final = attrgetter("mono_ns")


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
        self._metrics: list[Metric] = []
        self._first_ns = 0
        self._last_ns = 0
        self._log: AuthoredLog | None = None
        self._leader: Domain | None = None
        self._behind_ns = 0

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
        self.extend((row,))

    def extend(self, rows: Sequence[Row]) -> None:
        """Take some; quicker than one by one."""
        if shift := self._shift():
            rows = [
                row._replace(
                    start_ns=row.start_ns + shift,
                    end_ns=row.end_ns + shift if row.end_ns or row.status in _ENDED else 0,
                )
                for row in rows
            ]
        are_fit = True
        for row in rows:
            are_fit &= 0 < row.start_ns < _MOST_NS > row.end_ns >= 0
            if not row.end_ns and row.what != EVENT_CODE:
                self.account.open += 1
        self._rows += rows if are_fit else self._bounded(rows)
        self._writer.held += len(rows)
        if self._writer.held >= _HELD_ROWS:
            self._writer.flush()

    def _bounded(self, rows: Sequence[Row]) -> list[Row]:
        """Bring times that no frame can hold to the nearest that one can; never in silence."""
        self._writer.report.guess("time that no clock shows")
        return [
            row._replace(start_ns=_within(row.start_ns), end_ns=row.end_ns and _within(row.end_ns))
            for row in rows
        ]

    def fact(self, trace_id: bytes, span_id: int, at_ns: int, facts: Mapping[str, Any]) -> None:
        """Take a late fact about a span."""
        at_ns = _within(at_ns + self._shift())
        self._facts.append(Fact(trace_id, span_id, at_ns, dict(facts)))
        self._writer.held += 1
        if self._writer.held >= _HELD_ROWS:
            self._writer.flush()

    def metric(self, at_ns: int, metrics: list[Metric]) -> None:
        """Take metrics of one moment; those that have a time of ours keep it."""
        for metric in metrics:
            metric.mono_ns = _within(metric.mono_ns or at_ns + self._shift())
        self._metrics += metrics
        self._writer.held += len(metrics)
        if self._writer.held >= _HELD_ROWS:
            self._writer.flush()

    def follow(self, other: "Domain", offset_ns: int, spread_ns: int, pairs: int) -> None:
        """Let its clock stand to that of another as was estimated."""
        account = self.account
        account.clock, account.aligned_to, account.pairs = "aligned", other.name, pairs
        account.offset_s, account.spread_s = _as_seconds(offset_ns), _as_seconds(spread_ns)
        self._leader, self._behind_ns = other, offset_ns

    def _shift(self) -> int:
        if self._leader is not None:
            self.shift_ns = self._leader._shift() + self._behind_ns
        elif self.account.clock == "unanchored":
            self.shift_ns = self._writer.zero_ns or ZERO_NS
        return self.shift_ns

    def flush(self) -> None:
        """Write what is held."""
        if not self._rows and not self._facts and not self._metrics:
            return
        rows, self._rows = self._rows, []
        self.account.rows += len(rows)
        starts = list(map(_start_of, rows))
        starts += map(_moment_of, self._metrics)
        self._last_ns = max([self._last_ns, *starts, *map(_end_of, rows)])
        first = min(starts, default=self._last_ns)
        self._first_ns = min(self._first_ns or first, first)
        log = self._open(first)
        for columns in columns_of(rows):
            log.write(at_ns=self._last_ns, spans=columns)
        if self._facts:
            log.write(at_ns=self._last_ns, facts=self._facts)
            self._facts = []
        for start in range(0, len(self._metrics), _METRICS):
            log.write(at_ns=self._last_ns, metrics=self._metrics[start : start + _METRICS])
        self._metrics = []

    def release(self) -> None:
        """Close the log's file until it is needed again."""
        if self._log is not None:
            self._log.release()

    def close(self) -> None:
        """Write the rest, and that nothing more is known; what is open stays so.

        Unless its process is gone: then what is open is lost.
        """
        self.flush()
        if self._log is not None:
            # Told again with the end, now that it is known.
            self.header.started_ns = self.header.started_mono_ns = max(self._first_ns, _LEAST_NS)
            is_all = self.is_gone or not self.account.open
            end = IMPORTED if is_all else SNAPSHOT
            self._log.write(at_ns=max(self._last_ns, _LEAST_NS), end=end)
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
        if len(self._domains) >= _MOST_DOMAINS and name not in self._domains:
            self.report.guess("process, of which there are too many")
            name = _OTHERS
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
                account.offset_s = _as_seconds(found.shift_ns)
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

    def first_ns(self) -> int | None:
        """Give the first time that was written, of those on a clock that is known."""
        known = [one for one in self._domains.values() if one.account.clock != "unanchored"]
        return min((one._first_ns for one in known if one._first_ns), default=None)

    def rest(self) -> None:
        """Write everything that is held, and leave no file open until more comes."""
        self.flush()
        for domain in self._domains.values():
            domain.release()

    def close(self) -> None:
        """Write the rest and close all logs."""
        for domain in self._domains.values():
            domain.close()


def _within(time_ns: int) -> int:
    return min(max(time_ns, _LEAST_NS), _MOST_NS - 1)


def _as_seconds(time_ns: int) -> str:
    return f"{Decimal(time_ns).scaleb(-9).normalize():f}"
