"""A run as programs and notebooks use it: tables, and answers to the usual questions."""

import os
from pathlib import Path
from types import TracebackType
from typing import Self, TypedDict, Unpack

import pyarrow as pa

from rollscope.analysis.filters import parse_filter
from rollscope.answers.compare import Comparison, Selection, compare_runs, compare_selection
from rollscope.answers.hotspots import HotspotAnswer, HotspotGrouping, find_hotspots
from rollscope.answers.phases import Grouping, Phases, phases
from rollscope.answers.scope import resolve_scope
from rollscope.answers.session import SessionAnswer, one_session
from rollscope.answers.steps import StepAnswer, Steps, one_step, steps
from rollscope.answers.stuck import Stuck, stuck
from rollscope.store.dialect import Value
from rollscope.store.embedded import RunStore
from rollscope.store.run import find_run

__all__ = ["Run", "Which", "open_run"]

_TIME_COLUMNS = {
    "spans": ("start_ns", "end_ns"),
    "steps": ("start_ns", "end_ns"),
    "tasks": ("start_ns", "end_ns"),
    "sessions": ("start_ns", "end_ns"),
    "phases": ("start_ns", "end_ns"),
    "states": ("start_ns", "end_ns"),
    "events": ("time_ns", "time_ns"),
    "metrics": ("time_ns", "time_ns"),
    "stacks": ("time_ns", "time_ns"),
    "facts": ("time_ns", "time_ns"),
}
_STEP_COLUMNS = {"sessions": "charged_step"}


class Which(TypedDict, total=False):
    """Which rows of a table."""

    step: int | tuple[int, int]
    """A step, or the first and the last of several."""
    since_ns: int
    """Only what had not ended by then."""
    until_ns: int
    """Only what had started by then."""


def open_run(
    run: str | os.PathLike[str], *, dir: str = "runs", threads: int | None = None
) -> "Run":
    """Open a run, which may still be written to.

    Args:
        run: Its directory, one of its logs, or its name in `dir`.
        dir: Where runs are looked for by name.
        threads: How many threads a query may use; all cores if not given.

    Raises:
        NotARunError: There is none; the message says what is there instead.
    """
    return Run(RunStore(find_run(os.fspath(run), dir), threads=threads))


class Run:
    """One run. Tables are pyarrow's: `.to_pandas()` and `polars.from_arrow` take them as they are.

    Table methods take the keywords of `Which`. Ids are numbers; times are nanoseconds on one clock
    for all hosts.
    """

    def __init__(self, store: RunStore) -> None:
        self.store = store

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of its files."""
        self.store.close()

    def refresh(self) -> bool:
        """Take in what was added since; say whether there was anything."""
        return self.store.refresh()

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.store.path

    @property
    def problems(self) -> list[str]:
        """What is wrong with its files, in sentences."""
        return self.store.problems

    def sql(self, query: str, **values: Value) -> pa.Table:
        """Run a query over the views; values are bound by name, as `$name`."""
        return self.store.query(query, **values)

    def steps(self, **which: Unpack[Which]) -> pa.Table:
        """Give the steps the trainer recorded."""
        return self._table("steps", **which)

    def tasks(self, **which: Unpack[Which]) -> pa.Table:
        """Give the tasks."""
        return self._table("tasks", **which)

    def sessions(self, **which: Unpack[Which]) -> pa.Table:
        """Give the sessions, late facts applied; `step` is the one that each counts for."""
        return self._table("sessions", **which)

    def phases(self, **which: Unpack[Which]) -> pa.Table:
        """Give the phases."""
        return self._table("phases", **which)

    def spans(self, **which: Unpack[Which]) -> pa.Table:
        """Give spans of every kind."""
        return self._table("spans", **which)

    def states(self, **which: Unpack[Which]) -> pa.Table:
        """Give the states of lanes."""
        return self._table("states", **which)

    def events(self, **which: Unpack[Which]) -> pa.Table:
        """Give the events."""
        return self._table("events", **which)

    def facts(self, **which: Unpack[Which]) -> pa.Table:
        """Give what was learned of spans later on."""
        return self._table("facts", **which)

    def metrics(self, **which: Unpack[Which]) -> pa.Table:
        """Give what metrics did, drain by drain."""
        return self._table("metrics", **which)

    def stacks(self, **which: Unpack[Which]) -> pa.Table:
        """Give the recorded await stacks."""
        return self._table("stacks", **which)

    def processes(self) -> pa.Table:
        """Give the processes, the earliest first."""
        return self.store.query("SELECT * FROM processes ORDER BY started_ns, process")

    def drops(self) -> pa.Table:
        """Give what each process had to drop."""
        return self.store.query("SELECT * FROM drops ORDER BY process, what")

    def rows(self, view: str, *, limit: int, **which: Unpack[Which]) -> pa.Table:
        """Give rows of any of these tables by its name, so many at most, the earliest first."""
        return self._table(view, limit, **which)

    def _table(self, view: str, limit: int | None = None, **which: Unpack[Which]) -> pa.Table:
        start, end = _TIME_COLUMNS[view]
        conditions = ["TRUE"]
        values: dict[str, Value] = {}
        if "step" in which:
            step = which["step"]
            first, last = step if isinstance(step, tuple) else (step, step)
            column = _STEP_COLUMNS.get(view, "step")
            conditions.append(f"{column} BETWEEN $first AND $last")
            values |= {"first": first, "last": last}
        if "since_ns" in which:
            conditions.append(f"({end} IS NULL OR {end} >= $since_ns)")
            values["since_ns"] = which["since_ns"]
        if "until_ns" in which:
            conditions.append(f"{start} < $until_ns")
            values["until_ns"] = which["until_ns"]
        sql = f"SELECT * FROM {view} WHERE {' AND '.join(conditions)} ORDER BY {start}"
        if limit is not None:
            sql += f" LIMIT {limit}"
        return self.store.query(sql, **values)

    def judged_steps(self, scope: str | None = None) -> Steps:
        """List steps with their verdicts; the last ten if no scope is given."""
        return steps(self.store, None if scope is None else resolve_scope(self.store, scope))

    def step(self, number: int) -> StepAnswer:
        """Tell everything about one step."""
        return one_step(self.store, number)

    def stuck(self) -> Stuck:
        """Judge everything that is open now."""
        return stuck(self.store)

    def session(self, name: str) -> SessionAnswer:
        """Tell everything about one session, by its id or as `task#sample`."""
        return one_session(self.store, name)

    def hotspots(self, scope: str = "latest", by: HotspotGrouping = "path") -> HotspotAnswer:
        """Tell where session time goes, by span path."""
        return find_hotspots(self.store, resolve_scope(self.store, scope), by)

    def phase_times(self, scope: str = "all", by: Grouping = "name") -> Phases:
        """Tell how long phases take, and which errors ended spans."""
        return phases(self.store, resolve_scope(self.store, scope), by)

    def compare(self, other: "Run", scope: str = "all", other_scope: str = "all") -> Comparison:
        """Compare with another run, or with other steps of the same."""
        return compare_runs(
            self.store,
            resolve_scope(self.store, scope),
            other.store,
            resolve_scope(other.store, other_scope),
            (self.path.name, other.path.name),
        )

    def select(self, filter_text: str, scope: str = "all") -> Selection:
        """Tell what is different about the sessions that a filter holds for."""
        return compare_selection(
            self.store, resolve_scope(self.store, scope), parse_filter(filter_text)
        )
