"""What an import did with everything that it read: nothing is left out in silence."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

__all__ = ["DomainAccount", "FileAccount", "Report", "SetAside"]

_BAD_SHARE: Final = 0.05
_MOST_LINES: Final = 5


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
    """`wall`, `anchored`, `unanchored`, or `offset` where the user has said where it stands."""
    rows: int = 0
    open: int = 0
    offset_s: str = "0"


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

    def warnings(self) -> Iterator[str]:
        """Say what the user should not miss."""
        for file in self.files:
            if file.read and file.bad > _BAD_SHARE * file.read:
                yield f"{file.path}: {file.bad} of {file.read} records cannot be read"
            if file.note:
                yield f"{file.path}: {file.note}"
        loose = [domain.name for domain in self.domains if domain.clock == "unanchored"]
        if loose:
            yield (
                f"no wall clock is known of {', '.join(loose[:5])}"
                f"{' and others' if len(loose) > 5 else ''}; each stands on its own zero until "
                "--offset NAME=SECONDS says where that is"
            )
