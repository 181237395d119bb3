"""States on lanes as a table, each with how deep it lies below others of its lane."""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any, Final

import pyarrow as pa

from rollscope.exporting.picking import Steps, within
from rollscope.exporting.scratch import Scratch

__all__ = ["make_lanes"]

_LANES: Final = pa.schema(
    [
        ("lane", pa.string()),
        ("state", pa.string()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("depth", pa.int32()),
    ]
)
_NEVER_NS: Final = 2**63 - 1


def make_lanes(scratch: Scratch, steps: Steps | None) -> None:
    """Make the table `export.lanes`; of two that begin at once the longer one lies above."""
    scratch.run(f"""
        CREATE TABLE export.states AS
        SELECT coalesce(lane, '') AS lane, name AS state, start_ns,
            CASE WHEN status = 'open' THEN NULL ELSE end_ns END AS end_ns, span_id
        FROM spans WHERE kind = 'state' AND {within(steps, "step")}""")
    scratch.run("""
        CREATE TABLE export.lanes
        (lane VARCHAR, state VARCHAR, start_ns BIGINT, end_ns BIGINT, depth INTEGER)""")
    for rows in _deep(scratch):
        columns = [
            pa.array(values, field.type)
            for values, field in zip(zip(*rows, strict=True), _LANES, strict=True)
        ]
        scratch.add("lanes", pa.RecordBatch.from_arrays(columns, schema=_LANES))


def _deep(scratch: Scratch) -> Iterator[list[tuple[Any, ...]]]:
    sql = f"""
        SELECT lane, state, start_ns, end_ns FROM export.states
        ORDER BY lane, start_ns, coalesce(end_ns, {_NEVER_NS}) DESC, span_id"""
    current: object = None
    running: list[int] = []
    for batch in scratch.stream(sql):
        rows: list[tuple[Any, ...]] = []
        values: Any  # a row of these very columns
        for values in batch:
            lane, _, start_ns, end_ns = values
            if lane != current:
                current, running = lane, []
            while running and running[0] <= start_ns:
                heappop(running)
            rows.append((*values, len(running)))
            heappush(running, _NEVER_NS if end_ns is None else end_ns)
        yield rows
