"""From what requests say to the logs of their senders."""

from typing import Final, Protocol

import msgspec

from rollscope.collect.authored import AuthoredLog
from rollscope.errors import WrongRun
from rollscope.model.batch import Fact, Metric, Payload, ProcessHeader
from rollscope.otlp.forms import Sender
from rollscope.otlp.naming import process_header, sender_key
from rollscope.otlp.placing import Known
from rollscope.otlp.remembering import Recent
from rollscope.otlp.rows import Row, columns_of

__all__ = ["Authors", "Book", "Books"]

_MOST_SENDERS: Final = 1_000
_MOST_RUNS: Final = 20_000
_OTHERS: Final = "others"
_MOST_PAYLOADS: Final = 64
"""In one frame: each may have a quarter of a megabyte."""
_MOST_FACTS: Final = 10_000


class Authors(Protocol):
    """Gives the log that is written for somebody; a collector does."""

    def author(self, run: str, key: str, header: ProcessHeader) -> AuthoredLog:
        """Give the log; the same for the same run and key."""


class Book(msgspec.Struct):
    """What one request has to say of one sender in one run."""

    run: str
    key: str
    sender: Sender
    rows: list[Row] = []
    facts: list[Fact] = []
    payloads: list[Payload] = []
    metrics: dict[int, list[Metric]] = {}
    """By their time."""
    spans: list[Known] = []
    """What is remembered of the spans in it."""


class Books:
    """Gathers what a request says, then writes it, one log after the other."""

    def __init__(self, authors: Authors | None = None) -> None:
        self._authors = authors
        self._books: dict[tuple[str, str], Book] = {}
        self._senders: Recent[str, set[str]] = Recent(_MOST_RUNS)
        self._folded: dict[tuple[str, str], int] = {}

    def book(self, run: str, sender: Sender, key: str | None = None) -> Book:
        """Give the book of a sender; a run has a thousand of them, the others share one."""
        name = key or sender_key(sender)
        known = self._senders.get(run)
        if known is None:
            known = set()
            self._senders.put(run, known)
        if name not in known:
            if len(known) >= _MOST_SENDERS:
                name, sender = _OTHERS, Sender({"service.name": _OTHERS})
            known.add(name)
        found = self._books.get((run, name))
        if found is None:
            found = self._books[run, name] = Book(run, name, sender)
        return found

    def fold_series(self, book: Book, count: int) -> None:
        """Count points of a metric that has too many series to keep them apart."""
        key = (book.run, book.key)
        self._folded[key] = self._folded.get(key, 0) + count

    def gathered(self) -> list[Book]:
        """Give everything that was gathered, and forget it: who takes it writes it."""
        books, self._books = self._books, {}
        return list(books.values())

    def write(self, now_ns: int) -> int:
        """Write everything that was gathered, and forget it.

        Args:
            now_ns: When it was received.

        Returns:
            How many spans and points belong to a run that is not kept here.

        Raises:
            IngestError: Something could not be written; what was not may come again.
        """
        refused = 0
        left = self.gathered()
        try:
            while left:
                try:
                    self._write(left[-1], now_ns)
                except WrongRun:
                    refused += len(left[-1].spans) + sum(map(len, left[-1].metrics.values()))
                    _forget(left[-1])
                left.pop()
        finally:
            for book in left:
                _forget(book)
        return refused

    def _write(self, book: Book, now_ns: int) -> None:
        assert self._authors is not None  # noqa: S101  (else nobody writes through it)
        header = process_header(book.sender, now_ns)
        log = self._authors.author(book.run, book.key, header)
        for columns in columns_of(book.rows):
            log.write(at_ns=now_ns, spans=columns)
        for at in range(0, len(book.facts), _MOST_FACTS):
            log.write(at_ns=now_ns, facts=book.facts[at : at + _MOST_FACTS])
        for at in range(0, len(book.payloads), _MOST_PAYLOADS):
            log.write(at_ns=now_ns, payloads=book.payloads[at : at + _MOST_PAYLOADS])
        folded = self._folded.get((book.run, book.key))
        drops = {"metric series beyond the limit": folded} if folded else None
        for time_ns, metrics in sorted(book.metrics.items()):
            log.write(at_ns=time_ns, metrics=metrics, drops=drops)


def _forget(book: Book) -> None:
    """Let the spans of a book come again."""
    for known in book.spans:
        known.is_kept = False
