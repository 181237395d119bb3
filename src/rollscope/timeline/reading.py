"""Reading the spans of a run as columns of numbers: words become codes, times one clock.

Segments are read file by file, so that no more than one of them is in memory as Arrow. Times are
moved by the corrections that this reader was made with; they stay the same while the index grows.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Self

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rollscope.errors import StoreError
from rollscope.model.kinds import Kind, Status
from rollscope.store.corrections import Correction, Corrections, move_times
from rollscope.store.embedded import RunStore
from rollscope.timeline.columns import ERROR, IS_SESSION, LOST, NEVER, OPEN_FLAG, RETRIED, Times

__all__ = ["Block", "ReadWords", "SpanReader", "Words"]

_COLUMNS: Final = (
    "process",
    "session_id",
    "kind",
    "name",
    "start_ns",
    "end_ns",
    "status",
    "lane",
    "path",
    "attempt",
)
_WORD: Final = pa.dictionary(pa.int32(), pa.string())
_WORD_COLUMNS: Final = ["kind", "name", "status", "lane", "path"]
_STATUS_FLAGS: Final = {Status.ERROR: ERROR, Status.OPEN: OPEN_FLAG, Status.LOST: LOST}
_OWN_LANES: Final = {Kind.TASK: "tasks", Kind.STEP: "steps"}
_MOST_NAMES: Final = 0xFFFF
_OTHER_NAMES: Final = "(other names)"


class Words:
    """Numbers words in the order in which they come; numbers only grow."""

    def __init__(self, most: int = 2**31) -> None:
        """Start with no words.

        Args:
            most: Beyond so many, further words share the last number.
        """
        self.words: list[str] = []
        self._codes: dict[str, int] = {}
        self._most = most

    @classmethod
    def known(cls, words: Sequence[str], most: int = 2**31) -> Self:
        """Give words with the numbers that they had before."""
        given = cls(most)
        given.words = list(words)
        given._codes = {word: code for code, word in enumerate(words) if code < most - 1}
        return given

    def code_of(self, word: str) -> int:
        """Give the number of a word."""
        code = self._codes.get(word)
        if code is None:
            if len(self.words) == self._most - 1:
                self.words.append(_OTHER_NAMES)
            code = min(len(self.words), self._most - 1)
            if code < self._most - 1:
                self.words.append(word)
                self._codes[word] = code
        return code


class Block(msgspec.Struct):
    """Spans as they were read; `outside` says where those of no session belong."""

    start: Times
    end: Times
    session_id: npt.NDArray[np.uint64]
    """0 for none."""
    name: npt.NDArray[np.uint16]
    flags: npt.NDArray[np.uint8]
    depth: npt.NDArray[np.uint8]
    outside: npt.NDArray[np.uint32]
    """Number of the (process, lane) that the span stands on if it belongs to no session."""

    def __len__(self) -> int:
        return len(self.start)


class ReadWords(msgspec.Struct):
    """What a reader has learnt: the words by their numbers, and the clocks it reads by."""

    moved: dict[int, Correction]
    names: list[str]
    places: list[str]
    session_names: list[str]


class SpanReader:
    """Reads tables of spans and remembers which number stands for which word."""

    def __init__(self, store: RunStore, learnt: ReadWords | None = None) -> None:
        """Begin to read.

        Args:
            store: The run.
            learnt: What a reader of everything that is sealed has learnt, to go on from there.
        """
        self._store = store
        if learnt is None:
            found = store.query("SELECT DISTINCT name FROM spans WHERE kind = 'session'")
            learnt = ReadWords(dict(store.clocks.corrections), [], [], found["name"].to_pylist())
        else:
            learnt.session_names += _unsealed_session_names(store)
        self.moved: Corrections = learnt.moved
        self.names = Words.known(learnt.names, _MOST_NAMES)
        self.places = Words.known(learnt.places)
        """Places outside of sessions, as `process/lane`."""
        self._session_names = frozenset(learnt.session_names)

    def learnt(self) -> ReadWords:
        """Give what has been learnt so far."""
        names, places = [*self.names.words], [*self.places.words]
        return ReadWords(dict(self.moved), names, places, sorted(self._session_names))

    def sealed(self) -> Iterator[Block]:
        """Read every segment."""
        sealer = self._store.sealer
        for segment in sealer.manifest.segments:
            if segment.table != "spans":
                continue
            assert sealer.shelf is not None  # noqa: S101  (segments lie on a shelf)
            known = [column for column in _COLUMNS if column in segment.columns]
            try:
                table = pq.read_table(
                    sealer.shelf.folder / segment.file, columns=known, read_dictionary=_WORD_COLUMNS
                )
            except (OSError, pa.ArrowException) as error:
                raise StoreError(f"the segment {segment.file} cannot be read: {error}") from error
            yield self.read(table)

    def read(self, table: pa.Table) -> Block:
        """Read a table of spans as processes recorded them."""
        start = _numbers(table, "start_ns", np.int64)
        process = _numbers(table, "process", np.uint64)
        recorded = start
        start = recorded + move_times(recorded, process, self.moved)
        kind = self._codes(table, "kind", _kind_code)
        status = self._codes(table, "status", _status_flag)
        end = _numbers(table, "end_ns", np.int64, missing=-1)
        has_end = (end >= 0) & (status != OPEN_FLAG)
        ended = end + move_times(end, process, self.moved)
        end = np.where(has_end, np.maximum(ended, start), NEVER)
        session = _numbers(table, "session_id", np.uint64)
        flags = status | np.where(kind == _SESSION, IS_SESSION, 0)
        attempt = _numbers(table, "attempt", np.int64)
        flags = flags | np.where((kind == _SESSION) & (attempt > 0), RETRIED, 0)
        return Block(
            start=start,
            end=end,
            session_id=session,
            name=self._codes(table, "name", self.names.code_of).astype(np.uint16),
            flags=flags.astype(np.uint8),
            depth=self._depths(table, kind, session),
            outside=self._outside(table, kind, process, session),
        )

    def places_of(self, table: pa.Table) -> npt.NDArray[np.uint32]:
        """Give the place of each span of no session, as the views show them."""
        words = table.select(["kind", "lane"]).to_pydict()
        coded = pa.table(
            {
                "kind": pa.chunked_array([pa.array(words["kind"], _WORD)]),
                "lane": pa.chunked_array([pa.array(words["lane"], _WORD)]),
            }
        )
        return self._outside(
            coded,
            self._codes(coded, "kind", _kind_code),
            _numbers(table, "process", np.uint64),
            _numbers(table, "session_id", np.uint64),
        )

    def _codes(
        self, table: pa.Table, column: str, code_of: Callable[[str], int]
    ) -> npt.NDArray[np.int64]:
        """Replace each word by a number; a word that is missing counts as the empty one."""
        if column not in table.column_names:
            return np.full(table.num_rows, code_of(""), np.int64)
        pieces = [np.zeros(0, np.int64)]
        for chunk in table[column].chunks:
            words = chunk.dictionary.to_pylist()
            used = np.array([code_of(word or "") for word in words] + [code_of("")], np.int64)
            indices = chunk.indices.fill_null(len(words)) if chunk.null_count else chunk.indices
            pieces.append(used[indices.to_numpy(zero_copy_only=False)])
        return np.concatenate(pieces)

    def _depths(
        self, table: pa.Table, kind: npt.NDArray[np.int64], session: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.uint8]:
        depth = self._codes(table, "path", self._depth_of)
        depth = np.where(session > 0, np.maximum(depth >> 8, 1), depth & 0xFF)
        depth[kind == _SESSION] = 0
        return depth.astype(np.uint8)

    def _depth_of(self, path: str) -> int:
        """Give how deep a path is, and in the higher byte how deep it is below a session.

        What another process did for a session often has a path that begins with itself.
        """
        names = path.split(" / ")
        plain = min(len(names) - 1, 254)
        return plain | (plain + (names[0] not in self._session_names)) << 8

    def _outside(
        self,
        table: pa.Table,
        kind: npt.NDArray[np.int64],
        process: npt.NDArray[np.uint64],
        session: npt.NDArray[np.uint64],
    ) -> npt.NDArray[np.uint32]:
        outside = np.zeros(table.num_rows, np.uint32)
        places = np.flatnonzero(session == 0)
        if not len(places):
            return outside
        lanes = Words()
        lane = self._codes(table, "lane", lanes.code_of)[places]
        processes, key = np.unique(process[places], return_inverse=True)
        key = (key * len(_KIND_CODES) + kind[places]) * len(lanes.words) + lane
        unique, inverse = np.unique(key, return_inverse=True)
        rest, which = np.divmod(unique, len(lanes.words))
        number, what = np.divmod(rest, len(_KIND_CODES))
        codes = [
            self.places.code_of(f"{one}/{_OWN_NAMES.get(told) or lanes.words[word]}")
            for one, told, word in zip(
                processes[number].tolist(), what.tolist(), which.tolist(), strict=True
            )
        ]
        outside[places] = np.array(codes, np.uint32)[inverse]
        return outside


_KIND_NUMBERS: Final = {str(kind): number for number, kind in enumerate(Kind, 1)}
_KIND_CODES: Final = range(len(_KIND_NUMBERS) + 1)
_SESSION: Final = _KIND_NUMBERS[Kind.SESSION]
_OWN_NAMES: Final = {_KIND_NUMBERS[kind]: name for kind, name in _OWN_LANES.items()}


def _kind_code(kind: str) -> int:
    return _KIND_NUMBERS.get(kind, 0)


def _status_flag(status: str) -> int:
    return _STATUS_FLAGS.get(Status(status), 0) if status else 0


def _unsealed_session_names(store: RunStore) -> list[str]:
    sealer = store.sealer
    names: list[str] = []
    for table in (sealer.tail_table("spans"), store.open_rows):
        is_session = pc.equal(table["kind"].cast(pa.string()), str(Kind.SESSION))
        names += table["name"].cast(pa.string()).filter(is_session).unique().to_pylist()
    return names


def _numbers(
    table: pa.Table, column: str, kind: type[np.generic], *, missing: int = 0
) -> npt.NDArray[Any]:
    if column not in table.column_names:
        return np.full(table.num_rows, missing, kind)
    values = table[column]
    if values.null_count:
        values = values.fill_null(pa.scalar(missing, values.type))
    numbers: npt.NDArray[Any] = values.to_numpy().astype(kind, copy=False)
    return numbers
