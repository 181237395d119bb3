"""Rows that are final, as tables."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rollscope.model.batch import Batch
from rollscope.model.clockline import ClockMap
from rollscope.model.kinds import STATUS_OF_CODE, WHAT_OF_CODE, Kind, Outcome
from rollscope.model.scope import ScopeRow
from rollscope.store.attributes import (
    FIELDS,
    PROMOTED,
    family_of,
    json_column,
    read_columns,
    whole_number,
)
from rollscope.store.densecodes import number_densely
from rollscope.store.rawrows import RawRows, wall_times
from rollscope.store.schema import EVENTS, FACTS, METRICS, SPANS, STACKS

__all__ = ["Finished", "event_table", "fact_table", "metric_table", "stack_table"]

_MOST_FACTS: Final = 1 << 20
"""Of one batch; frames are far too small for more."""
_FACT_COLUMNS: Final = {
    **{name: FIELDS[name] for name in ("outcome", "reason", "version_end")},
    "reward": PROMOTED["reward"],
    "consumed_step": (("consumed_step",), whole_number),
}

_CODES: Final = max(WHAT_OF_CODE) + 1
_KINDS: Final = [WHAT_OF_CODE[c].kind if c in WHAT_OF_CODE else None for c in range(_CODES)]
_CATEGORIES: Final = [
    WHAT_OF_CODE[c].category if c in WHAT_OF_CODE else None for c in range(_CODES)
]
_STATUSES: Final = pa.array([str(status) for status in STATUS_OF_CODE])


def _word_table(words: list[Any]) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """Give the code of each word, -1 for none, and the words once each."""
    unique = list(dict.fromkeys(str(word) for word in words if word is not None))
    codes = [-1 if word is None else unique.index(str(word)) for word in words]
    return np.array(codes, np.int32), pa.array(unique)


_KIND_CODES, _KIND_WORDS = _word_table(_KINDS)
_CATEGORY_CODES, _CATEGORY_WORDS = _word_table(_CATEGORIES)
_KIND_RANKS: Final = np.array(
    [-1 if kind is None else sorted(Kind).index(kind) for kind in _KINDS], np.int8
)


def _words(codes: npt.NDArray[np.int32], words: pa.Array) -> pa.DictionaryArray:
    mask = codes < 0
    indices = pa.array(codes, pa.int32(), mask=mask) if mask.any() else pa.array(codes, pa.int32())
    return pa.DictionaryArray.from_arrays(indices, words)


class Finished(msgspec.Struct):
    """Spans that ended, with what was found out about them."""

    rows: RawRows
    ended: npt.NDArray[np.int64]
    process: int
    overlap_ns: npt.NDArray[np.int64]
    path: npt.NDArray[np.int32]
    parent_path: npt.NDArray[np.int32]
    paths: list[str]

    def span_table(self) -> pa.Table | None:
        """Give them as rows of the table `spans`, in the order in which segments keep them."""
        if not len(self.ended):
            return None
        rows = self.rows
        kinds = _KIND_RANKS[rows.what[self.ended]]
        order = np.lexsort((rows.start_ns[self.ended], kinds))
        ended = self.ended[order]
        what = rows.what[ended]
        used, which = number_densely(rows.attr[ended], len(rows.attrs))
        attrs = [rows.attrs[code] for code in used.tolist()]
        repeated = pa.array(which)
        parents = rows.parent_id[ended]
        columns: dict[str, pa.Array] = {
            "process": pa.array(np.full(len(ended), self.process, np.uint64)),
            "span_id": pa.array(rows.span_id[ended]),
            "parent_id": pa.array(parents, mask=parents == 0),
            "kind": _words(_KIND_CODES[what], _KIND_WORDS),
            "name": _words(rows.name[ended], pa.array(rows.names, pa.string())),
            "category": _words(_CATEGORY_CODES[what], _CATEGORY_WORDS),
            "start_ns": pa.array(rows.start_ns[ended]),
            "end_ns": pa.array(rows.end_ns[ended]),
            "status": _words(rows.status[ended].astype(np.int32), _STATUSES),
            "path": _words(*_compact(self.path[order], self.paths)),
            "parent_path": _words(*_compact(self.parent_path[order], self.paths)),
            "overlap_ns": pa.array(self.overlap_ns[order]),
            "attrs": json_column(attrs).take(repeated),
        }
        columns |= _field_columns(rows, self.ended, order)
        own, places = number_densely(rows.scope[ended], len(rows.scopes))
        scoped = _scope_columns([rows.scopes[place] for place in own.tolist()])
        taken = pa.array(places)
        columns |= {name: column.take(taken) for name, column in scoped.items()}
        promoted = read_columns(attrs, PROMOTED, SPANS)
        own_family = promoted.pop("family")
        columns |= {name: _repeat(column, repeated) for name, column in promoted.items()}
        if own_family.null_count < len(own_family):
            columns["family"] = _prefer(own_family.take(repeated), columns["family"])
        return pa.table([columns[name] for name in SPANS.names], schema=SPANS)


def _repeat(column: pa.Array, places: pa.Array) -> pa.Array:
    if column.null_count == len(column):
        return pa.nulls(len(places), column.type)
    return column.take(places)


def _compact(
    codes: npt.NDArray[np.int32], words: list[str]
) -> tuple[npt.NDArray[np.int32], pa.Array]:
    used, which = number_densely(codes, len(words))
    return which, pa.array([words[code] for code in used.tolist()], pa.string())


def _prefer(first: pa.Array, second: pa.Array) -> pa.Array:
    both = pc.coalesce(first.cast(pa.string()), second.cast(pa.string()))
    return both.dictionary_encode()


def _field_columns(
    rows: RawRows, ended: npt.NDArray[np.int64], order: npt.NDArray[np.int64]
) -> dict[str, pa.Array]:
    """Give the fields that few spans have."""
    ordered = np.empty_like(order)
    ordered[order] = np.arange(len(order))
    size = len(ended)
    keys = np.fromiter(rows.fields, np.int64, len(rows.fields))
    places = np.searchsorted(ended, keys)
    inside = (places < size) & (ended[np.minimum(places, size - 1)] == keys)
    held = [rows.fields[int(key)] for key in keys[inside]]
    return read_columns(held, FIELDS, SPANS, places=ordered[places[inside]], size=size)


def _scope_columns(scopes: list[ScopeRow]) -> dict[str, pa.Array]:
    traces, steps, keys, groups, sessions, samples = zip(*scopes, strict=True)
    tasks = pa.array(keys, pa.string()).dictionary_encode()
    families = pa.array(map(family_of, tasks.dictionary.to_pylist()), pa.string())
    known = families.dictionary_encode()
    return {
        # Each is of 16 bytes, which was seen to when the batch was taken.
        "trace_id": pa.Array.from_buffers(
            pa.binary(16), len(traces), [None, pa.py_buffer(b"".join(traces))]
        ),
        "session_id": pa.array(sessions, pa.uint64()),
        "step": _numbers(steps),
        "task_key": tasks,
        "family": pa.DictionaryArray.from_arrays(
            known.indices.take(tasks.indices), known.dictionary
        ),
        "sample": _numbers(samples),
        "group_key": pa.array(groups, pa.string()).dictionary_encode(),
    }


def _numbers(values: Sequence[object]) -> pa.Array:
    try:
        return pa.array(values, pa.int64())
    except (OverflowError, pa.ArrowInvalid):  # a program may call anything its step
        return pa.array([whole_number(value) for value in values], pa.int64())


def event_table(process: int, rows: RawRows, events: npt.NDArray[np.int64]) -> pa.Table | None:
    """Give events as rows of the table `events`."""
    if not len(events):
        return None
    attrs = [rows.attrs[code] for code in rows.attr[events].tolist()]
    parents = rows.parent_id[events]
    scoped = _scope_columns([rows.scopes[place] for place in rows.scope[events]])
    columns = {
        "process": pa.array(np.full(len(events), process, np.uint64)),
        "event_id": pa.array(rows.span_id[events]),
        "parent_id": pa.array(parents, mask=parents == 0),
        "name": _words(rows.name[events], pa.array(rows.names, pa.string())),
        "time_ns": pa.array(rows.start_ns[events]),
        "version": pa.array([whole_number(a.get("version")) for a in attrs], pa.int64()),
        "attrs": json_column(attrs),
        **{name: scoped[name] for name in ("trace_id", "session_id", "step")},
    }
    return pa.table([columns[name] for name in EVENTS.names], schema=EVENTS)


def fact_table(process: int, batches: Sequence[Batch], clock: ClockMap) -> pa.Table | None:
    """Give late facts as rows of the table `facts`."""
    numbered = [
        (batch.number * _MOST_FACTS + place, fact)
        for batch in batches
        for place, fact in enumerate(batch.facts[:_MOST_FACTS])
    ]
    if not numbered:
        return None
    facts = [fact.facts for _, fact in numbered]
    columns: dict[str, pa.Array] = {
        "process": pa.array(np.full(len(facts), process, np.uint64)),
        "span_id": pa.array([fact.span_id for _, fact in numbered], pa.uint64()),
        "time_ns": pa.array(wall_times(clock, np.array([fact.mono_ns for _, fact in numbered]))),
        "number": pa.array([number for number, _ in numbered], pa.int64()),
        "facts": json_column(facts),
        **read_columns(facts, _FACT_COLUMNS, FACTS),
    }
    # A program may call any fact so; they are the session's own fields beside a verdict only.
    known = pc.is_in(columns["outcome"].cast(pa.string()), pa.array([str(o) for o in Outcome]))
    for name in ("outcome", "reason", "version_end"):
        columns[name] = pc.if_else(known, columns[name], pa.scalar(None, columns[name].type))
    return pa.table([columns[name] for name in FACTS.names], schema=FACTS)


def metric_table(process: int, batches: Sequence[Batch], clock: ClockMap) -> pa.Table | None:
    """Give samples of metrics as rows of the table `metrics`."""
    timed = [
        (clock.wall_at(metric.mono_ns or batch.mono_ns), metric)
        for batch in batches
        for metric in batch.metrics
    ]
    if not timed:
        return None
    metrics = [metric for _, metric in timed]
    columns = {
        "process": [process] * len(timed),
        "type": _dictionary([str(metric.type) for metric in metrics]),
        "name": _dictionary([metric.name for metric in metrics]),
        "labels": json_column([dict(sorted(metric.labels.items())) for metric in metrics]),
        "time_ns": [time_ns for time_ns, _ in timed],
        "value": [metric.value for metric in metrics],
        "count": [metric.count for metric in metrics],
        "min": [metric.min for metric in metrics],
        "max": [metric.max for metric in metrics],
        "buckets": json_column([metric.buckets for metric in metrics]),
        "step": _numbers([metric.step for metric in metrics]),
    }
    return pa.table(columns, schema=METRICS)


def stack_table(process: int, batches: Sequence[Batch], clock: ClockMap) -> pa.Table | None:
    """Give await stacks as rows of the table `stacks`."""
    stacks = [stack for batch in batches for stack in batch.stacks]
    if not stacks:
        return None
    columns = {
        "process": [process] * len(stacks),
        "span_id": [stack.span_id for stack in stacks],
        "time_ns": [clock.wall_at(stack.mono_ns) for stack in stacks],
        "task": [stack.task for stack in stacks],
        "frames": json_column([stack.frames for stack in stacks]),
    }
    return pa.table(columns, schema=STACKS)


def _dictionary(words: list[str]) -> pa.DictionaryArray:
    return pa.array(words, pa.string()).dictionary_encode()
