"""One run in ClickHouse, asked as `RunStore` is: the same views, values and types."""

import re
from collections.abc import Collection, Sequence
from typing import Final

import pyarrow as pa

from rollscope.analysis.stuck import Reference
from rollscope.errors import StoreError
from rollscope.store.clickhouse.ordering import order_by_results
from rollscope.store.clickhouse.tables import ROW_TABLES, RUNS, check_schema
from rollscope.store.clickhouse.transport import Transport
from rollscope.store.corrections import Correction, Corrections
from rollscope.store.dialect import CLICKHOUSE, Dialect, Value
from rollscope.store.lengths import Measured
from rollscope.store.schema import TABLES
from rollscope.store.views import VIEWS, view_sql

__all__ = ["ClickHouseStore", "list_runs"]

_RUN: Final = "rollscope_run"
"""The parameter that names the run; no query of ours uses it for anything else."""
_WITH: Final = re.compile(r"\s*WITH\s+(RECURSIVE\s+)?", re.IGNORECASE)
_WORD: Final = re.compile(r"\w+")
_MOST_NAMED: Final = 10


def list_runs(transport: Transport) -> list[str]:
    """Give the names of all runs, the one fed last first."""
    found = transport.query(
        f"SELECT run FROM {transport.database}.{RUNS} FINAL ORDER BY row_version DESC, run"
    )
    names: list[str] = found["run"].to_pylist()
    return names


class ClickHouseStore:
    """A run of the shared store that can be asked; `refresh` takes note of later feeds."""

    dialect: Dialect = CLICKHOUSE

    def __init__(self, transport: Transport, run: str, *, now_ns: int | None = None) -> None:
        """Find a run.

        Args:
            transport: The way to the server.
            run: What it was fed as.
            now_ns: The time that counts as now; that of the last feed if not given.

        Raises:
            StoreError: There is no such run, or the tables were made by a newer Rollscope.
        """
        self.run = run
        self.now_ns = now_ns or 0
        self._transport = transport
        self._fixed_now_ns = now_ns
        self._moved_ns = 0
        self._views: dict[str, tuple[str, tuple[str, ...]]] = {}
        check_schema(transport)
        self.refresh()

    def refresh(self) -> None:
        """Take note of what was fed since: the time, and whether clocks have to be moved.

        Raises:
            StoreError: There is no such run.
        """
        database = self._transport.database
        found = self._transport.query(
            f"""
            SELECT now_ns FROM {database}.{RUNS} FINAL WHERE run = $run""",
            {"run": self.run},
        ).to_pylist()
        if not found:
            raise StoreError(f"{database} holds no run {self.run!r}; {self._known_runs()}")
        self.now_ns = self._fixed_now_ns or found[0]["now_ns"]
        moved = self._transport.query(
            f"SELECT process, offset_ns, moved_ns, correction FROM {database}.processes FINAL "
            "WHERE run = $run AND (offset_ns != 0 OR correction != '')",
            {"run": self.run},
        ).to_pylist()
        corrections = {
            row["process"]: Correction.read(row["correction"], row["offset_ns"]) for row in moved
        }
        self._moved_ns = max(
            (max(row["moved_ns"], abs(row["offset_ns"])) for row in moved), default=0
        )
        self._views = _view_texts(database, corrections)

    def _known_runs(self) -> str:
        names = list_runs(self._transport)
        if not names:
            return "nothing has been fed to it yet"
        return "it holds " + ", ".join(map(repr, names[:_MOST_NAMED]))

    def query(self, sql: str, **values: Value) -> pa.Table:
        """Run a query of ours over the views.

        Raises:
            QueryError: ClickHouse refuses it; the message is ClickHouse's.
            StoreError: The server cannot be reached.
        """
        found = self._transport.query(self.full_sql(sql), {**values, _RUN: self.run})
        return _as_duckdb(found)

    def rows_since(self, name: str, columns: Sequence[str], since_ns: int) -> str:
        """Give the SQL that reads rows of a table, on the clocks of their processes.

        Args:
            name: The table.
            columns: Of which columns.
            since_ns: Rows that ended before may be left out; ClickHouse finds them by itself.
        """
        return f"(SELECT {', '.join(columns)} FROM raw_{name})"

    def lengths(self, names: Collection[str], since_ns: int) -> Measured:
        """Measure how long spans of some names took that started since, and are not lost."""
        found: Measured = {}
        times: dict[str, Value] = {"since": since_ns, "files_since": since_ns - self._moved_ns}
        for detail, keys in (("detail", "name, detail"), ("NULL", "name")):
            sql = f"""
                SELECT name, {detail} AS detail, count(*) AS count,
                    {self.dialect.rank("duration_ns", 99)} AS p99_ns, max(duration_ns) AS max_ns
                FROM spans
                WHERE {self.dialect.is_in("name", "$names")} AND recorded_end_ns IS NOT NULL
                    AND status <> 'lost' AND start_ns >= $since
                    AND recorded_start_ns >= $files_since
                GROUP BY {keys}"""
            for row in self.query(sql, names=sorted(names), **times).to_pylist():
                measured = Reference(row["count"], row["p99_ns"], row["max_ns"])
                found[row["name"], row["detail"]] = measured
        return found

    def full_sql(self, sql: str) -> str:
        """Give a query as ClickHouse has to be asked it, the views that it names written out."""
        sql = order_by_results(sql)
        needed = self._needed(sql)
        if not needed:
            return sql
        views = ",\n".join(f"{name} AS ({text})" for name, text in needed.items())
        own = _WITH.match(sql)
        if own is None:
            return f"WITH {views}\n{sql}"
        return f"WITH {own[1] or ''}{views},\n{sql[own.end() :]}"

    def _needed(self, sql: str) -> dict[str, str]:
        """Give the views that a query reads, and those that they read, in the order of need."""
        wanted = set(_WORD.findall(sql)) & self._views.keys()
        for name in reversed(self._views):
            if name in wanted:
                wanted |= set(self._views[name][1])
        return {name: text for name, (text, _) in self._views.items() if name in wanted}


def _view_texts(database: str, corrections: Corrections) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Give each view with the views it reads; a view comes after what it reads."""
    texts: dict[str, tuple[str, tuple[str, ...]]] = {}
    for name, layout in ROW_TABLES.items():
        columns = ", ".join(f"`{column}`" for column in layout.columns.names)
        source = f"SELECT {columns} FROM {database}.{name} FINAL WHERE run = ${_RUN}"
        texts[f"raw_{name}" if name in TABLES else name] = (source, ())
    below = set(texts)
    for name in VIEWS:
        sql = view_sql(name, CLICKHOUSE, corrections)
        texts[name] = (sql, tuple((below | VIEWS.keys()) & set(_WORD.findall(sql)) - {name}))
    return texts


def _as_duckdb(table: pa.Table) -> pa.Table:
    """Give columns the types that DuckDB gives them."""
    for place, field in enumerate(table.schema):
        wanted = _duckdb_type(field.type)
        if wanted != field.type:
            table = table.set_column(place, field.name, table.column(place).cast(wanted))
    return table


def _duckdb_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_integer(kind) and kind.bit_width < 64:
        return pa.int64()
    return kind
