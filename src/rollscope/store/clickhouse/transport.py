"""How statements and rows get to ClickHouse: over HTTP, or to the engine inside this process.

Values are bound as parameters, in both; nothing that a program recorded becomes part of SQL.
"""

import gzip
import http.client
import re
import ssl
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Protocol, Self
from urllib.parse import unquote, urlencode, urlsplit

import pyarrow as pa

from rollscope.errors import MissingExtra, QueryError, SettingError, StoreError
from rollscope.store.dialect import Value, bind_clickhouse, clickhouse_text

__all__ = ["ChdbTransport", "HttpTransport", "Transport"]

_DATABASE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_TOKEN: Final = re.compile(r"[0-9a-f]*")
_MOST_ERROR_CHARACTERS: Final = 2_000
_MOST_ITEMS: Final = 2_000
"""Of one parameter: the server takes no more than 128 KiB of each, and 1 MiB of all, over HTTP."""
_GZIP_LEVEL: Final = 1
"""Rows are mostly numbers: higher levels take three times as long for a few percent."""

_SETTINGS: Final[dict[str, str]] = {
    "join_use_nulls": "1",
    "aggregate_functions_null_for_empty": "1",
    "cast_keep_nullable": "1",
    "group_by_use_nulls": "1",
    "prefer_column_name_to_alias": "1",
    "union_default_mode": "DISTINCT",
    "output_format_arrow_string_as_string": "1",
    "output_format_arrow_low_cardinality_as_dictionary": "0",
    # Ranges are kept of columns that no version of a row changes, so there is no need to look for
    # further versions: that would read half of a table where a hundredth will do.
    "use_skip_indexes_if_final": "1",
    "use_skip_indexes_if_final_exact_mode": "0",
    # What a feed was told is in must not still lie in a queue between shards.
    "insert_distributed_sync": "1",
    # A process whose clock was set by years may touch more days in one batch than the usual 100.
    "max_partitions_per_insert_block": "10000",
}
"""Nulls and names as DuckDB has them, and how to read and to insert; known since version 25.5."""


class Transport(Protocol):
    """A way to one database of a ClickHouse server."""

    @property
    def database(self) -> str:
        """The database that holds our tables, safe to write into SQL."""

    def query(self, sql: str, values: Mapping[str, Value] | None = None) -> pa.Table:
        """Ask, values bound by name as `$name`."""

    def insert(self, table: str, rows: pa.Table, *, token: str = "") -> None:
        """Add rows to a table of ours; the same token twice adds them once."""

    def command(self, sql: str, values: Mapping[str, Value] | None = None) -> None:
        """Run a statement that gives nothing back."""


class HttpTransport:
    """Talks to a server's HTTP interface; a connection is made for each request."""

    def __init__(
        self,
        url: str,
        *,
        database: str = "rollscope",
        user: str = "",
        password: str = "",
        timeout_s: float = 60.0,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """Name a server; nothing is sent yet.

        Args:
            url: Such as `https://clickhouse.example:8443`; user and password may stand in it.
            database: Where our tables are.
            user: Who asks.
            password: Sent in a header, never in an address.
            timeout_s: How long to wait for the server, to connect and for each piece it sends.
            context: How to check the server's certificate; as the system does if not given.

        Raises:
            SettingError: The address or the database cannot be used.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            shown = url.rpartition("@")[2]
            raise SettingError(f"{shown!r} is no address of ClickHouse; write http://host:8123")
        self.database = _checked_database(database)
        self._is_secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or (8443 if self._is_secure else 8123)
        self._path = parts.path or "/"
        self._timeout_s = timeout_s
        self._context = context
        user = user or unquote(parts.username or "")
        password = password or unquote(parts.password or "")
        if not (user + password).isprintable():
            raise SettingError("user and password of ClickHouse may hold no control characters")
        # As bytes, since text would be sent as Latin-1 and ClickHouse reads UTF-8.
        self._headers = {"X-ClickHouse-User": user.encode(), "X-ClickHouse-Key": password.encode()}
        if not user:
            self._headers = {}

    @property
    def address(self) -> str:
        """Where the server is, without who asks."""
        return f"{'https' if self._is_secure else 'http'}://{self._host}:{self._port}"

    def query(self, sql: str, values: Mapping[str, Value] | None = None) -> pa.Table:
        """Ask, values bound by name as `$name`.

        Raises:
            QueryError: ClickHouse refuses; the message is ClickHouse's.
            StoreError: The server cannot be reached.
        """
        # Held back until it is complete, an answer is either whole or an error.
        options = {"default_format": "ArrowStream", "wait_end_of_query": "1"}
        bound, texts = _bind(sql, values)
        return _read_arrow(self._send(bound.encode(), options, texts))

    def insert(self, table: str, rows: pa.Table, *, token: str = "") -> None:
        """Add rows to a table of ours; the same token twice adds them once.

        Raises:
            QueryError: ClickHouse refuses; the message is ClickHouse's.
            StoreError: The server cannot be reached.
        """
        statement = f"{_insert_sql(self.database, table, rows)} FORMAT ArrowStream"
        options = {"query": statement, "wait_end_of_query": "1"}
        if token:
            options["insert_deduplication_token"] = _checked_token(token)
        body = gzip.compress(_write_arrow(rows), _GZIP_LEVEL)
        self._send(body, options, headers={"Content-Encoding": b"gzip"})

    def command(self, sql: str, values: Mapping[str, Value] | None = None) -> None:
        """Run a statement that gives nothing back.

        Raises:
            QueryError: ClickHouse refuses; the message is ClickHouse's.
            StoreError: The server cannot be reached.
        """
        bound, texts = _bind(sql, values)
        self._send(bound.encode(), {"wait_end_of_query": "1"}, texts)

    def _send(
        self,
        body: bytes,
        options: Mapping[str, str],
        texts: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, bytes] | None = None,
    ) -> bytes:
        connection = self._connect()
        parameters = {f"param_{name}": text for name, text in (texts or {}).items()}
        target = f"{self._path}?{urlencode({**_SETTINGS, **options, **parameters})}"
        try:
            connection.request("POST", target, body, {**self._headers, **(headers or {})})
            answer = connection.getresponse()
            content = answer.read()
        except TimeoutError:
            raise StoreError(
                f"ClickHouse at {self.address} did not answer within {self._timeout_s:g} s"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise StoreError(
                f"ClickHouse at {self.address} cannot be reached: {error or type(error).__name__}; "
                "check the address, and that its HTTP port is open"
            ) from error
        finally:
            connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise QueryError(
                f"ClickHouse at {self.address} answered {answer.status}: {_error_text(content)}"
            )
        return content

    def _connect(self) -> http.client.HTTPConnection:
        if self._is_secure:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout_s, context=self._context
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)


class ChdbTransport:
    """The ClickHouse engine inside this process, from the package chdb; one folder per process."""

    def __init__(self, path: str = "", *, database: str = "rollscope") -> None:
        """Open the engine.

        Args:
            path: The folder it keeps its tables in; if empty, one that is gone with it.
            database: Where our tables are.

        Raises:
            MissingExtra: chdb is not installed.
        """
        try:
            from chdb import session
        except ImportError as error:
            raise MissingExtra(
                "the ClickHouse engine is not installed; install it with `pip install chdb`"
            ) from error
        self.database = _checked_database(database)
        self._lock = threading.Lock()
        make: Any = session.Session  # chdb has no types
        self._session = make(path or None)
        for name, value in _SETTINGS.items():
            self.command(f"SET {name} = '{value}'")

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
        """Close the engine."""
        with self._lock:
            self._session.close()

    def query(self, sql: str, values: Mapping[str, Value] | None = None) -> pa.Table:
        """Ask, values bound by name as `$name`.

        Raises:
            QueryError: ClickHouse refuses; the message is ClickHouse's.
        """
        return _read_arrow(self.run_bound(*_bind(sql, values)))

    def insert(self, table: str, rows: pa.Table, *, token: str = "") -> None:
        """Add rows to a table of ours; the same token twice adds them once.

        Raises:
            QueryError: ClickHouse refuses; the message is ClickHouse's.
        """
        statement = _insert_sql(self.database, table, rows)
        if token:
            statement += f" SETTINGS insert_deduplication_token = '{_checked_token(token)}'"
        self.insert_stream(statement, _write_arrow(rows))

    def insert_stream(self, statement: str, stream: bytes) -> None:
        """Add rows that are an Arrow stream already.

        Raises:
            QueryError: ClickHouse refuses; the message is ClickHouse's.
        """
        with self._lock:
            try:
                with self._session.send_insert(statement, "ArrowStream") as inserter:
                    inserter.append(stream)
                    inserter.finish()
            except RuntimeError as error:
                raise QueryError(_error_text(str(error).encode())) from error

    def command(self, sql: str, values: Mapping[str, Value] | None = None) -> None:
        """Run a statement that gives nothing back.

        Raises:
            QueryError: ClickHouse refuses; the message is ClickHouse's.
        """
        self.run_bound(*_bind(sql, values))

    def run_bound(self, sql: str, texts: Mapping[str, str]) -> bytes:
        """Run a statement whose values are bound already; give the answer as an Arrow stream.

        Raises:
            QueryError: ClickHouse refuses; the message is ClickHouse's.
        """
        with self._lock:
            try:
                answer: bytes = self._session.query(sql, "ArrowStream", params=dict(texts)).bytes()
            except RuntimeError as error:
                raise QueryError(_error_text(str(error).encode())) from error
        return answer


def _bind(sql: str, values: Mapping[str, Value] | None) -> tuple[str, dict[str, str]]:
    """Give the statement with typed placeholders, and the values as text."""
    bound = dict(values or {})
    for name, value in (values or {}).items():
        if isinstance(value, list) and len(value) > _MOST_ITEMS:
            pieces = _pieces(name, value)
            joined = f"arrayConcat({', '.join(f'${piece}' for piece in pieces)})"
            sql = re.sub(rf"\${name}\b", joined, sql)
            del bound[name]
            bound |= pieces
    texts = {name: clickhouse_text(value) for name, value in bound.items()}
    return bind_clickhouse(sql, bound), texts


def _pieces(name: str, items: list[Any]) -> dict[str, Value]:
    """Cut a list, whose items are all of one type, into parameters of their own."""
    starts = range(0, len(items), _MOST_ITEMS)
    return {f"{name}_{start}": items[start : start + _MOST_ITEMS] for start in starts}


def _checked_database(name: str) -> str:
    if not _DATABASE.fullmatch(name):
        raise SettingError(
            f"{name!r} is no name of a database; use letters, digits and underscores"
        )
    return name


def _checked_token(token: str) -> str:
    assert _TOKEN.fullmatch(token), token  # noqa: S101  (ours, and written into SQL)
    return token


def _insert_sql(database: str, table: str, rows: pa.Table) -> str:
    columns = ", ".join(f"`{name}`" for name in rows.column_names)
    return f"INSERT INTO {database}.{table} ({columns})"


def _write_arrow(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    stream: bytes = sink.getvalue().to_pybytes()
    return stream


def _read_arrow(content: bytes) -> pa.Table:
    if not content:
        return pa.table({})
    try:
        return pa.ipc.open_stream(content).read_all()
    except pa.ArrowException as error:
        raise StoreError(f"ClickHouse's answer is not Arrow: {_error_text(content)}") from error


def _error_text(content: bytes) -> str:
    text = content[: 4 * _MOST_ERROR_CHARACTERS].decode(errors="replace").strip()
    return text[:_MOST_ERROR_CHARACTERS] or "nothing"
