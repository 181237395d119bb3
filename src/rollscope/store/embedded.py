"""The embedded store: one run, read with DuckDB over sealed segments and the fresh tail."""

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import duckdb
import pyarrow as pa

from rollscope.errors import QueryError, StoreError
from rollscope.store.clocks import Offset
from rollscope.store.dialect import DUCKDB, Dialect, Value
from rollscope.store.holding import Holding
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
        memory_mb: int = 600,
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
        spill = Path(tempfile.gettempdir(), f"rollscope-{os.getpid()}")  # made when it is needed
        self._run(f"SET temp_directory = {_quote(str(spill))}")
        self._run("SET preserve_insertion_order = false")
        self._run("SET parquet_metadata_cache = true")
        if threads is not None:
            self._run(f"SET threads = {int(threads)}")
        self._viewed: tuple[object, ...] = ()
        self._holding: Holding | None = None
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
            self._sealer.finish()
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
            self._release()
            found = self._sealer.poll(progress)
            self.now_ns = self._fixed_now_ns or time.time_ns()
            self._show()
            return found

    def seal(self) -> bool:
        """Write what is in memory to disk; False if that is not possible now."""
        with self._lock:
            self._release()
            done = self._sealer.seal()
            self._sealer.poll()  # another reader may have been faster, and ours start anew
            self._show()
            return done

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the run as it is now in memory, for many questions; until the next refresh."""
        with self._lock:
            self._holding = self._holding or Holding(self._connection, self._moved_processes())
            self.dialect = self._holding.dialect
        try:
            yield
        finally:
            with self._lock:
                self._release()

    def _release(self) -> None:
        if self._holding is not None:
            self._holding.release()
            self._holding, self.dialect = None, DUCKDB

    def interrupt(self) -> None:
        """Stop the query that is running, if there is one; from another thread."""
        with suppress(duckdb.ConnectionException):  # it is closed already
            self._connection.interrupt()

    def query(self, sql: str, **values: Value) -> pa.Table:
        """Run a query of ours over the views.

        Raises:
            QueryError: It makes no sense, the message is DuckDB's; or it was interrupted.
            StoreError: It cannot be answered, because files of the run are damaged.
        """
        with self._lock:
            try:
                return self._ask(sql, values)
            except (
                duckdb.ParserException,
                duckdb.BinderException,
                duckdb.CatalogException,
            ) as error:
                raise QueryError(str(error)) from error
            except duckdb.InterruptException:
                raise QueryError("the query took too long and was stopped") from None
            except duckdb.Error as error:
                if not self._drop_damaged():
                    raise StoreError(f"the run {self.path} cannot be read: {error}") from error
                return self._ask(sql, values)

    def _ask(self, sql: str, values: dict[str, Value]) -> pa.Table:
        known = self._holding.get(sql, values) if self._holding else None
        if known is not None:
            return known
        found = _narrow(self._connection.sql(sql, params=values or None).to_arrow_table())
        if self._holding:
            self._holding.put(sql, values, found)
        return found

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
        self.offsets = self._sealer.offsets()
        tables = self._tables()
        for name, table in tables.items():
            self._connection.register(name, table)
        in_memory = frozenset(name for name, table in tables.items() if table.num_rows)
        viewed = (self._files(), self._moved_processes(), in_memory)
        if viewed == self._viewed:
            return
        try:
            self._create_views(self._connection, in_memory)
            self._viewed = viewed
        except duckdb.Error as error:
            self._viewed = ()
            shelf = self._sealer.shelf
            if shelf is not None and shelf.newest() > self._sealer.manifest.number:
                # Somebody has removed files meanwhile; the newest manifest says what there is now.
                self._sealer.poll()
                self._show()
            elif not self._drop_damaged():
                raise StoreError(f"the run {self.path} cannot be read: {error}") from error

    def show_in(self, connection: duckdb.DuckDBPyConnection) -> tuple[Path, ...]:
        """Show the run as it is now in a connection of the caller's; give the files it reads."""
        with self._lock:
            tables = self._tables()
            for name, table in tables.items():
                connection.register(name, table)
            in_memory = frozenset(name for name, table in tables.items() if table.num_rows)
            self._create_views(connection, in_memory)
            return self._files()

    def _tables(self) -> dict[str, pa.Table]:
        """Give what is in memory."""
        intake = self._sealer.intake
        return {
            "processes": process_table(intake, self.now_ns, self.offsets),
            "drops": drop_table(intake),
            **{f"tail_{name}": self._sealer.tail_table(name) for name in TABLES},
            "open_spans": intake.open_rows(self.now_ns, self.offsets),
        }

    def _files(self) -> tuple[Path, ...]:
        shelf = self._sealer.shelf
        if shelf is None:
            return ()
        return tuple(shelf.folder / segment.file for segment in self._sealer.manifest.segments)

    def _moved_processes(self) -> dict[int, int]:
        """Give by how much the times of processes are moved, for those that are."""
        return {
            process: self.offsets[host].offset_ns
            for process, host in self._sealer.intake.host_of.items()
            if host in self.offsets
        }

    def _create_views(
        self, connection: duckdb.DuckDBPyConnection, in_memory: frozenset[str]
    ) -> None:
        for name in TABLES:
            sql = self._raw_sql(name, in_memory)
            connection.execute(f"CREATE OR REPLACE VIEW raw_{name} AS {sql}")
        moved = self._moved_processes()
        for name in VIEWS:
            sql = view_sql(name, self.dialect, moved)
            connection.execute(f"CREATE OR REPLACE VIEW {name} AS {sql}")

    def _raw_sql(self, name: str, in_memory: frozenset[str]) -> str:
        """Read a table; what is empty is left out, for every part costs every query."""
        segments = [s for s in self._sealer.manifest.segments if s.table == name]
        columns = ", ".join(f'"{column}"' for column in TABLES[name].names)
        tails = [f"tail_{name}", *(["open_spans"] if name == "spans" else [])]
        shown = [tail for tail in tails if tail in in_memory]
        if not segments and not shown:
            shown = tails[:1]
        parts = [self._sealed_sql(name, segments)] if segments else []
        parts += [f"SELECT {columns} FROM {tail}" for tail in shown]
        return " UNION ALL ".join(parts)

    def _sealed_sql(self, name: str, segments: list[Segment]) -> str:
        """Read segments; those that have the same columns together."""
        assert self._sealer.shelf is not None  # noqa: S101  (segments lie on a shelf)
        folder = self._sealer.shelf.folder
        alike: dict[frozenset[str], list[str]] = {}
        for segment in segments:
            files = alike.setdefault(frozenset(segment.columns), [])
            files.append(_quote(str(folder / segment.file)))
        return " UNION ALL ".join(
            f"SELECT {_present(name, columns)} FROM read_parquet([{', '.join(files)}])"
            for columns, files in alike.items()
        )


def _narrow(table: pa.Table) -> pa.Table:
    """Give sums as 64-bit numbers: DuckDB adds whole numbers up in 128 bits, which few can read."""
    for place, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            with suppress(pa.ArrowInvalid):  # one that does not fit stays as it is
                table = table.set_column(place, field.name, table[field.name].cast(pa.int64()))
    return table


def _present(name: str, columns: frozenset[str]) -> str:
    """List the columns of a table, null for those that a segment does not have."""
    known = TABLES[name].names
    return ", ".join(f'"{one}"' if one in columns else f'NULL AS "{one}"' for one in known)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
