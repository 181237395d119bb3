"""The tables of the shared store: those of a run, for many runs, and what feeding remembers.

They are made from `schema` and `processes`, so a column is named once. Every row carries its run
and a version: of rows with one identity, which is what a table is ordered by, the highest version
counts. So a row may be sent again and an open span may end, and nothing has to be deleted.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
import pyarrow as pa

from rollscope.errors import StoreError
from rollscope.store.clickhouse.transport import Transport
from rollscope.store.processes import DROPS, PROCESSES
from rollscope.store.schema import TABLES

__all__ = [
    "FED",
    "ROW_TABLES",
    "RUNS",
    "TABLE_SCHEMA",
    "check_schema",
    "create_statements",
    "create_tables",
    "local_table",
]

TABLE_SCHEMA: Final = 1
"""Raised when a table changes so that older readers or feeders would go wrong."""

RUNS: Final = "runs"
"""One row a run: when it was first and last fed, and the time its open spans are shown at."""
FED: Final = "rollscope_fed"
"""The segments that are in, by run and file."""
_SCHEMA_TABLE: Final = "rollscope_schema"

_KEPT_TOKENS: Final = 10_000
"""How many inserts back a token is remembered by a table without replicas."""


class _Layout(msgspec.Struct, frozen=True):
    """How one table lies on disk."""

    columns: pa.Schema
    identity: tuple[str, ...]
    """Of a row within its run; the order of rows on disk."""
    time: str | None = None
    """What days are told by."""
    skip: tuple[str, ...] = ()
    """Columns whose neighbours are close though they do not order the table: a range of each is
    kept for every few thousand rows, and rows out of the asked range are not read. Only columns
    that are the same in every version of a row: of the others an old version could be found where
    the new one is not looked at."""
    nulls: frozenset[str] | None = None
    """Columns that may be null; all that are not in `_ALWAYS` if not given."""


_ALWAYS: Final = frozenset(
    {
        *("process", "trace_id", "span_id", "event_id", "kind", "name", "type", "status"),
        *("start_ns", "time_ns", "number", "path", "parent_path", "overlap_ns"),
        *("attrs", "facts", "labels", "buckets", "frames"),
    }
)
"""What every row of a run has."""

ROW_TABLES: Final[dict[str, _Layout]] = {
    # Span ids of a process count up, so this is nearly the order of starts as well. The start is
    # not in it: where a clock is corrected later, a span would end as another row than it began.
    "spans": _Layout(
        TABLES["spans"],
        ("kind", "process", "span_id"),
        "start_ns",
        ("start_ns", "span_id", "session_id", "step"),
    ),
    "events": _Layout(
        TABLES["events"], ("process", "event_id"), "time_ns", ("time_ns", "session_id", "step")
    ),
    "facts": _Layout(TABLES["facts"], ("span_id", "process", "number"), "time_ns", ("time_ns",)),
    "metrics": _Layout(
        TABLES["metrics"],
        ("name", "process", "time_ns", "sipHash64(type, labels)"),
        "time_ns",
        ("time_ns",),
    ),
    "stacks": _Layout(
        TABLES["stacks"],
        ("span_id", "process", "time_ns", "sipHash64(ifNull(task, ''), frames)"),
        "time_ns",
        ("time_ns",),
    ),
    "processes": _Layout(
        PROCESSES, ("process",), nulls=frozenset({"rank", "parent", "offset_error_ns"})
    ),
    "drops": _Layout(DROPS, ("process", "what"), nulls=frozenset()),
}
"""The tables that hold the rows of runs, by name."""

_TYPES: Final = {
    pa.uint64(): "UInt64",
    pa.int64(): "Int64",
    pa.float64(): "Float64",
    pa.string(): "String",
    pa.binary(16): "FixedString(16)",
}
_CODECS: Final = {
    **dict.fromkeys(("process", "trace_id"), "ZSTD(1)"),
    **dict.fromkeys(("span_id", "event_id", "parent_id", "session_id"), "Delta(8), ZSTD(1)"),
    **dict.fromkeys(("start_ns", "end_ns", "time_ns"), "T64, ZSTD(1)"),
    "number": "DoubleDelta, ZSTD(1)",
}
"""Neighbours have close ids and times. Ids mostly count up, so their differences are small; times
scatter, and T64, which leaves out the bits that 64 neighbours share, takes a tenth less for them
than differences do."""


def create_tables(transport: Transport, *, ttl_days: int | None = None, cluster: str = "") -> None:
    """Make the database and its tables where they are missing, and add columns that are new.

    Args:
        transport: The way to the server; its user must be allowed to create tables.
        ttl_days: After how many days rows are deleted; never if not given. Counts for tables that
            are made now.
        cluster: The cluster to make them on, as the server's configuration names it.

    Raises:
        StoreError: The tables were made by a newer Rollscope.
    """
    transport.command(f"CREATE DATABASE IF NOT EXISTS {transport.database}{_on(cluster)}")
    transport.command(_schema_statement(transport.database, cluster))
    check_schema(transport)
    for statement in create_statements(transport.database, ttl_days=ttl_days, cluster=cluster):
        transport.command(statement)
    for statement in _missing_columns(transport, cluster):
        transport.command(statement)
    transport.insert(_SCHEMA_TABLE, pa.table({"version": pa.array([TABLE_SCHEMA], pa.uint64())}))


def check_schema(transport: Transport) -> None:
    """Refuse tables that this version would read or feed wrongly.

    Raises:
        StoreError: They were made by a newer Rollscope.
    """
    found = transport.query(
        f"SELECT max(version) AS version FROM {transport.database}.{_SCHEMA_TABLE}"
    )
    version = found["version"][0].as_py() or 0
    if version > TABLE_SCHEMA:
        raise StoreError(
            f"the tables in {transport.database} have schema {version}, this version knows up to "
            f"{TABLE_SCHEMA}; upgrade rollscope to use them"
        )


def create_statements(
    database: str, *, ttl_days: int | None = None, cluster: str = ""
) -> Iterator[str]:
    """Give the statements that make the tables, for those who would rather run them themselves."""
    for name, layout in ROW_TABLES.items():
        lines = ["run LowCardinality(String)"]
        lines += [f"`{f.name}` {_type_of(f, layout)}{_codec(f)}" for f in layout.columns]
        lines.append("row_version UInt64 CODEC(ZSTD(1))")
        lines += [f"INDEX by_{c} `{c}` TYPE minmax GRANULARITY 1" for c in layout.skip]
        yield from _statements(database, name, lines, layout, ttl_days, cluster)
    runs = ["run String", "first_ns Int64", "now_ns Int64", "row_version UInt64"]
    yield from _statements(database, RUNS, runs, _Layout(pa.schema([]), ()), None, cluster)
    fed = ["run String", "segment String", "rows UInt64", "row_version UInt64"]
    yield from _statements(database, FED, fed, _Layout(pa.schema([]), ("segment",)), None, cluster)


def local_table(database: str, name: str, cluster: str) -> str:
    """Name the table that holds the rows themselves, for statements that change it."""
    return f"{database}.{name}_local{_on(cluster)}" if cluster else f"{database}.{name}"


def _statements(
    database: str,
    name: str,
    lines: list[str],
    layout: _Layout,
    ttl_days: int | None,
    cluster: str,
) -> Iterator[str]:
    local = f"{name}_local" if cluster else name
    body = ",\n    ".join(lines)
    engine = "ReplicatedReplacingMergeTree" if cluster else "ReplacingMergeTree"
    clauses = [
        f"CREATE TABLE IF NOT EXISTS {local_table(database, name, cluster)} (\n    {body}\n)",
        f"ENGINE = {engine}(row_version)",
    ]
    if layout.time is not None:
        clauses.append(f"PARTITION BY toDate(fromUnixTimestamp64Nano({layout.time}, 'UTC'))")
    clauses.append(f"ORDER BY ({', '.join(('run', *layout.identity))})")
    if ttl_days is not None and (time := layout.time or _last_seen(layout)):
        seconds = f"toDateTime(intDiv({time}, 1000000000), 'UTC')"
        clauses.append(f"TTL {seconds} + INTERVAL {int(ttl_days)} DAY")
    settings = [] if cluster else [f"non_replicated_deduplication_window = {_KEPT_TOKENS}"]
    if ttl_days is not None and layout.time is not None:
        settings.append("ttl_only_drop_parts = 1")  # a part is of one day, so nothing is rewritten
    if settings:
        clauses.append(f"SETTINGS {', '.join(settings)}")
    yield "\n".join(clauses)
    if cluster:
        # Rows of one identity have to meet on one shard; each has a process, or is of a whole run.
        key = "process" if "process" in layout.columns.names else "run"
        yield (
            f"CREATE TABLE IF NOT EXISTS {database}.{name}{_on(cluster)} AS {database}.{local}\n"
            f"ENGINE = Distributed({_quoted(cluster)}, {database}, {local}, sipHash64({key}))"
        )


def _last_seen(layout: _Layout) -> str | None:
    return "last_seen_ns" if "last_seen_ns" in layout.columns.names else None


def _schema_statement(database: str, cluster: str) -> str:
    engine = "ReplicatedMergeTree" if cluster else "MergeTree"
    return (
        f"CREATE TABLE IF NOT EXISTS {database}.{_SCHEMA_TABLE}{_on(cluster)} (version UInt64)\n"
        f"ENGINE = {engine} ORDER BY version"
    )


def _missing_columns(transport: Transport, cluster: str) -> Iterator[str]:
    """Give what adds the columns that tables made by an older version lack."""
    found = transport.query(
        "SELECT table, name FROM system.columns WHERE database = $database",
        {"database": transport.database},
    )
    known = {(row["table"], row["name"]) for row in found.to_pylist()}
    suffixes = ("_local", "") if cluster else ("",)
    for name, layout in ROW_TABLES.items():
        for field in layout.columns:
            for suffix in suffixes:
                if (name + suffix, field.name) not in known:
                    codec = "" if cluster and not suffix else _codec(field)
                    yield (
                        f"ALTER TABLE {transport.database}.{name}{suffix}{_on(cluster)} ADD COLUMN "
                        f"IF NOT EXISTS `{field.name}` {_type_of(field, layout)}{codec}"
                    )


def _type_of(field: pa.Field, layout: _Layout) -> str:
    nulls = layout.nulls
    is_nullable = field.name not in _ALWAYS if nulls is None else field.name in nulls
    is_word = pa.types.is_dictionary(field.type)
    name = _TYPES[field.type.value_type if is_word else field.type]
    if is_nullable:
        name = f"Nullable({name})"
    return f"LowCardinality({name})" if is_word else name


def _codec(field: pa.Field) -> str:
    return f" CODEC({_CODECS.get(field.name, 'ZSTD(1)')})"


def _on(cluster: str) -> str:
    """Give the clause that makes a statement run on all of a cluster."""
    return f" ON CLUSTER {_quoted(cluster)}" if cluster else ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
