"""Who sent what a file holds: each is a process of the run, under a name that users can say."""

import re
from pathlib import Path
from typing import Final

from rollscope.importing.accounts import FileAccount, Report
from rollscope.importing.writing import Domain, RunWriter
from rollscope.otlp.forms import Sender
from rollscope.otlp.naming import process_header, sender_key, sender_run

__all__ = ["Senders", "note_siblings"]

_MOST: Final = 1_000
_OTHERS: Final = "others"
_NAME: Final = re.compile(
    r"(?P<stem>.+?)([-.][\dTZ:_.-]*\d[\dTZ]*)?\.(?:jsonl?|ndjson)(?:\.gz|\.zst)?"
)


class Senders:
    """Gives the clock domain of a sender."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self._domains: dict[str, Domain] = {}
        self._names: set[str] = set()
        self._keys: dict[str, str] = {}
        self._last: Sender | None = None
        self._last_key = ""

    def key(self, sender: Sender) -> str:
        """Give what tells a sender from others; the same text for the same one."""
        if sender is self._last:  # as most spans of a line
            return self._last_key
        run = sender_run(sender)
        # One program may write for several runs.
        key = f"{sender_key(sender)}|{run}" if sender.names_run else sender_key(sender)
        self._last, self._last_key = sender, self._keys.setdefault(key, key)
        return self._last_key

    def domain(self, sender: Sender) -> Domain:
        """Give the domain of a sender; a run has a thousand of them, the others share one."""
        key = self.key(sender)
        found = self._domains.get(key)
        if found is None:
            if len(self._domains) >= _MOST:
                key, sender = _OTHERS, Sender({"service.name": _OTHERS}, key=_OTHERS)
            found = self._domains.get(key) or self._open(sender)
            self._domains[key] = found
        return found

    def _open(self, sender: Sender) -> Domain:
        header = process_header(sender, 1)
        name = header.role if header.rank is None else f"{header.role}-r{header.rank}"
        if name in self._names:
            instance = sender.attrs.get("service.instance.id") or header.pid or header.host
            name = f"{name}/{str(instance)[:64]}"
        plain, number = name, 1
        while name in self._names:
            number += 1
            name = f"{plain}.{number}"
        self._names.add(name)
        return self._writer.domain(
            name, role=header.role, rank=header.rank, host=header.host, pid=header.pid
        )


def note_siblings(file: FileAccount, report: Report) -> None:
    """Tell of files beside one that was given, which it was rotated into or from."""
    path = Path(file.path)
    own = _NAME.fullmatch(path.name)
    if own is None or file.note:
        return
    given = {Path(other.path) for other in report.files}
    try:
        beside = sorted(path.parent.iterdir())
    except OSError:
        return
    left = [
        one.name
        for one in beside
        if one not in given
        and (match := _NAME.fullmatch(one.name))
        and match["stem"] == own["stem"]
    ]
    if left:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        file.note = f"{left[0]}{more} beside it looks like a part of it, and was not given"
