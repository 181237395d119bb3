"""What finished spans add up to: sessions, phases, states and steps."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollscope.exposing.columns import NOTHING, Codes, Numbers, Vocabulary, numbers, times
from rollscope.exposing.histograms import LENGTHS, Histogram, Histograms, Key, Shown, exact_sums
from rollscope.exposing.labels import OTHER
from rollscope.store.corrections import Corrections

__all__ = ["PHASE_COLUMNS", "SHOWN_COLUMNS", "SPAN_COLUMNS", "SpanSums", "StepTime"]

PHASE_COLUMNS: Final = (
    *("kind", "name", "family", "process", "start_ns", "end_ns", "status"),
    *("tokens_in", "tokens_out"),
)
SHOWN_COLUMNS: Final = ("trace_id", "task_key", "sample")
"""Who a span was of."""
SPAN_COLUMNS: Final = (
    *(*PHASE_COLUMNS, *SHOWN_COLUMNS, "span_id", "outcome", "reason", "step"),
    *("version_start", "lane", "waited_ns", "attrs"),
)
_LONGEST_S: Final = 1e9
_MOST_PHASES: Final = 2_000
"""Families of tasks with a phase; a program may call every phase differently."""
_MOST_STATES: Final = 20_000
"""Lanes with a state: as many as two thousand lanes have, with ten states each."""


class StepTime(NamedTuple):
    """When a step was, by the lowest rank that recorded it."""

    rank: int
    start_ns: int
    length_ns: int
    """`NOTHING` while it runs."""


class SpanSums:
    """Sums over the spans of a run."""

    def __init__(self, families: Vocabulary) -> None:
        self.families = families
        self.started: Counter[int] = Counter()
        """Sessions by family."""
        self.sessions = Histograms[int](LENGTHS)
        """By family."""
        self.phases = Histograms[tuple[int, str]](LENGTHS)
        """By family and name."""
        self.waits = Histograms[str](LENGTHS)
        """By which wait."""
        self.tokens: Counter[tuple[str, str]] = Counter()
        """By kind of span and direction."""
        self.states: Counter[tuple[str, str]] = Counter()
        """Nanoseconds by lane and state."""
        self.steps: dict[int, StepTime] = {}

    def copy(self) -> "SpanSums":
        """Give them once more, to be added to apart."""
        copied = SpanSums(self.families)
        copied.started, copied.steps = self.started.copy(), dict(self.steps)
        copied.sessions, copied.phases = self.sessions.copy(), self.phases.copy()
        copied.waits = self.waits.copy()
        copied.tokens, copied.states = self.tokens.copy(), self.states.copy()
        return copied

    def add_phases(self, rows: pa.Table, corrections: Corrections) -> None:
        """Add phases; they are kept as exemplars if they come with `SHOWN_COLUMNS`."""
        self._add_tokens("phase", rows)
        rows = _measured(rows)
        if not rows.num_rows:
            return
        names = Vocabulary()
        name_codes = names.codes(rows["name"])
        family_codes = self.families.codes(rows["family"])
        width = len(names.words)
        used, codes = np.unique(family_codes * width + name_codes, return_inverse=True)
        keys = self._keys([(pair // width, names.words[pair % width]) for pair in used.tolist()])
        lengths = _lengths(rows)
        cells = self.phases.add(keys, codes, lengths)
        if set(SHOWN_COLUMNS) <= set(rows.column_names):
            _show(self.phases, keys, cells, rows, lengths, corrections)

    def _keys(self, wanted: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
        """Give keys as they may be, with no more new ones than there is room for."""
        room = _MOST_PHASES - len(self.phases.by_key)
        keys = []
        for key in wanted:
            if key not in self.phases.by_key:
                room -= 1
                key = key if room >= 0 else (key[0], OTHER)
            keys.append(key)
        return keys

    def add_sessions(self, rows: pa.Table, corrections: Corrections) -> pa.Table:
        """Add sessions; give those that have ended."""
        codes = self.families.codes(rows["family"])
        self.started.update(dict(enumerate(np.bincount(codes).tolist())))
        ended = rows.filter(pc.is_valid(rows["end_ns"]))
        self._add_tokens("session", ended)
        self.waits.add_one("queue", np.maximum(ended["waited_ns"].drop_null().to_numpy(), 0))
        self.add_told(ended["attrs"], ("runner", "post"))
        measured = _measured(ended)
        if measured.num_rows:
            lengths = _lengths(measured)
            keys = list(range(len(self.families.words)))
            cells = self.sessions.add(keys, self.families.codes(measured["family"]), lengths)
            _show(self.sessions, keys, cells, measured, lengths, corrections)
        return ended

    def add_told(self, column: pa.ChunkedArray, waits: Sequence[str]) -> None:
        """Add waits that the runner told of.

        Args:
            column: JSON, as attributes and facts are kept.
            waits: Which of them to look for.
        """
        for wait in waits:
            # Not decoded one by one: that takes ten times as long, and most have none.
            found = pc.extract_regex(column, rf'"{wait}_wait_s":(?P<told>[-+.eE0-9]+)')
            told = pc.struct_field(found, "told").drop_null()
            self.waits.add_one(wait, _nanoseconds(told))

    def _add_tokens(self, kind: str, rows: pa.Table) -> None:
        for direction in ("in", "out"):
            column = rows[f"tokens_{direction}"]
            if column.null_count < len(column):
                self.tokens[kind, direction] += int(pc.sum(column).as_py() or 0)

    def add_states(self, rows: pa.Table) -> None:
        """Add states of lanes."""
        rows = _measured(rows)
        lanes, names = Vocabulary(), Vocabulary()
        lane_codes, name_codes = lanes.codes(rows["lane"]), names.codes(rows["name"])
        width = len(names.words)
        used, places = np.unique(lane_codes * width + name_codes, return_inverse=True)
        spent = exact_sums(places, _lengths(rows), len(used))
        for code, spent_ns in zip(used.tolist(), spent, strict=True):
            key = lanes.words[code // width], names.words[code % width]
            if key not in self.states and len(self.states) >= _MOST_STATES:
                key = OTHER, OTHER
            self.states[key] += spent_ns

    def add_steps(self, rows: pa.Table, corrections: Corrections, ranks: dict[int, int]) -> None:
        """Keep of each step what the lowest rank says, and of its tries the last."""
        starts = times(rows, "start_ns", corrections).tolist()
        lengths = pc.fill_null(pc.subtract(rows["end_ns"], rows["start_ns"]), NOTHING).to_pylist()
        columns = rows["step"].to_pylist(), rows["process"].to_pylist(), starts, lengths
        for number, process, start, length in zip(*columns, strict=True):
            if number is not None:
                rank = ranks.get(process, 0)
                known = self.steps.get(number)
                if known is None or (rank, -start) <= (known.rank, -known.start_ns):
                    self.steps[number] = StepTime(rank, start, length)

    def step_lengths(self) -> Histogram | None:
        """Give how long steps took that have ended; None if none has."""
        lengths = [one.length_ns for one in self.steps.values() if one.length_ns != NOTHING]
        if not lengths:
            return None
        counted = Histograms[str](LENGTHS)
        counted.add_one("", np.array(lengths, np.int64))
        return counted.get("")


def _nanoseconds(seconds: pa.ChunkedArray) -> Numbers:
    try:
        given = seconds.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:  # of all numbers one is none
        return np.empty(0, np.int64)
    known = given[(given >= 0) & (given < _LONGEST_S)]
    rounded: Numbers = np.round(known * 1e9).astype(np.int64)
    return rounded


def _measured(rows: pa.Table) -> pa.Table:
    """Give the rows that ended and were not lost."""
    is_lost = pc.equal(rows["status"].cast(pa.string()), "lost")
    return rows.filter(pc.and_not(rows["end_ns"].is_valid(), is_lost))


def _lengths(rows: pa.Table) -> Numbers:
    return numbers(rows, "end_ns") - numbers(rows, "start_ns")


def _show(
    histograms: Histograms[Key],
    keys: Sequence[Key],
    cells: Codes,
    rows: pa.Table,
    lengths: Numbers,
    corrections: Corrections,
) -> None:
    """Let the latest span of each bucket stand for it."""
    ends = times(rows, "end_ns", corrections)
    picked = list(histograms.latest(cells, ends))
    whose = rows.select(SHOWN_COLUMNS).take([row for *_, row in picked]).to_pylist()
    for (key, bucket, row), one in zip(picked, whose, strict=True):
        task, sample = one["task_key"] or "", one["sample"]
        title = task if sample is None else f"{task}#{sample}"
        shown = Shown(int(ends[row]), int(lengths[row]), one["trace_id"] or bytes(16), title)
        histograms.get(keys[key]).show(bucket, shown)
