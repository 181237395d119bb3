"""Which lane a session or a place outside of sessions stands on, by the grouping asked for.

Adding a grouping means adding one entry to `GROUPINGS`.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from rollscope.errors import QueryError
from rollscope.store.embedded import RunStore

__all__ = ["GROUPINGS", "Grouping", "Processes", "SessionFacts", "Spot", "find_grouping"]

_NO_VERDICT: Final = "no verdict yet"
_NO_TASK: Final = "no task"


class SessionFacts(msgspec.Struct, frozen=True):
    """What of a session decides where it stands."""

    process: int
    replica: str | None
    task_key: str | None
    sample: int | None
    attempt: int
    outcome: str | None


class Spot(msgspec.Struct, frozen=True):
    """Where something belongs: sessions of one unit share slots, one lane each."""

    group: str
    unit: str
    """What slots are shared in; empty for a lane of one's own."""
    label: str
    """Of the lane; the number of the slot comes behind it."""
    number: int = -1


class Processes:
    """How the run calls its processes."""

    def __init__(self, store: RunStore) -> None:
        rows = store.query("SELECT process, host, title FROM processes").to_pylist()
        self._hosts = {row["process"]: row["host"] for row in rows}
        self._titles = {row["process"]: row["title"] for row in rows}

    def host(self, process: int) -> str:
        """Give the host of a process."""
        return self._hosts.get(process) or "unknown host"

    def title(self, process: int) -> str:
        """Give how a process is called."""
        return self._titles.get(process) or f"process {process:016x}"

    def __contains__(self, process: int) -> bool:
        return process in self._titles

    def named(self) -> dict[int, tuple[str, str]]:
        """Give host and title of every process."""
        return {process: (self.host(process), self.title(process)) for process in self._titles}


class Grouping(msgspec.Struct, frozen=True):
    """One way to lay lanes out."""

    session: Callable[[SessionFacts, Processes], Spot]
    outside: Callable[[int, str, Processes], Spot]
    follows_verdicts: bool = False
    """Whether a verdict moves a session, so that an index cannot grow but is built anew."""
    is_shared: bool = True
    """Whether several sessions share a lane, one after the other."""


def _host_session(facts: SessionFacts, processes: Processes) -> Spot:
    title = processes.title(facts.process)
    return Spot(processes.host(facts.process), str(facts.process), f"{title} · slot")


def _host_outside(process: int, lane: str, processes: Processes) -> Spot:
    title = processes.title(process)
    return Spot(processes.host(process), "", f"{title} · {lane}" if lane else title)


def _replica_session(facts: SessionFacts, processes: Processes) -> Spot:
    pool = facts.replica or processes.title(facts.process)
    return Spot(pool, pool, "slot")


def _rank_session(facts: SessionFacts, processes: Processes) -> Spot:
    return Spot(processes.title(facts.process), str(facts.process), "slot")


def _task_session(facts: SessionFacts, _: Processes) -> Spot:
    label = "sample" if not facts.attempt else f"attempt {facts.attempt + 1} of sample"
    sample = -1 if facts.sample is None else facts.sample
    return Spot(facts.task_key or _NO_TASK, "", label, sample)


def _outcome_session(facts: SessionFacts, _: Processes) -> Spot:
    outcome = facts.outcome or _NO_VERDICT
    return Spot(outcome, outcome, "slot")


def _title_outside(process: int, lane: str, processes: Processes) -> Spot:
    return Spot(processes.title(process), "", lane or "spans")


GROUPINGS: Final[dict[str, Grouping]] = {
    "host": Grouping(_host_session, _host_outside),
    "replica": Grouping(_replica_session, _title_outside),
    "rank": Grouping(_rank_session, _title_outside),
    "task": Grouping(_task_session, _title_outside, is_shared=False),
    "outcome": Grouping(_outcome_session, _title_outside, follows_verdicts=True),
}


def find_grouping(by: str) -> Grouping:
    """Give the grouping of a name.

    Raises:
        QueryError: There is none of that name.
    """
    try:
        return GROUPINGS[by]
    except KeyError:
        known = ", ".join(GROUPINGS)
        raise QueryError(f"lanes cannot be grouped by {by!r}; choose one of {known}") from None
