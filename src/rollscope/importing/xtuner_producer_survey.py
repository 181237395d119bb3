"""What the events of a producer trace come to: sessions, their ends, and the groups they are of."""

from array import array
from typing import Any, Final, NamedTuple

import msgspec

from rollscope.importing.statuses import read_status
from rollscope.importing.values import decode_object, seconds_to_ns
from rollscope.importing.xtuner_pairs import MOST_NS, OPEN, WHOLE, Pairs, What
from rollscope.importing.xtuner_producer_stages import (
    SAMPLE_LEVEL,
    split_stage,
    stage_of,
)
from rollscope.model.kinds import STATUS_CODES, Status
from rollscope.model.undecodable import UNDECODABLE
from rollscope.otlp.aliases import whole_number

__all__ = ["Batch", "Fate", "Survey"]

_GROUP: Final = "xtuner.producer.generate_group"
_TOGETHER_NS: Final = 5_000_000
"""How far apart the members of a group may begin."""
_OPEN: Final = STATUS_CODES[Status.OPEN]


class Batch(NamedTuple):
    """What was produced at one time."""

    name: str
    step: int | None
    version: int | None
    future_step: int | None


class Fate(NamedTuple):
    """What became of a session."""

    start_ns: int
    end_ns: int
    """0 while open."""
    first_ns: int
    last_ns: int
    """The bounds of all that is written of it, for its group as well; the last is 0 if any of that
    is open."""
    teller: int
    """The event that says most about it."""
    word: int
    """Its last status, by number; -1: none."""
    first: int
    last: int
    """The batches that it began and ended in."""
    worker: int
    """-1: none."""
    is_failed: bool
    is_guessed: bool
    """Whether it ended without saying when."""


class _Fates:
    """Those of all sessions, in columns."""

    def __init__(self, count: int) -> None:
        wide, small = bytes(8 * count), bytes(4 * count)
        self._columns = (
            *(array("q", wide) for _ in range(4)),
            *(array("i", small) for _ in range(5)),
            *(array("b", bytes(count)) for _ in range(2)),
        )

    def put(self, session: int, fate: Fate) -> None:
        for column, value in zip(self._columns, fate, strict=True):
            column[session] = value

    def get(self, session: int) -> Fate:
        return Fate(*(column[session] for column in self._columns))  # type: ignore[arg-type]


class _Keys(msgspec.Struct):
    trace_id: Any = None
    stage: Any = None
    timestamp_s: Any = None
    status: Any = None
    train_step: Any = None
    model_step: Any = None
    producer_future_step: Any = None
    produce_batch_id: Any = None
    worker_rank: Any = None
    elapsed_s: Any = None
    error_msg: Any = None


_decode = msgspec.json.Decoder(_Keys).decode


class Survey:
    """Looks at all events, then knows the sessions and groups."""

    def __init__(self) -> None:
        self.pairs = Pairs(stage_of)
        self._batches: dict[Batch, int] = {}
        self.batches: list[Batch] = []
        self._words: dict[str, int] = {}
        self.words: list[str] = []
        self._batch_of = array("i")
        self._word_of = array("i")
        self._worker_of = array("i")
        self._begun: dict[int, list[tuple[int, int, int]]] = {}
        """By batch: when generation for a session began, the session, how long it took."""
        self._fates = _Fates(0)
        self.group = array("i")
        """By session, the first one of its group; itself where it is alone."""
        self.sample = array("i")
        self.crowded = set[int]()
        """The first ones of groups with more than one session."""

    def look(self, place: int, raw: bytes) -> None:
        """Take what is needed of an event."""
        try:
            keys = _decode(raw)
        except UNDECODABLE:
            read = decode_object(raw)
            if read is None:
                return
            keys = _Keys(**{name: read[0].get(name) for name in _Keys.__struct_fields__})
        at_ns = seconds_to_ns(keys.timestamp_s)
        is_named = isinstance(keys.trace_id, str) and isinstance(keys.stage, str) and keys.stage
        if not is_named or at_ns is None or not 0 < at_ns < MOST_NS:
            return
        name, what = split_stage(keys.stage)
        length = seconds_to_ns(keys.elapsed_s) if what != What.START else None
        at = self.pairs.add(place, raw, keys.trace_id, name, what, at_ns, length)
        if what == What.ERROR:
            self.pairs.note_error(at, keys.error_msg)
        self._batch_of.append(self._number_batch(keys))
        self._word_of.append(self._number_word(keys.status))
        worker = whole_number(keys.worker_rank)
        self._worker_of.append(worker if worker is not None and 0 <= worker < 2**31 else -1)

    def _number_batch(self, keys: _Keys) -> int:
        name = keys.produce_batch_id
        batch = Batch(
            name if isinstance(name, str) else "",
            whole_number(keys.train_step),
            whole_number(keys.model_step),
            whole_number(keys.producer_future_step),
        )
        number = self._batches.setdefault(batch, len(self.batches))
        if number == len(self.batches):
            self.batches.append(batch)
        return number

    def _number_word(self, word: object) -> int:
        if not isinstance(word, str):
            return -1
        number = self._words.setdefault(word, len(self.words))
        if number == len(self.words):
            self.words.append(word)
        return number

    def settle(self) -> None:
        """Judge every session, and find the groups."""
        count = len(self.pairs.sessions)
        self._fates = _Fates(count)
        self.group, self.sample = array("i", range(count)), array("i", bytes(4 * count))
        self.pairs.settle(self._judge)
        for begun in self._begun.values():
            self._find_groups(begun)
        self._begun.clear()

    def fate(self, session: int) -> Fate:
        """Say what became of a session."""
        return self._fates.get(session)

    def _judge(self, session: int, events: list[int]) -> None:
        pairs = self.pairs
        own = [at for at in events if not pairs.stage(at).is_shared]
        shown = own or events
        spans = [at for at in shown if pairs.fate[at] in (WHOLE, OPEN)]
        # The sample itself, where that is recorded, says when it is over.
        whole = [at for at in spans if pairs.stage(at).level == SAMPLE_LEVEL] or spans
        last = max(whole, key=lambda at: pairs.begin[at], default=-1)
        is_sample = last >= 0 and pairs.stage(last).level == SAMPLE_LEVEL
        is_failed = last >= 0 and pairs.whats[last] == What.ERROR
        is_ended = last >= 0 and pairs.fate[last] == WHOLE and (is_sample or is_failed)
        word = next((self._word_of[at] for at in reversed(events) if self._word_of[at] >= 0), -1)
        is_running = not own and last >= 0 and pairs.fate[last] == OPEN
        is_over = is_ended or (self._is_final(word) and not is_running)
        ends = [pairs.end(at) for at in whole if pairs.fate[at] == WHOLE]
        start = min((pairs.begin[at] for at in spans or shown), default=0)
        end = max([*ends, start] if is_ended else [pairs.times[shown[-1]], *ends, start])
        errors = [at for at in own if at in pairs.errors]
        workers = (self._worker_of[at] for at in reversed(events) if self._worker_of[at] >= 0)
        groups = [at for at in events if pairs.stage(at).is_shared]
        fate = Fate(
            start,
            end if is_over else 0,
            min(pairs.begin[at] for at in [*groups, *shown]),
            self._last_ns(groups, end) if is_over else 0,
            errors[-1] if is_failed and errors else events[-1],
            word,
            self._batch_of[events[0]],
            self._batch_of[events[-1]],
            next(workers, -1),
            is_failed,
            is_over and not is_ended,
        )
        self._fates.put(session, fate)
        self._note_group(session, groups)

    def _last_ns(self, groups: list[int], end: int) -> int:
        """Give when a session and all that its group went through were over; 0 if that is open."""
        pairs = self.pairs
        if any(pairs.fate[at] == OPEN for at in groups):
            return 0
        return max([end, *(pairs.end(at) for at in groups if pairs.fate[at] == WHOLE)])

    def _is_final(self, word: int) -> bool:
        """Say whether a status is one that a session ends with."""
        if word < 0:
            return False
        verdict = read_status(self.words[word], has_end=True)
        return verdict.is_known and verdict.status != _OPEN

    def _note_group(self, session: int, groups: list[int]) -> None:
        pairs = self.pairs
        for at in groups:
            if pairs.is_named(at, _GROUP) and pairs.fate[at] in (WHOLE, OPEN):
                begun = self._begun.setdefault(self._batch_of[at], [])
                begun.append((pairs.begin[at], session, pairs.lengths[at]))
                return

    def _find_groups(self, begun: list[tuple[int, int, int]]) -> None:
        """Put sessions together that began together, and took equally long if they are over.

        How long a group took is measured once and written for each member.
        """
        begun.sort()
        members: dict[int, list[int]] = {}
        opened = 0
        for start, session, length in begun:
            if start - opened > _TOGETHER_NS:
                self._number_members(members)
                members, opened = {}, start
            members.setdefault(length, []).append(session)
        self._number_members(members)

    def _number_members(self, members: dict[int, list[int]]) -> None:
        for sessions in members.values():
            if len(sessions) > 1:
                self.crowded.add(sessions[0])
                for number, session in enumerate(sessions):
                    self.group[session], self.sample[session] = sessions[0], number
