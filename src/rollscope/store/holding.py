"""A run held in memory, for those who ask it very many questions at one moment.

Its rows are copied out of the segments once, sessions are put together with their late facts once,
and a query that was asked before is not asked again.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

import duckdb
import pyarrow as pa

from rollscope.store.corrections import Corrections
from rollscope.store.dialect import DUCKDB, HELD_DUCKDB, Value
from rollscope.store.schema import TABLES
from rollscope.store.views import VIEWS, view_sql

__all__ = ["Holding"]

_MOST_BYTES: Final = 64 * 1024 * 1024
"""Of results that are remembered; the oldest make room."""
_MOST_SPANS: Final = 3_000_000
"""A larger run stays on disk: its rows would go there anyway."""
_PUT_TOGETHER: Final = ("fact_sums", "sessions")

_Key = tuple[str, tuple[tuple[str, object], ...]]


class Holding:
    """Copies of the tables of a run, in front of its views, and results of queries."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, corrections: Corrections) -> None:
        """Copy a run.

        Args:
            connection: Shows the run, and from here on the copy.
            corrections: How the times of processes are moved.
        """
        self._connection = connection
        self._results: OrderedDict[_Key, pa.Table] = OrderedDict()
        self._bytes = 0
        self._tables: list[str] = []
        self._views: list[str] = []
        has_rows = self._count() <= _MOST_SPANS
        if has_rows:
            self._copy(corrections)
        self.dialect: Final = HELD_DUCKDB if has_rows else DUCKDB
        """How to ask it."""

    def get(self, sql: str, values: Mapping[str, Value]) -> pa.Table | None:
        """Give what a query gave before; None if it was not asked, or so long ago."""
        key = _key(sql, values)
        if key not in self._results:
            return None
        self._results.move_to_end(key)
        return self._results[key]

    def put(self, sql: str, values: Mapping[str, Value], result: pa.Table) -> None:
        """Remember what a query gave."""
        size = result.nbytes + len(sql)
        if 4 * size > _MOST_BYTES:
            return
        self._results[_key(sql, values)] = result
        self._bytes += size
        while self._bytes > _MOST_BYTES:
            (old, _), given = self._results.popitem(last=False)
            self._bytes -= given.nbytes + len(old)

    def release(self) -> None:
        """Show the run itself again."""
        for view in self._views:
            self._connection.execute(f"DROP VIEW temp.{view}")
        for table in self._tables:
            self._connection.execute(f"DROP TABLE temp.{table}")
        self._views, self._tables = [], []
        self._results.clear()

    def _count(self) -> int:
        ((count,),) = self._connection.execute("SELECT count(*) FROM raw_spans").fetchall()
        return int(count)

    def _copy(self, corrections: Corrections) -> None:
        """Copy every table, and then make the views anew over the copies."""
        for name in TABLES:
            self._keep(f"raw_{name}", f"SELECT * FROM raw_{name}")
        for name in VIEWS:
            sql = view_sql(name, DUCKDB, corrections)
            if name in _PUT_TOGETHER:
                self._keep(name, sql)
            else:
                self._show(name, sql)

    def _keep(self, name: str, sql: str) -> None:
        self._connection.execute(f"CREATE TEMP TABLE held_{name} AS {sql}")
        self._tables.append(f"held_{name}")
        self._show(name, f"SELECT * FROM held_{name}")

    def _show(self, name: str, sql: str) -> None:
        self._connection.execute(f"CREATE TEMP VIEW {name} AS {sql}")
        self._views.insert(0, name)


def _key(sql: str, values: Mapping[str, Value]) -> _Key:
    told = ((name, tuple(v) if isinstance(v, list) else v) for name, v in values.items())
    return sql, tuple(sorted(told))
