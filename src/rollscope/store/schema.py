"""The tables of a run as the store keeps them: columns, types, and the order of rows.

The same tables stand in Parquet segments, in the tail that is not sealed yet, and in ClickHouse.
Ids are unsigned 64-bit numbers, times whole nanoseconds since the epoch on the clock of the process
that recorded them; views move them (see `views`).
"""

from typing import Final

import pyarrow as pa

__all__ = ["SEGMENT_SCHEMA", "SORT_KEYS", "TABLES", "empty_table"]

SEGMENT_SCHEMA: Final = 1
"""Raised when a column changes its meaning; a new column alone does not raise it."""

_WORD: Final = pa.dictionary(pa.int32(), pa.string())
"""Text that repeats."""

SPANS: Final = pa.schema(
    [
        ("process", pa.uint64()),
        ("trace_id", pa.binary(16)),
        ("span_id", pa.uint64()),
        ("parent_id", pa.uint64()),
        ("session_id", pa.uint64()),
        ("kind", _WORD),
        ("name", _WORD),
        ("category", _WORD),
        ("detail", _WORD),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("status", _WORD),
        ("reason", _WORD),
        ("outcome", _WORD),
        ("step", pa.int64()),
        ("version_start", pa.int64()),
        ("version_end", pa.int64()),
        ("task_key", _WORD),
        ("family", _WORD),
        ("sample", pa.int64()),
        ("group_key", _WORD),
        ("lane", _WORD),
        ("replica", _WORD),
        ("attempt", pa.int64()),
        ("turns", pa.int64()),
        ("tokens_in", pa.int64()),
        ("tokens_out", pa.int64()),
        ("waited_ns", pa.int64()),
        ("queue_ns", pa.int64()),
        ("deadline_ns", pa.int64()),
        ("link", pa.uint64()),
        ("reward", pa.float64()),
        ("path", _WORD),
        ("parent_path", _WORD),
        ("overlap_ns", pa.int64()),
        ("attrs", pa.string()),
    ]
)
EVENTS: Final = pa.schema(
    [
        ("process", pa.uint64()),
        ("trace_id", pa.binary(16)),
        ("event_id", pa.uint64()),
        ("parent_id", pa.uint64()),
        ("session_id", pa.uint64()),
        ("name", _WORD),
        ("time_ns", pa.int64()),
        ("step", pa.int64()),
        ("version", pa.int64()),
        ("attrs", pa.string()),
    ]
)
FACTS: Final = pa.schema(
    [
        ("process", pa.uint64()),
        ("span_id", pa.uint64()),
        ("time_ns", pa.int64()),
        ("number", pa.int64()),
        ("outcome", _WORD),
        ("reason", _WORD),
        ("version_end", pa.int64()),
        ("consumed_step", pa.int64()),
        ("reward", pa.float64()),
        ("facts", pa.string()),
    ]
)
METRICS: Final = pa.schema(
    [
        ("process", pa.uint64()),
        ("type", _WORD),
        ("name", _WORD),
        ("labels", pa.string()),
        ("time_ns", pa.int64()),
        ("value", pa.float64()),
        ("count", pa.int64()),
        ("min", pa.float64()),
        ("max", pa.float64()),
        ("buckets", pa.string()),
        ("step", pa.int64()),
    ]
)
STACKS: Final = pa.schema(
    [
        ("process", pa.uint64()),
        ("span_id", pa.uint64()),
        ("time_ns", pa.int64()),
        ("task", pa.string()),
        ("frames", pa.string()),
    ]
)

TABLES: Final[dict[str, pa.Schema]] = {
    "spans": SPANS,
    "events": EVENTS,
    "facts": FACTS,
    "metrics": METRICS,
    "stacks": STACKS,
}
"""What segments hold, by name."""

SORT_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "spans": ("kind", "process", "start_ns"),
    "events": ("process", "time_ns"),
    "facts": ("span_id", "time_ns"),
    "metrics": ("name", "process", "time_ns"),
    "stacks": ("span_id", "time_ns"),
}
"""A process counts its span ids up, so in this order both times and ids of neighbours are close:
small to store, and a reader that wants one session or one second can skip nearly everything. Kinds
come first because most questions are about sessions, which are few among the spans."""


def empty_table(name: str) -> pa.Table:
    """Give a table without rows."""
    return TABLES[name].empty_table()
