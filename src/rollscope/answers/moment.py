"""Which moment a page about now shows: this one while the run lives, else the run's end."""

from collections.abc import Iterable
from typing import NamedTuple

from rollscope.answers.moves import MOST_MOVED
from rollscope.answers.sharing import shared
from rollscope.answers.source import Source
from rollscope.model.serverroles import SERVER_ROLES

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

    def apart_ns(self, distances_ns: Iterable[int], ticks: int, most_ns: int) -> int:
        """Choose how far apart moments are: as close as lets them cover all of a young run.

        Args:
            distances_ns: What there is to choose from, the closest first.
            ticks: How many moments there are.
            most_ns: The distance for a run that is too old to be covered.
        """
        fitting = (one for one in distances_ns if self.age_ns <= ticks * one)
        return min(next(fitting, most_ns), most_ns)


def moment_of(source: Source) -> Moment:
    """Find the moment that counts as now."""
    return shared(source, "moment", lambda: _find_moment(source))


def _find_moment(source: Source) -> Moment:
    sql = f"""
        SELECT CASE WHEN {source.dialect.is_in("role", "$servers")} THEN 1 ELSE 0 END AS is_server,
            min(started_ns) AS first_ns, max(last_seen_ns) AS last_ns,
            max({MOST_MOVED}) AS moved_ns,
            sum(CASE WHEN status IN ('ended', 'dead', 'imported') THEN 0 ELSE 1 END) AS alive
        FROM processes GROUP BY is_server ORDER BY is_server"""
    rows = source.query(sql, servers=sorted(SERVER_ROLES)).to_pylist()
    if not rows:
        now_ns = source.now_ns
        return Moment(now_ns, is_alive=False, first_ns=now_ns, last_ns=now_ns, moved_ns=0)
    row = rows[0]  # a server counts only where there is nobody else
    is_alive = bool(row["alive"])
    return Moment(
        now_ns=source.now_ns if is_alive else row["last_ns"],
        is_alive=is_alive,
        first_ns=row["first_ns"],
        last_ns=row["last_ns"],
        moved_ns=max(row["moved_ns"] for row in rows),
    )
