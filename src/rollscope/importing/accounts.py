"""What an import did with everything that it read: nothing is left out in silence."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

__all__ = ["DomainAccount", "FileAccount", "Report", "SetAside"]

_BAD_SHARE: Final = 0.05
_MOST_LINES: Final = 5
_MOST_RUNS: Final = 100


class SetAside(msgspec.Struct):
    """Records that were not imported, for one reason."""

    count: int = 0
    lines: list[int] = []
    """The first few, from 1; of a document, the numbers of its elements."""

    def note(self, line: int) -> None:
        """Count one."""
        self.count += 1
        if len(self.lines) < _MOST_LINES:
            self.lines.append(line)


class FileAccount(msgspec.Struct, kw_only=True):
    """What became of one file."""

    path: str
    format: str
    size: int = 0
    modified_ns: int = 0
    read: int = 0
    """Records, blank lines apart; each was imported, a duplicate, or set aside."""
    imported: int = 0
    duplicates: int = 0
    set_aside: dict[str, SetAside] = {}
    formats: dict[str, int] = {}
    """Records by format, where lines of another one were among them."""
    note: str = ""

    def leave(self, reason: str, line: int) -> None:
        """Set a record aside."""
        self.set_aside.setdefault(reason, SetAside()).note(line)

    @property
    def bad(self) -> int:
        """How many records could not be read at all."""
        return sum(one.count for why, one in self.set_aside.items() if why.startswith("bad: "))


class DomainAccount(msgspec.Struct, kw_only=True):
    """One clock domain: a process, in one of its lives."""

    name: str
    clock: str
    """`wall`, `anchored`, `unanchored`, `offset` where the user has said where it stands, or
    `aligned` where that was estimated."""
    rows: int = 0
    open: int = 0
    offset_s: str = "0"
    """What was added to its times; of one that was aligned, what it lacks to `aligned_to`."""
    aligned_to: str = ""
    spread_s: str = "0"
    """By how much the pairs disagree that it was aligned by."""
    pairs: int = 0
    note: str = ""


class Report(msgspec.Struct, kw_only=True):
    """The account of an import; kept in the run."""

    run: str
    options: dict[str, Any] = {}
    files: list[FileAccount] = []
    domains: list[DomainAccount] = []
    unknown_statuses: dict[str, int] = {}
    guessed: dict[str, int] = {}
    """Fields that the source does not hold, and how often each was made up."""
    counts: dict[str, int] = {}
    """What was made: sessions, tasks, and so on."""
    named_runs: list[str] = []
    """What the data itself calls the run; several if it holds several."""
    resumed_at: float | None = None
    """How much of the work, of 1, had been done by an import that was stopped."""

    def count(self, name: str, by: int = 1) -> None:
        """Count what was made."""
        self.counts[name] = self.counts.get(name, 0) + by

    def guess(self, name: str, by: int = 1) -> None:
        """Count a field that was made up."""
        self.guessed[name] = self.guessed.get(name, 0) + by

    def wonder(self, status: object) -> None:
        """Count a status that nobody knows."""
        name = str(status)[:64]
        if name in self.unknown_statuses or len(self.unknown_statuses) < 1000:
            self.unknown_statuses[name] = self.unknown_statuses.get(name, 0) + 1

    def name_run(self, name: str) -> None:
        """Note what the data calls the run."""
        if name not in self.named_runs and len(self.named_runs) < _MOST_RUNS:
            self.named_runs.append(name)

    def warnings(self) -> Iterator[str]:
        """Say what the user should not miss."""
        for file in self.files:
            if file.read and file.bad > _BAD_SHARE * file.read:
                yield f"{file.path}: {file.bad} of {file.read} records cannot be read"
        yield from self.notes()
        if len(self.named_runs) > 1:
            yield (
                f"the data is of {len(self.named_runs)} runs ({_some(self.named_runs, 3)}), which "
                "stand together here; give their files one by one to have them apart"
            )
        yield from self._clock_warnings()

    def notes(self) -> Iterator[str]:
        """Say what is to be known of files; of those of which it is the same, once."""
        noted: dict[str, list[str]] = {}
        for file in self.files:
            if file.note:
                noted.setdefault(file.note, []).append(file.path)
        for note, paths in noted.items():
            yield f"{_some(paths, 3)}: {note}"

    def _clock_warnings(self) -> Iterator[str]:
        for domain in self.domains:
            if domain.aligned_to:
                pairs = f"{domain.pairs} pair{'s' if domain.pairs > 1 else ''}"
                yield (
                    f"the clock of {domain.name} is an estimate: {domain.offset_s} s behind "
                    f"{domain.aligned_to}, by {pairs} that differ by up to {domain.spread_s} s"
                )
            elif domain.note:
                yield f"{domain.name}: {domain.note}"
        loose = [domain.name for domain in self.domains if domain.clock == "unanchored"]
        if loose:
            it = "it stands" if len(loose) == 1 else "each stands"
            yield (
                f"no wall clock is known of {_some(loose, 5)}; {it} on its own zero until "
                "--offset NAME=SECONDS says where that is"
            )


def _some(names: list[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
