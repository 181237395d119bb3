"""The embedded store: one run, read with DuckDB over sealed segments and the fresh tail."""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

import duckdb
import pyarrow as pa

from rollscope.errors import QueryError, StoreError
from rollscope.store.clocks import Offset
from rollscope.store.dialect import DUCKDB, Dialect, Value
from rollscope.store.holding import Holding
from rollscope.store.hostclocks import RunClocks
from rollscope.store.lengths import Lengths, Measured
from rollscope.store.processes import drop_table, process_table
from rollscope.store.rawsql import quote, raw_sql
from rollscope.store.schema import TABLES, empty_table
from rollscope.store.sealer import Progress, Sealer, find_shelf
from rollscope.store.segments import Segment, is_sound
from rollscope.store.views import VIEWS, view_sql

__all__ = ["RunStore"]

T = TypeVar("T")

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
        self._run(f"SET temp_directory = {quote(str(spill))}")
        self._run("SET preserve_insertion_order = false")
        self._run("SET parquet_metadata_cache = true")
        if threads is not None:
            self._run(f"SET threads = {int(threads)}")
        self._viewed: tuple[object, ...] = ()
        self._in_memory: frozenset[str] = frozenset()
        self._lengths = Lengths(self._ask)
        self._holding: Holding | None = None
        self.clocks = RunClocks()
        self.open_rows = empty_table("spans")
        """Every span without an end as it looked at the last refresh."""
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
    def offsets(self) -> dict[str, Offset]:
        """How far hosts are moved by what the order of records says."""
        return self.clocks.hosts

    @property
    def sealer(self) -> Sealer:
        """What follows the run, for those who look after its files."""
        return self._sealer

    def refresh(self, progress: Progress | None = None, *, max_s: float | None = None) -> bool:
        """Take in what was added; say whether there was anything.

        Args:
            progress: Told how far that has come.
            max_s: Stop after about so long; `is_behind` says then that there is more.
        """
        with self._lock:
            self._release()
            found = self._sealer.poll(progress, max_s=max_s)
            snapshot_ns = self._sealer.intake.snapshot_ns()
            self.now_ns = self._fixed_now_ns or snapshot_ns or time.time_ns()
            self._show()
            return found

    @property
    def is_behind(self) -> bool:
        """Whether the last refresh ran out of time."""
        return self._sealer.intake.is_behind

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
            self._holding = self._holding or Holding(self._connection, self.clocks.corrections)
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
        return self._guarded(lambda: self._ask(sql, values))

    def rows_since(self, name: str, columns: Sequence[str], since_ns: int) -> str:
        """Give the SQL that reads what of a table may have ended since, on its processes' clocks.

        It names files: where one is gone when it is run, the next one names others.
        """
        with self._lock:
            late = [segment for segment in self._segments(name) if segment.high_ns >= since_ns]
            return f"({raw_sql(self._folder, name, late, self._in_memory, columns)})"

    def lengths(self, names: Collection[str], since_ns: int) -> Measured:
        """Measure how long spans of some names took that started since, and are not lost."""
        return self._guarded(
            lambda: self._lengths.measure(
                names,
                since_ns,
                folder=self._folder,
                segments=self._segments("spans"),
                corrections=self.clocks.corrections,
                has_tail="tail_spans" in self._in_memory,
            )
        )

    def _guarded(self, action: Callable[[], T]) -> T:
        """Do something that reads files, and once more if some of them turn out to be damaged."""
        with self._lock:
            try:
                return action()
            except (
                duckdb.ParserException,
                duckdb.BinderException,
                duckdb.CatalogException,
            ) as error:
                raise QueryError(str(error)) from error
            except duckdb.InterruptException:
                raise QueryError("the query took too long and was stopped") from None
            except duckdb.Error as error:
                if self._drop_damaged():
                    with suppress(duckdb.Error):  # it may name a file that was set aside
                        return action()
                raise StoreError(f"the run {self.path} cannot be read: {error}") from error

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
        self.clocks = self._sealer.clocks()
        self.open_rows = self._sealer.intake.open_rows(self.now_ns, self.clocks)
        self._in_memory = self._register(self._connection)
        viewed = (self._files(), self.clocks.corrections, self._in_memory)
        if viewed == self._viewed:
            return
        try:
            self._create_views(self._connection, self._in_memory)
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
            self._create_views(connection, self._register(connection))
            return self._files()

    def _register(self, connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
        """Show what is in memory; give the names of the tables that are not empty."""
        intake = self._sealer.intake
        tables: dict[str, pa.Table] = {
            "processes": process_table(intake, self.now_ns, self.clocks),
            "drops": drop_table(intake),
            **{f"tail_{name}": self._sealer.tail_table(name) for name in TABLES},
            "open_spans": self.open_rows,
        }
        for name, table in tables.items():
            connection.register(name, table)
        return frozenset(name for name, table in tables.items() if table.num_rows)

    def _files(self) -> tuple[Path, ...]:
        shelf = self._sealer.shelf
        if shelf is None:
            return ()
        return tuple(shelf.folder / segment.file for segment in self._sealer.manifest.segments)

    @property
    def _folder(self) -> Path:
        return self._sealer.shelf.folder if self._sealer.shelf else self.path

    def _segments(self, name: str) -> list[Segment]:
        return [s for s in self._sealer.manifest.segments if s.table == name]

    def _create_views(
        self, connection: duckdb.DuckDBPyConnection, in_memory: frozenset[str]
    ) -> None:
        for name in TABLES:
            sql = raw_sql(self._folder, name, self._segments(name), in_memory)
            connection.execute(f"CREATE OR REPLACE VIEW raw_{name} AS {sql}")
        corrections = self.clocks.corrections
        for name in VIEWS:
            sql = view_sql(name, self.dialect, corrections)
            connection.execute(f"CREATE OR REPLACE VIEW {name} AS {sql}")


def _narrow(table: pa.Table) -> pa.Table:
    """Give sums as 64-bit numbers: DuckDB adds whole numbers up in 128 bits, which few can read."""
    for place, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            with suppress(pa.ArrowInvalid):  # one that does not fit stays as it is
                table = table.set_column(place, field.name, table[field.name].cast(pa.int64()))
    return table
