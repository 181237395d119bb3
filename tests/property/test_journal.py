"""A journal cut at any byte tells of a state that once was, and rewriting it changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from rollscope.runner.journal.records import (
    Acked,
    Attempted,
    Checkpointed,
    Delivered,
    Ended,
    Record,
    Submitted,
    Versioned,
    fold_bytes,
    fold_records,
    pack_record,
    records_of,
)
from rollscope.runner.state import RunnerState, SavedCall, SavedInput, SavedOutcome

if TYPE_CHECKING:
    from collections.abc import Callable

Summary = tuple[dict[int, tuple[int, bytes | None]], dict[int, bytes | None], int, int, int | None]


@dataclass
class History:
    """What a runner does, and beside the records what is true after each of them."""

    records: list[Record] = field(default_factory=list)
    truths: list[Summary] = field(default_factory=lambda: [({}, {}, 0, 0, None)])
    unfinished: dict[int, tuple[int, bytes | None]] = field(default_factory=dict)
    finished: dict[int, bytes | None] = field(default_factory=dict)
    acked: int = 0
    next_id: int = 0
    version: int | None = None

    def add(self, record: Record) -> None:
        self.records.append(record)
        self.truths.append(
            (dict(self.unfinished), dict(self.finished), self.acked, self.next_id, self.version)
        )


def summary(state: RunnerState) -> Summary:
    return (
        {one.id: (one.attempts, one.partial) for one in state.inputs},
        {one.id: one.value for one in state.outcomes},
        state.acked,
        state.next_id,
        state.version,
    )


def submit(history: History, number: int) -> None:
    task_id, history.next_id = history.next_id, history.next_id + 1
    history.unfinished[task_id] = (0, None)
    call = SavedCall("tests:fn", bytes(number % 50))
    history.add(Submitted(SavedInput(task_id, [call], b"o"), history.next_id))


def retry(history: History, number: int) -> None:
    if history.unfinished:
        task_id = sorted(history.unfinished)[number % len(history.unfinished)]
        _, partial = history.unfinished[task_id]
        history.unfinished[task_id] = (number, partial)
        history.add(Attempted(task_id, number))


def checkpoint(history: History, number: int) -> None:
    if history.unfinished:
        task_id = sorted(history.unfinished)[number % len(history.unfinished)]
        attempts, _ = history.unfinished[task_id]
        history.unfinished[task_id] = (attempts, bytes(number % 9))
        history.add(Checkpointed(task_id, bytes(number % 9)))


def end(history: History, number: int) -> None:
    if history.unfinished:
        task_id = sorted(history.unfinished)[number % len(history.unfinished)]
        del history.unfinished[task_id]
        history.finished[task_id] = bytes(number % 70)
        history.add(Ended(SavedOutcome(task_id, number, 1, b"r", bytes(number % 70), b"")))


def deliver(history: History, number: int) -> None:
    if history.finished:
        history.add(Delivered(sorted(history.finished)[: 1 + number % 3]))


def ack(history: History, number: int) -> None:
    done = sorted(history.finished)[: 1 + number % 3]
    if done:
        for task_id in done:
            del history.finished[task_id]
        history.acked += len(done)
        history.add(Acked(done))


def update(history: History, number: int) -> None:
    history.version = number
    history.add(Versioned(number))


ACTS: list[Callable[[History, int], None]] = [
    submit,
    submit,
    retry,
    checkpoint,
    end,
    deliver,
    ack,
    update,
]


@st.composite
def histories(draw: st.DrawFn) -> History:
    history = History()
    steps = st.tuples(st.sampled_from(ACTS), st.integers(0, 1_000))
    for act, number in draw(st.lists(steps, max_size=40)):
        act(history, number)
    return history


@given(histories(), st.data())
def test_a_journal_cut_at_any_byte_is_a_consistent_prefix(
    history: History, data: st.DataObject
) -> None:
    packed = [pack_record(record) for record in history.records]
    whole = b"".join(packed)
    cut = data.draw(st.integers(0, len(whole)), label="cut at")
    lengths = [len(one) for one in packed]
    kept = next((count for count in range(len(packed), -1, -1) if sum(lengths[:count]) <= cut), 0)
    state, end_at = fold_bytes(whole[:cut])
    assert end_at == sum(lengths[:kept])
    assert summary(state) == history.truths[kept]


@given(histories(), st.data())
def test_damage_hides_what_follows_and_nothing_before(
    history: History, data: st.DataObject
) -> None:
    packed = [pack_record(record) for record in history.records]
    if not packed:
        return
    hit = data.draw(st.integers(0, len(packed) - 1), label="record hit")
    damaged = bytearray(packed[hit])
    damaged[data.draw(st.integers(4, len(damaged) - 1), label="byte")] ^= 0x41
    state, _ = fold_bytes(b"".join([*packed[:hit], bytes(damaged), *packed[hit + 1 :]]))
    assert summary(state) == history.truths[hit]


@given(histories(), st.data())
def test_rewriting_at_any_moment_changes_nothing(history: History, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(history.records)), label="rewritten after")
    rewritten = list(records_of(fold_records(history.records[:count])))
    again = b"".join(map(pack_record, [*rewritten, *history.records[count:]]))
    assert summary(fold_bytes(again)[0]) == history.truths[-1]
