"""Reading spans and metrics from a run, a few thousand rows at a time.

Everything comes from the views, so that times stand on one clock and late facts are applied. Of a
run that is followed, the views are made to show what is new only.
"""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Final, Self

import duckdb
import pyarrow as pa

from rollscope.errors import StoreError
from rollscope.otlp.export.spans import ExportRow
from rollscope.store.dialect import DUCKDB
from rollscope.store.embedded import RunStore
from rollscope.store.schema import empty_table
from rollscope.store.views import sessions_among

__all__ = ["ExportRows", "StepRange"]

BATCH_ROWS: Final = 8_192
_MEMORY: Final = "400MB"
_OPEN: Final = "s.status = 'open'"
_ENDED: Final = "s.status <> 'open'"
_LATE: Final = frozenset({"reason", "outcome", "version_end", "reward"})
_CONSUMED: Final = ("consumed_step", "consumed_ns")
_METRIC_COLUMNS: Final = "process, type, name, labels, time_ns, value, count, min, max, buckets"

StepRange = tuple[int, int]
"""The first and the last of the steps that are meant."""


_TOLD_LATE: Final = (
    "CASE WHEN s.kind = 'session' THEN list_filter(["
    + ", ".join(
        f"CASE WHEN late.{name} IS DISTINCT FROM s.{name} THEN '{name}' END"
        for name in sorted(_LATE)
    )
    + "], lambda name: name IS NOT NULL) END"
)


def _column(name: str) -> str:
    if name == "events":
        return "told.events AS events"
    if name == "facts":
        return "learned.facts AS facts"
    if name in _CONSUMED:
        return f"late.{name} AS {name}"
    if name == "late":
        return f"{_TOLD_LATE} AS late"
    if name in _LATE:
        return f"coalesce(late.{name}, s.{name}) AS {name}"
    return f"s.{name} AS {name}"


_COLUMNS: Final = ", ".join(map(_column, ExportRow._fields))


class ExportRows:
    """The rows of a run as it is now."""

    def __init__(
        self,
        store: RunStore,
        fresh: Mapping[str, list[pa.Table]] | None = None,
        *,
        only_open: bool = False,
    ) -> None:
        """Look at a run.

        Args:
            store: The run, as far as it was read; it is not refreshed here.
            fresh: Show these rows only, by table; they must be in the store too.
            only_open: Show spans without an end only.
        """
        self._store = store
        self._connection = duckdb.connect(":memory:")
        self._connection.execute(f"SET memory_limit = '{_MEMORY}'")
        self._connection.execute("SET preserve_insertion_order = false")
        self._are_few = only_open or fresh is not None
        self._has_fresh = fresh is not None
        try:
            store.show_in(self._connection)
            if only_open:
                self._show("spans", "open_spans")
            for name in ("spans", "metrics", "events") if fresh is not None else ():
                tables = (fresh or {}).get(name) or [empty_table(name)]
                rows = pa.concat_tables(tables).unify_dictionaries()
                self._connection.register(f"fresh_{name}", rows)
                if name != "events":  # a span may have some that are older
                    self._show(name, f"fresh_{name}")
        except duckdb.Error as error:
            self.close()
            raise StoreError(f"the run {store.path} cannot be read: {error}") from error

    def _show(self, name: str, source: str) -> None:
        sql = f"CREATE OR REPLACE VIEW raw_{name} AS SELECT * FROM {source}"
        self._connection.execute(sql)

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
        """Let go of the files."""
        self._connection.close()

    def count(self, steps: StepRange | None) -> int:
        """Say how many spans have ended."""
        which = f"{_ENDED} {_within(steps)}"
        sql = f"SELECT count(*) AS n FROM spans AS s WHERE {which}"
        return int(self._ask(sql)["n"][0].as_py())

    def ended(self, steps: StepRange | None) -> Iterator[list[ExportRow]]:
        """Give the spans that have ended, those that were lost among them."""
        return self._spans(f"{_ENDED} {_within(steps)}")

    def open(self, steps: StepRange | None) -> Iterator[list[ExportRow]]:
        """Give the spans that have not."""
        return self._spans(f"{_OPEN} {_within(steps)}")

    def _spans(self, which: str) -> Iterator[list[ExportRow]]:
        sessions, events, facts = "SELECT * FROM sessions", "TRUE", "TRUE"
        if self._are_few:
            # The run may be long: look for what belongs to these few only.
            picked = "SELECT span_id FROM raw_spans WHERE kind = 'session'"
            sessions = sessions_among(DUCKDB, picked)
            events = "parent_id IN (SELECT span_id FROM raw_spans)"
            facts = "span_id IN (SELECT span_id FROM raw_spans)"
        sql = f"""
            SELECT {_COLUMNS} FROM spans AS s
            LEFT JOIN (
                SELECT session_id, {", ".join((*_CONSUMED, *sorted(_LATE)))} FROM ({sessions})
            ) AS late ON s.kind = 'session' AND s.span_id = late.session_id
            LEFT JOIN (
                SELECT parent_id,
                    list({{name: name, time_ns: time_ns, attrs: attrs}} ORDER BY time_ns) AS events
                FROM events WHERE {events} GROUP BY parent_id
            ) AS told ON s.span_id = told.parent_id
            LEFT JOIN (
                SELECT span_id, list(facts ORDER BY time_ns, number) AS facts
                FROM facts WHERE {facts} GROUP BY span_id
            ) AS learned ON s.span_id = learned.span_id
            WHERE {which}"""
        return self._rows(sql)

    def _rows(self, sql: str) -> Iterator[list[ExportRow]]:
        for batch in self._stream(sql):
            held = set(batch.schema.names)
            columns = [
                batch.column(name).to_pylist() if name in held else [None] * batch.num_rows
                for name in ExportRow._fields
            ]
            yield [ExportRow(*values) for values in zip(*columns, strict=True)]

    def lone_events(self) -> Iterator[list[ExportRow]]:
        """Give the events that belong to no span, as spans without a length."""
        fresh = "AND event_id IN (SELECT event_id FROM fresh_events)" if self._has_fresh else ""
        return self._rows(f"""
            SELECT process, trace_id, event_id AS span_id, session_id, 'event' AS kind, name,
                time_ns AS start_ns, time_ns AS end_ns, 'ok' AS status, step, attrs
            FROM events WHERE parent_id IS NULL {fresh}""")

    def metrics(self) -> Iterator[list[dict[str, Any]]]:
        """Give the samples of metrics in the order of their times."""
        order = "time_ns, process, name, labels"
        sql = f"SELECT {_METRIC_COLUMNS} FROM metrics ORDER BY {order}"
        for batch in self._stream(sql):
            yield batch.to_pylist()

    def steps(self) -> dict[int, tuple[bytes, int]]:
        """Give trace and span of each step, of the process that began it first."""
        sql = "SELECT step, trace_id, span_id FROM steps WHERE step IS NOT NULL ORDER BY start_ns"
        found: dict[int, tuple[bytes, int]] = {}
        for row in self._store.query(sql).to_pylist():
            found.setdefault(row["step"], (row["trace_id"], row["span_id"]))
        return found

    def processes(self) -> list[dict[str, Any]]:
        """Give the processes."""
        sql = "SELECT process, host, pid, role, rank FROM processes"
        rows: list[dict[str, Any]] = self._store.query(sql).to_pylist()
        return rows

    def presumed_lost(self) -> set[int]:
        """Give the spans that count as lost because their process is silent; it may come back."""
        sql = "SELECT span_id FROM open_spans WHERE status = 'lost'"
        return set(self._ask(sql)["span_id"].to_pylist())

    def failed_traces(self) -> set[bytes]:
        """Give the traces in which something went wrong."""
        sql = """
            SELECT DISTINCT trace_id FROM spans
            WHERE status IN ('error', 'cancelled', 'lost') OR outcome IN ('failed', 'timeout')"""
        return set(self._ask(sql)["trace_id"].to_pylist())

    def _ask(self, sql: str) -> pa.Table:
        try:
            return self._connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise StoreError(f"the run cannot be read: {error}") from error

    def _stream(self, sql: str) -> Iterator[pa.RecordBatch]:
        try:
            reader: pa.RecordBatchReader = self._connection.sql(sql).to_arrow_reader(BATCH_ROWS)
            yield from reader
        except (duckdb.Error, pa.ArrowException) as error:
            raise StoreError(
                f"the run cannot be read to its end: {error}; start again, with --state to go on "
                "where this stopped"
            ) from error


def _within(steps: StepRange | None) -> str:
    return "" if steps is None else f"AND s.step BETWEEN {int(steps[0])} AND {int(steps[1])}"
