"""Made-up histories of processes, written as the frames that a recorder would have written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rollscope.model.batch import Batch, Fact, Heartbeat, Metric, Stack, number_column
from rollscope.model.clockline import ClockLine
from rollscope.model.kinds import EVENT_CODE, Kind, MetricType, Status
from rollscope.model.scope import Scope
from tests.builders import (
    EPOCH,
    SECOND,
    dead_header,
    frame_of,
    make_batch,
    make_columns,
    make_header,
    make_row,
    remote_header,
)

if TYPE_CHECKING:
    from random import Random

    from rollscope.model.batch import ProcessHeader

__all__ = ["History", "Traits", "make_history"]

_TICK = SECOND // 10
_LENGTH = 100
_NAMES = ("generate", "toolcall", "reward", "", "a/b", "ünï")
_KINDS = (*Kind, Kind.SPAN, Kind.PHASE)
_ATTRS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"tokens": 7},
    {"tool": "python", "text": "two\nlines"},
    {"tokens_in": 2**63, "deadline_s": 1.5, "list": [1, None, {"a": 2}]},
    {"tokens": 7.0, "replica": 3, "reward": 0.25},
)
_HEADERS = (make_header(), dead_header(), remote_header())


@dataclass(frozen=True)
class Traits:
    """What may go wrong in a history."""

    dropped_starts: bool = True
    changing_clock: bool = True
    doubled_frames: bool = True
    settled: bool = False
    """Whether enough is written in the end to tell a dropped end from an open span."""


@dataclass
class _Span:
    span_id: int
    parent_id: int
    name: str
    kind: Kind
    start: int
    end: int | None
    """When it ended for real; None if it never did."""
    is_told: bool
    """Whether its end was recorded."""
    scope: Scope
    attrs: dict[str, Any]
    fields: dict[str, Any]

    def is_open_at(self, time: int) -> bool:
        return self.start <= time and (self.end is None or self.end > time)

    def row(self, *, ended: bool) -> tuple[Any, ...]:
        known = self.fields if ended else {k: v for k, v in self.fields.items() if k == "lane"}
        return make_row(
            self.span_id,
            self.name,
            kind=self.kind,
            status=Status.OK if ended else Status.OPEN,
            scope=self.scope,
            parent_id=self.parent_id,
            start_ns=SECOND + self.start * _TICK,
            end_ns=SECOND + (self.end or 0) * _TICK,
            attrs=dict(self.attrs),
            fields=known or None,
        )


@dataclass
class History:
    """One process: its drains, each of which left some frames."""

    process: bytes
    drains: list[list[bytes]] = field(default_factory=list)

    @property
    def data(self) -> bytes:
        """The whole log."""
        return b"".join(frame for drain in self.drains for frame in drain)


def make_history(source: Random, index: int, traits: Traits) -> History:
    """Let a process live and write."""
    return _Writer(source, index, traits).write()


class _Writer:
    def __init__(self, source: Random, index: int, traits: Traits) -> None:
        self._source = source
        self._traits = traits
        self._history = History((index + 1).to_bytes(8))
        self._first_id = (index + 1) << 40
        self._line = ClockLine(0, EPOCH)
        self._number = 0
        self._spans = self._make_spans()
        self._announced: set[int] = set()
        self._unheard: set[int] = set()

    def _make_spans(self) -> list[_Span]:
        source, spans = self._source, list[_Span]()
        scopes = [Scope(bytes([n]) * 16, n or None, f"math/{n}", None, n or None) for n in range(3)]
        for number in range(source.randint(1, 24)):
            start = source.randrange(_LENGTH)
            parents = [span.span_id for span in spans if span.is_open_at(start)]
            # Now and then the parent lives in another process, or nowhere.
            odd = [0, (source.randint(1, 3) << 40) + 999]
            parent_id = source.choice(parents[-3:] * 3 + odd)
            end = None if source.random() < 0.2 else start + source.randint(0, 40)
            kind = source.choice(_KINDS)
            fields: dict[str, Any] = {}
            if kind is Kind.SESSION:
                fields = {"outcome": "accepted", "version_start": 3, "version_end": 4}
            elif kind is Kind.STATE:
                fields = {"lane": "gpu0", "reason": "why"}
            spans.append(
                _Span(
                    self._first_id + number,
                    parent_id,
                    source.choice(_NAMES),
                    kind,
                    start,
                    end,
                    source.random() > 0.1,
                    source.choice(scopes),
                    source.choice(_ATTRS),
                    fields,
                )
            )
        return spans

    def write(self) -> History:
        source = self._source
        header = source.choice(_HEADERS)
        self._history.drains.append([self._frame(0, header=header)])
        times = sorted(source.sample(range(1, _LENGTH + 45), source.randint(1, 8)))
        ends = source.random() < 0.4
        before = -1
        for time in times:
            is_last = time == times[-1]
            self._drain(before, time, header, end="exit" if ends and is_last else None)
            before = time
        if not ends and self._traits.settled:
            for time in (before, before):  # an end that was dropped is found out by two lists
                open_ids = [i for i in sorted(self._announced) if self._is_open(i, time)]
                beat = Heartbeat(number_column(open_ids))
                self._history.drains.append([self._frame(time, heartbeat=beat)])
        if self._traits.doubled_frames:
            self._double()
        return self._history

    def _drain(self, before: int, time: int, header: ProcessHeader, end: str | None) -> None:
        source, frames = self._source, list[bytes]()
        if self._traits.changing_clock and source.random() < 0.3:
            mono = SECOND + time * _TICK - source.randrange(_TICK)
            wall = self._line.wall_at(mono)
            self._line = ClockLine(mono, wall, source.choice([0, 40_000, -90_001]))
        ended = [s for s in self._spans if s.end is not None and before < s.end <= time]
        ended.sort(key=lambda span: span.end or 0)
        rows = [span.row(ended=True) for span in ended if span.is_told]
        rows += [self._event(n, time) for n in range(source.choice([0, 0, 1]))]
        cut = source.randint(0, len(rows))
        frames += [self._spans_frame(time, part) for part in (rows[:cut], rows[cut:]) if part]
        frames += self._announce(time)
        frames += self._others(time)
        beat = None
        if end is not None or source.random() < 0.6:
            open_ids = [i for i in sorted(self._announced) if self._is_open(i, time)]
            beat = Heartbeat(number_column(open_ids) if end or source.random() < 0.8 else None)
        if beat is not None:
            frames.append(self._frame(time, heartbeat=beat, end=end, header=header))
        if frames:
            self._history.drains.append(frames)

    def _is_open(self, span_id: int, time: int) -> bool:
        return self._spans[span_id - self._first_id].is_open_at(time)

    def _announce(self, time: int) -> list[bytes]:
        fresh = [
            span
            for span in self._spans
            if span.is_open_at(time) and span.span_id not in self._announced | self._unheard
        ]
        if self._traits.dropped_starts:
            self._unheard |= {s.span_id for s in fresh if self._source.random() < 0.1}
        fresh = [span for span in fresh if span.span_id not in self._unheard]
        self._announced |= {span.span_id for span in fresh}
        rows = [span.row(ended=False) for span in fresh]
        return [self._spans_frame(time, rows)] if rows else []

    def _event(self, number: int, time: int) -> tuple[Any, ...]:
        event_id = self._first_id + 10_000 + time * 10 + number
        row = make_row(event_id, "publish", start_ns=SECOND + time * _TICK, attrs={"version": 3})
        return (EVENT_CODE, *row[1:6], 0, *row[7:])

    def _others(self, time: int) -> list[bytes]:
        """Write late facts, metrics and stacks."""
        source, frames = self._source, list[bytes]()
        mono = SECOND + time * _TICK
        if source.random() < 0.4:
            of = self._first_id + source.randrange(24)
            facts: dict[str, Any] = source.choice(
                [
                    {"outcome": "rejected", "reason": "late", "reward": 0.5},
                    {"outcome": "unheard of", "reason": "not ours"},
                    {"reward": 1.0, "version_end": 9},
                    {"outcome": "timeout", "version_end": 5, "consumed_step": 2},
                ]
            )
            fact = Fact(bytes(16), of, mono - source.randrange(1000), facts)
            frames.append(self._frame(time, facts=[fact]))
        if source.random() < 0.2:
            metric = Metric(MetricType.HISTOGRAM, "wait", {"b": "2", "a": "1"}, 1.5, 2, 0.5, 1.0)
            frames.append(self._frame(time, metrics=[metric]))
        if source.random() < 0.2:
            stack = Stack(self._first_id, mono, "task", ["a.py:1 f"])
            frames.append(self._frame(time, stacks=[stack]))
        return frames

    def _spans_frame(self, time: int, rows: list[tuple[Any, ...]]) -> bytes:
        return self._frame(time, spans=make_columns(*rows))

    def _frame(self, time: int, **parts: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        batch: Batch = make_batch(
            number,
            mono_ns=SECOND + time * _TICK,
            process=self._history.process,
            clock=self._line,
            **parts,
        )
        return frame_of(batch)

    def _double(self) -> None:
        """Write some frames a second time, later on."""
        drains = self._history.drains
        for at in range(len(drains)):
            if self._source.random() < 0.2:
                drains[self._source.randrange(at, len(drains))].append(
                    self._source.choice(drains[at])
                )
