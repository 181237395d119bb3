"""Queries that people type: read-only, over one run, with no way to any other file.

A query runs on a connection of its own. Four walls, each of which would do alone for most queries:
only statements that read are let through, and only table functions that touch no file; the engine
may open the segments of the run and nothing else; it may load no extension and change no setting;
and every query runs in a read-only transaction.
"""

import re
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import duckdb
import msgspec
import pyarrow as pa

from rollscope.errors import QueryError
from rollscope.store.embedded import RunStore
from rollscope.store.views import VIEWS

__all__ = ["SHOWN", "Answer", "Prompt"]

SHOWN: Final = (*VIEWS, "processes", "drops")
"""What queries read; the tables below these views can be read too, but change without notice."""

_SAFE_FUNCTIONS: Final = frozenset(
    {
        *("generate_series", "range", "repeat", "repeat_row", "unnest", "summary"),
        *("json_each", "json_tree", "pg_timezone_names", "icu_calendar_names"),
        *("pragma_show", "pragma_table_info", "pragma_version"),
        *("duckdb_columns", "duckdb_functions", "duckdb_keywords", "duckdb_memory"),
        *("duckdb_schemas", "duckdb_settings", "duckdb_tables", "duckdb_types", "duckdb_views"),
    }
)
"""Others read files, write some (`enable_profiling`), or follow addresses in memory."""
_ALLOWED: Final = frozenset({"SELECT", "EXPLAIN"})
_EXPLAIN: Final = re.compile(rb"\s*explain\s*(analyze)?\s*(\([^()]*\))?\s*", re.IGNORECASE)
"""What may stand before the query that is explained, comments apart."""
_BATCH_ROWS: Final = 10_000
_INTERRUPT_EVERY_S: Final = 0.05
_MACROS: Final = (
    "CREATE MACRO id_text(number) AS lpad(lower(to_hex(number)), 16, '0')",
    "CREATE MACRO id(digits) AS CAST('0x' || digits AS UBIGINT)",
)


Tree = dict[str, Any] | list[Any] | str | int | float | bool | None
"""JSON, as the parser gives it."""


class Answer(msgspec.Struct):
    """What a query gave."""

    table: pa.Table
    is_cut: bool
    """Whether there were more rows than asked for."""


class Prompt:
    """A run that strangers may ask."""

    def __init__(
        self, store: RunStore, *, threads: int | None = None, memory_mb: int = 1024
    ) -> None:
        """Open a place for queries.

        Args:
            store: The run, which has to stay open meanwhile.
            threads: How many threads a query may use; all cores if not given.
            memory_mb: What a query may use before it goes to disk.
        """
        self._store = store
        self._threads = threads
        self._memory_mb = memory_mb
        self._folder = tempfile.TemporaryDirectory(prefix="rollscope-sql-")
        self._files: tuple[Path, ...] = ()
        self._connection = self._connect()

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
        """Leave; the store stays open."""
        self._connection.close()
        self._folder.cleanup()

    def refresh(self) -> None:
        """Let the next query see what the run has recorded since."""
        if self._store.refresh():
            self._reconnect()

    def _reconnect(self) -> None:
        self._connection.close()
        self._connection = self._connect()

    def _connect(self) -> duckdb.DuckDBPyConnection:
        config: dict[str, Any] = {  # as duckdb declares it
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "python_enable_replacements": "false",
            "preserve_insertion_order": "false",
            "memory_limit": f"{int(self._memory_mb)}MB",
            "temp_directory": self._folder.name,
        }
        if self._threads is not None:
            config["threads"] = int(self._threads)
        connection = duckdb.connect(":memory:", config=config)
        self._files = self._store.show_in(connection)
        for macro in _MACROS:
            connection.execute(macro)
        listed = ", ".join(_quote(file) for file in self._files)
        connection.execute(f"SET allowed_paths = [{listed}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection

    def ask(self, sql: str, *, max_rows: int | None = None) -> list[Answer]:
        """Run the statements of a text, one after the other.

        Args:
            sql: What was typed.
            max_rows: Give no more rows than this of each.

        Raises:
            QueryError: One of them cannot be run or is not allowed.
        """
        try:
            # What the command line could not decode in its locale is UTF-8 nearly always.
            sql = sql.encode(errors="surrogateescape").decode()
            statements = duckdb.extract_statements(sql)
        except UnicodeError:
            raise QueryError("the query is not valid UTF-8; save or type it as such") from None
        except duckdb.Error as error:
            raise _readable(error) from None
        for statement in statements:
            self._check(statement)
        return [self._run_or_retry(statement.query, max_rows) for statement in statements]

    def _check(self, statement: duckdb.Statement) -> None:
        kind = statement.type.name
        if kind not in _ALLOWED:
            word = statement.query.split(None, 1)[0].upper() if statement.query.strip() else kind
            raise QueryError(
                f"only queries that read are allowed, and {word[:20]} is none; write SELECT, WITH, "
                "DESCRIBE, SHOW, SUMMARIZE or EXPLAIN"
            )
        tree = self._parse(statement.query)
        if tree is None and kind == "EXPLAIN":
            tree = self._parse_explained(statement.query)
        if tree is None:
            raise QueryError("only SELECT can be explained")
        for name in _table_functions(tree):
            if name.lower() not in _SAFE_FUNCTIONS:
                raise QueryError(
                    f"the function {name} is not allowed here: queries read this run and nothing "
                    "else; SHOW TABLES lists what there is"
                )

    def _parse(self, sql: str) -> Tree | None:
        """Give the tree of a SELECT; None if it is another statement."""
        row = self._connection.execute("SELECT json_serialize_sql($1)", [sql]).fetchone()
        tree: dict[str, Any] = msgspec.json.decode(row[0]) if row else {"error": True}
        return None if tree["error"] else tree

    def _parse_explained(self, sql: str) -> Tree | None:
        """Give the tree of the query that is to be explained; None if it is no SELECT."""
        tokens = duckdb.tokenize(sql)
        data = sql.encode()
        ends = [offset for offset, _ in tokens[1:]] + [len(data)]
        before = b""
        for (start, kind), end in zip(tokens, ends, strict=True):
            if before and _EXPLAIN.fullmatch(before):
                tree = self._parse(data[start:].decode())
                if tree is not None:
                    return tree
            if kind != duckdb.token_type.comment:
                before += data[start:end]
        return None

    def _run_or_retry(self, sql: str, max_rows: int | None) -> Answer:
        try:
            return self._run(sql, max_rows)
        except QueryError:
            if all(file.exists() for file in self._files):
                raise
            # Somebody has merged segments meanwhile; the newest manifest names what to read now.
            self._store.refresh()
            self._reconnect()
            return self._run(sql, max_rows)

    def _run(self, sql: str, max_rows: int | None) -> Answer:
        try:
            self._connection.execute("BEGIN TRANSACTION READ ONLY")
            try:
                return self._interruptibly(sql, max_rows)
            finally:
                self._connection.execute("ROLLBACK")
        except duckdb.Error as error:
            raise _readable(error) from None

    def _interruptibly(self, sql: str, max_rows: int | None) -> Answer:
        """Run a query on a thread: the engine does not look for Ctrl-C, so we have to."""
        results: list[Answer | BaseException] = []
        is_done = threading.Event()

        def work() -> None:
            try:
                results.append(_fetch(self._connection, sql, max_rows))
            except BaseException as error:  # raised again below, on the caller's thread
                results.append(error)
            finally:
                is_done.set()

        thread = threading.Thread(target=work, name="sql", daemon=True)
        try:
            thread.start()
            is_done.wait()
        except BaseException:
            # Said again and again: before the query has begun, nobody listens.
            while thread.is_alive() and not is_done.wait(_INTERRUPT_EVERY_S):
                self._connection.interrupt()
            raise
        (result,) = results
        if isinstance(result, BaseException):
            raise result
        return result


def _fetch(connection: duckdb.DuckDBPyConnection, sql: str, max_rows: int | None) -> Answer:
    relation = connection.sql(sql)
    if relation is None:
        return Answer(pa.table({}), is_cut=False)
    if max_rows is None:
        return Answer(relation.to_arrow_table(), is_cut=False)
    reader = relation.to_arrow_reader(min(max_rows + 1, _BATCH_ROWS))
    batches: list[pa.RecordBatch] = []
    try:
        for batch in reader:
            batches.append(batch)
            if sum(each.num_rows for each in batches) > max_rows:
                break
        table = pa.Table.from_batches(batches, reader.schema)
    finally:
        reader.close()
    return Answer(table.slice(0, max_rows), is_cut=table.num_rows > max_rows)


def _table_functions(tree: Tree) -> Iterator[str]:
    """Give the names of all functions that a query reads from as if they were tables."""
    if isinstance(tree, list):
        for item in tree:
            yield from _table_functions(item)
    elif isinstance(tree, dict):
        if tree.get("type") == "TABLE_FUNCTION":
            yield str(tree["function"].get("function_name", ""))
        for value in tree.values():
            yield from _table_functions(value)


def _readable(error: duckdb.Error) -> QueryError:
    """Put the engine's message into words for whoever typed the query."""
    # It may quote what was recorded, which a terminal must not obey.
    text = "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
        for char in str(error).strip()
    )
    if isinstance(error, duckdb.OutOfMemoryException):
        text = f"the query needs too much memory; ask for fewer rows or columns ({text})"
    elif isinstance(error, duckdb.PermissionException):
        text = f"queries read this run and nothing else ({text})"
    elif isinstance(error, duckdb.IOException):
        text = f"{text}; `rollscope doctor` says whether files of the run are damaged"
    return QueryError(text)


def _quote(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
