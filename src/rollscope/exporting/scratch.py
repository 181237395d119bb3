"""A database for the moment: an export sorts on disk what would not fit into memory.

Everything is copied into it first, so that an export is of one moment of the run.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import duckdb
import pyarrow as pa

from rollscope.errors import StoreError
from rollscope.store.embedded import RunStore
from rollscope.store.rawsql import quote

__all__ = ["BATCH_ROWS", "Scratch"]

BATCH_ROWS: Final = 16_384
_MEMORY: Final = "500MB"


class Scratch:
    """Tables of an export, gone when it is closed."""

    def __init__(self, store: RunStore, *, threads: int | None = None) -> None:
        """Show the run beside an empty database.

        Args:
            store: The run, as far as it was read; it is not refreshed here.
            threads: How many threads a query may use; all cores if not given.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="rollscope-export-")
        place = Path(self._folder.name)
        self._connection = duckdb.connect(":memory:")
        with _told(store.path):
            self._connection.execute(f"SET memory_limit = '{_MEMORY}'")
            self._connection.execute(f"SET temp_directory = {quote(str(place / 'spill'))}")
            self._connection.execute("SET preserve_insertion_order = false")
            if threads is not None:
                self._connection.execute(f"SET threads = {int(threads)}")
            self._connection.execute(f"ATTACH {quote(str(place / 'export.duckdb'))} AS export")
            store.show_in(self._connection)
        self._path = store.path

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
        """Remove everything."""
        self._connection.close()
        self._folder.cleanup()

    def run(self, sql: str) -> None:
        """Make a table."""
        with _told(self._path):
            self._connection.execute(sql)

    def add(self, table: str, rows: pa.RecordBatch) -> None:
        """Add rows to a table, also while another is being read."""
        with _told(self._path), self._connection.cursor() as beside:
            beside.register("added", rows)
            beside.execute(f"INSERT INTO export.{table} SELECT * FROM added")

    def ask(self, sql: str) -> pa.Table:
        """Give a small answer whole."""
        with _told(self._path):
            return self._connection.sql(sql).to_arrow_table()

    def copy(self, sql: str, path: Path, how: str) -> int:
        """Write an answer to a file as the database does it; give the number of rows."""
        with _told(self._path):
            done = self._connection.execute(f"COPY ({sql}) TO {quote(str(path))} ({how})")
            row = done.fetchone()
        return int(row[0]) if row else 0

    def columns(self, sql: str) -> list[tuple[str, str]]:
        """Give names and types of an answer's columns."""
        with _told(self._path):
            answer = self._connection.sql(sql)
            return [
                (name, str(kind)) for name, kind in zip(answer.columns, answer.types, strict=True)
            ]

    def stream(self, sql: str) -> Iterator[list[tuple[object, ...]]]:
        """Give a large answer in batches of rows; of the tables of the export only."""
        with _told(self._path), self._connection.cursor() as beside:
            reader: pa.RecordBatchReader = beside.sql(sql).to_arrow_reader(BATCH_ROWS)
            for batch in reader:
                columns = [column.to_pylist() for column in batch.columns]
                yield list(zip(*columns, strict=True))


@contextmanager
def _told(run: Path) -> Iterator[None]:
    """Make a sentence of what the database complains about."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException) as error:
        raise StoreError(f"the run {run} cannot be exported: {error}") from error
