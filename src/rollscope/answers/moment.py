"""Which moment a page about now shows: this one while the run lives, else the run's end."""

from typing import NamedTuple

from rollscope.answers.moves import MOST_MOVED
from rollscope.answers.sharing import shared
from rollscope.answers.source import Source

__all__ = ["Moment", "moment_of"]


class Moment(NamedTuple):
    """When now is, for a run."""

    now_ns: int
    is_alive: bool
    first_ns: int
    """When its first process started."""
    last_ns: int
    """When any of its processes was last heard of."""
    moved_ns: int
    """The most by which times of any process are moved."""

    @property
    def age_ns(self) -> int:
        """How long the run has gone on."""
        return max(self.now_ns - self.first_ns, 0)


def moment_of(source: Source) -> Moment:
    """Find the moment that counts as now."""
    return shared(source, "moment", lambda: _find_moment(source))


def _find_moment(source: Source) -> Moment:
    sql = f"""
        SELECT min(started_ns) AS first_ns, max(last_seen_ns) AS last_ns,
            max({MOST_MOVED}) AS moved_ns,
            sum(CASE WHEN status IN ('ended', 'dead', 'imported') THEN 0 ELSE 1 END) AS alive
        FROM processes"""
    (row,) = source.query(sql).to_pylist()
    is_alive = bool(row["alive"])
    last_ns = row["last_ns"] or source.now_ns
    return Moment(
        now_ns=source.now_ns if is_alive else last_ns,
        is_alive=is_alive,
        first_ns=row["first_ns"] or last_ns,
        last_ns=last_ns,
        moved_ns=row["moved_ns"] or 0,
    )
