"""Sessions as points of a picture: when, how long, and what became of them."""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollscope.analysis.ranks import NEEDED_FOR_P95, NEEDED_FOR_P99, rank_of
from rollscope.analysis.sampling import sample_evenly
from rollscope.answers.chosen import Chosen
from rollscope.answers.source import Source

__all__ = ["LengthLine", "Points", "fetch_points", "length_lines", "to_points"]

_MOST_POINTS: Final = 5_000
_NEEDED: Final = {95: NEEDED_FOR_P95, 99: NEEDED_FOR_P99}

_COLUMNS: Final = """
    session_id, start_ns, coalesce(end_ns, $at_ns) AS end_ns,
    greatest(coalesce(end_ns, $at_ns) - start_ns, 0) AS ran_ns,
    CASE WHEN status = 'open' THEN 'open' WHEN status = 'lost' THEN 'lost'
        ELSE coalesce(outcome, 'none') END AS outcome,
    status IN ('error', 'lost', 'open') OR coalesce(outcome, '') IN ('failed', 'timeout')
        AS is_flagged,
    status <> 'lost' AND end_ns IS NOT NULL AS is_measured"""


class Points(msgspec.Struct, kw_only=True):
    """Sessions in columns: the first of each list belong together, in order of their end."""

    sessions: list[int]
    start_ns: list[int]
    end_ns: list[int]
    """Now, for those that are open."""
    ran_ns: list[int]
    outcome: list[str]
    """The outcome; `open`, `lost` or `none` where there is none."""
    is_flagged: list[bool]
    """Whether it went wrong or hangs."""
    of: int
    """How many there are; of more than 5,000 only some are given, flagged ones first of all."""


class LengthLine(msgspec.Struct, kw_only=True):
    """A percentile of how long sessions ran, and the session that it is."""

    percent: int
    ran_ns: int
    session_id: int
    count: int
    """Of how many sessions; open and lost ones are not among them."""


def fetch_points(source: Source, chosen: Chosen) -> pa.Table:
    """Give the chosen sessions in columns: those of `Points`, the id, and `is_measured`."""
    sql = f"SELECT {_COLUMNS} FROM sessions WHERE {chosen.where}"
    return source.query(sql, **{**chosen.values, "at_ns": source.now_ns})


def to_points(table: pa.Table) -> Points:
    """Thin sessions out to what a picture shows."""
    order = np.lexsort((table["session_id"].to_numpy(), table["end_ns"].to_numpy()))
    flagged = table["is_flagged"].to_numpy()[order].astype(bool).tolist()
    shown = table.take(pa.array(order[sample_evenly(flagged, _MOST_POINTS)].astype(np.int64)))
    return Points(
        sessions=shown["session_id"].to_pylist(),
        start_ns=shown["start_ns"].to_pylist(),
        end_ns=shown["end_ns"].to_pylist(),
        ran_ns=shown["ran_ns"].to_pylist(),
        outcome=shown["outcome"].to_pylist(),
        is_flagged=[bool(one) for one in shown["is_flagged"].to_pylist()],
        of=table.num_rows,
    )


def length_lines(table: pa.Table, percents: Sequence[int]) -> list[LengthLine]:
    """Give percentiles of how long measured sessions ran, as far as there are enough of them."""
    measured = table.filter(pc.cast(table["is_measured"], pa.bool_()))
    lengths, ids = measured["ran_ns"].to_numpy(), measured["session_id"].to_numpy()
    order = np.lexsort((ids, lengths))
    lines = []
    for percent in percents:
        if len(order) >= _NEEDED.get(percent, 1):
            at = order[rank_of(percent, len(order)) - 1]
            lines.append(
                LengthLine(
                    percent=percent,
                    ran_ns=int(lengths[at]),
                    session_id=int(ids[at]),
                    count=len(order),
                )
            )
    return lines
