"""The embedded store: one run, read with DuckDB over sealed segments and the fresh tail."""

import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import duckdb
import pyarrow as pa

from rollscope.errors import StoreError
from rollscope.store.clocks import Offset, estimate_offsets
from rollscope.store.dialect import DUCKDB, Dialect, Value
from rollscope.store.processes import drop_table, process_table
from rollscope.store.schema import TABLES
from rollscope.store.sealer import Progress, Sealer, find_shelf
from rollscope.store.segments import Segment, is_sound
from rollscope.store.views import VIEWS, view_sql

__all__ = ["RunStore"]

_WORTH_KEEPING: Final = 50_000
"""Spans after which a reader that leaves seals them, so that the next one need not read them."""


class RunStore:
    """A run that can be asked; `refresh` takes in what was added since."""

    dialect: Dialect = DUCKDB

    def __init__(
        self,
        run: Path,
        *,
        threads: int | None = None,
        memory_mb: int = 512,
        now_ns: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Open a run.

        Args:
            run: Its directory, or one of its logs.
            threads: How many threads a query may use; all cores if not given.
            memory_mb: What a query may use before it goes to disk.
            now_ns: The time that counts as now; the clock's if not given.
            progress: Told how far the logs have been taken in.
        """
        self.path = run
        self.now_ns = now_ns or time.time_ns()
        self._fixed_now_ns = now_ns
        self._lock = threading.RLock()
        self._sealer = Sealer(run, find_shelf(run))
        self._connection = duckdb.connect(":memory:")
        self._run(f"SET memory_limit = '{int(memory_mb)}MB'")
        self._run("SET preserve_insertion_order = false")
        self._run("SET parquet_metadata_cache = true")
        if threads is not None:
            self._run(f"SET threads = {int(threads)}")
        self._viewed: tuple[object, ...] = ()
        self.offsets: dict[str, Offset] = {}
        self.refresh(progress)

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
        """Leave, and seal what is worth it for the next reader."""
        with self._lock:
            if self._sealer.unsealed_rows >= _WORTH_KEEPING:
                self._sealer.seal()
            self._connection.close()

    @property
    def problems(self) -> list[str]:
        """What is wrong with the files of the run, in sentences."""
        return [*self._sealer.problems, *self._sealer.intake.problems]

    @property
    def sealer(self) -> Sealer:
        """What follows the run, for those who look after its files."""
        return self._sealer

    def refresh(self, progress: Progress | None = None) -> bool:
        """Take in what was added; say whether there was anything."""
        with self._lock:
            found = self._sealer.poll(progress)
            self.now_ns = self._fixed_now_ns or time.time_ns()
            self._show()
            return found

    def seal(self) -> bool:
        """Write what is in memory to disk; False if that is not possible now."""
        with self._lock:
            done = self._sealer.seal()
            self._show()
            return done

    def query(self, sql: str, **values: Value) -> pa.Table:
        """Run a query of ours over the views.

        Raises:
            StoreError: It cannot be answered, because files of the run are damaged.
        """
        with self._lock:
            try:
                return self._ask(sql, values)
            except (duckdb.IOException, duckdb.InvalidInputException) as error:
                if not self._drop_damaged():
                    raise StoreError(f"the run {self.path} cannot be read: {error}") from error
                return self._ask(sql, values)

    def _ask(self, sql: str, values: dict[str, Value]) -> pa.Table:
        return self._connection.sql(sql, params=values or None).to_arrow_table()

    def _run(self, sql: str, values: dict[str, Value] | None = None) -> duckdb.DuckDBPyConnection:
        return self._connection.execute(sql, values or None)

    def _drop_damaged(self) -> bool:
        """Look at every segment whole, and go on without those that are damaged."""
        shelf = self._sealer.shelf
        if shelf is None:
            return False
        segments = self._sealer.manifest.segments
        if all(is_sound(shelf.folder, segment, deep=True) for segment in segments):
            return False
        self._sealer.give_up_damaged()
        self.refresh()
        return True

    def _show(self) -> None:
        """Let the views show the segments and the tail as they are now."""
        sealer = self._sealer
        self.offsets = estimate_offsets(sealer)
        processes = process_table(sealer.intake, self.now_ns, self.offsets)
        self._register("processes", processes)
        self._register("drops", drop_table(sealer.intake))
        for name in TABLES:
            self._register(f"tail_{name}", sealer.tail_table(name))
        self._register("open_spans", sealer.intake.open_rows(self.now_ns))
        is_moved = any(offset.offset_ns for offset in self.offsets.values())
        viewed = (tuple(segment.file for segment in sealer.manifest.segments), is_moved)
        if viewed == self._viewed:
            return
        self._viewed = viewed
        for name in TABLES:
            self._run(f"CREATE OR REPLACE VIEW raw_{name} AS {self._raw_sql(name)}")
        for name in VIEWS:
            sql = view_sql(name, self.dialect, is_moved=is_moved)
            self._run(f"CREATE OR REPLACE VIEW {name} AS {sql}")

    def _register(self, name: str, table: pa.Table) -> None:
        self._connection.register(name, table)

    def _raw_sql(self, name: str) -> str:
        segments = [s for s in self._sealer.manifest.segments if s.table == name]
        columns = ", ".join(f'"{column}"' for column in TABLES[name].names)
        parts = [f"SELECT {columns} FROM tail_{name}"]  # noqa: S608
        if name == "spans":
            parts.append(f"SELECT {columns} FROM open_spans")  # noqa: S608
        if segments:
            parts.insert(0, self._sealed_sql(name, segments))
        return " UNION ALL ".join(parts)

    def _sealed_sql(self, name: str, segments: list[Segment]) -> str:
        assert self._sealer.shelf is not None  # noqa: S101  (segments lie on a shelf)
        folder = self._sealer.shelf.folder
        files = ", ".join(_quote(str(folder / segment.file)) for segment in segments)
        older = any(segment.schema < segments[-1].schema for segment in segments)
        source = f"read_parquet([{files}], union_by_name = {str(older).lower()})"
        columns = ", ".join(f'"{column}"' for column in TABLES[name].names)
        return f"SELECT {columns} FROM {source}"  # noqa: S608

    def explain(self, sql: str, **values: Any) -> str:
        """Say how a query would be run."""
        with self._lock:
            rows = self._run(f"EXPLAIN ANALYZE {sql}", values).fetchall()
        return "\n".join(str(row[-1]) for row in rows)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
