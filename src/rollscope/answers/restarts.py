"""Whether a program was started again into the run that an earlier start had recorded."""

import msgspec

from rollscope.answers.source import Source, fetch

__all__ = ["Repeated", "repeated_steps"]

_SQL = """
    SELECT s.step AS step, p.role AS role, coalesce(p.rank, -1) AS rank,
        count(DISTINCT s.process) AS starts, max(s.start_ns) AS last_start_ns,
        min(coalesce(s.end_ns, s.start_ns)) AS first_end_ns
    FROM steps AS s JOIN processes AS p ON s.process = p.process
    WHERE s.step IS NOT NULL
    GROUP BY s.step, p.role, coalesce(p.rank, -1)
    ORDER BY s.step"""


class Repeated(msgspec.Struct, frozen=True):
    """Steps that processes of one role and rank have recorded, one after the other."""

    first: int
    last: int
    starts: int
    """How often, at most."""


class _Recorded(msgspec.Struct):
    step: int
    role: str
    rank: int
    starts: int
    last_start_ns: int
    first_end_ns: int


def repeated_steps(source: Source) -> Repeated | None:
    """Find the steps that were recorded anew after they had ended; None if there are none."""
    twice = [
        row
        for row in fetch(source, _Recorded, _SQL)
        if row.starts > 1 and row.last_start_ns >= row.first_end_ns
    ]
    if not twice:
        return None
    return Repeated(twice[0].step, twice[-1].step, max(row.starts for row in twice))
