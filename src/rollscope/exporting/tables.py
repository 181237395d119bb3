"""A run as tables for notebooks and databases: which there are, and their columns.

Every table is one query over the run; `tables_writing` copies its answer into a file.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from rollscope.errors import CommandError
from rollscope.exporting.picking import Steps, within
from rollscope.exporting.scratch import Scratch
from rollscope.exporting.tables_lanes import make_lanes
from rollscope.exporting.tables_sessions import SESSION_COLUMNS, hex_sql, make_sessions
from rollscope.exporting.tables_steps import make_steps
from rollscope.store.dialect import DUCKDB
from rollscope.store.embedded import RunStore
from rollscope.store.rawsql import quote

__all__ = ["TABLES", "TableQuery", "check_tables", "table_query"]

_SPAN_COLUMNS: Final = f"""
    task_key, {hex_sql("session_id")} AS session, kind, name, category,
    {hex_sql("span_id")} AS span_id, {hex_sql("parent_id")} AS parent_id, lane, start_ns,
    CASE WHEN status = 'open' THEN NULL ELSE end_ns END AS end_ns,
    CASE WHEN status = 'open' THEN NULL ELSE duration_ns END AS duration_ns, status,
    coalesce({DUCKDB.json_text("attrs", "'error.type'")}, CASE WHEN status = 'error'
        THEN nullif(regexp_extract(reason, '^([A-Za-z_][\\w.]*): ', 1), '') END) AS error_type,
    CAST(attrs AS JSON) AS attributes"""
_EVENT_COLUMNS: Final = f"""
    {hex_sql("session_id")} AS session, {hex_sql("event_id")} AS event_id,
    {hex_sql("parent_id")} AS parent_id, name, time_ns, step, CAST(attrs AS JSON) AS attributes"""
_METRIC_COLUMNS: Final = """
    p.role, CAST(p.rank AS INTEGER) AS rank, m.type, m.name, CAST(m.labels AS JSON) AS labels,
    m.time_ns, m.value, m.count, m.min, m.max, CAST(m.buckets AS JSON) AS buckets, m.step"""


def _sessions(scratch: Scratch, store: RunStore, steps: Steps | None) -> str:
    make_sessions(scratch, steps)
    columns = ", ".join(
        f'CAST({value} AS {kind}) AS "{name}"' for name, (value, kind) in SESSION_COLUMNS.items()
    )
    return f"SELECT {columns} FROM export.sessions"


def _phases(scratch: Scratch, store: RunStore, steps: Steps | None) -> str:
    where = f"kind = 'phase' AND {within(steps, 'step')}"
    return f"SELECT {_SPAN_COLUMNS} FROM spans WHERE {where}"


def _spans(scratch: Scratch, store: RunStore, steps: Steps | None) -> str:
    where = f"kind NOT IN ('session', 'phase') AND {within(steps, 'step')}"
    return f"SELECT {_SPAN_COLUMNS} FROM spans WHERE {where}"


def _events(scratch: Scratch, store: RunStore, steps: Steps | None) -> str:
    where = within(steps, "step")
    return f"SELECT {_EVENT_COLUMNS} FROM events WHERE {where}"


def _lanes(scratch: Scratch, store: RunStore, steps: Steps | None) -> str:
    make_lanes(scratch, steps)
    return "SELECT * FROM export.lanes"


def _steps(scratch: Scratch, store: RunStore, steps: Steps | None) -> str:
    make_steps(scratch, store, steps)
    return "SELECT * FROM export.steps"


def _metrics(scratch: Scratch, store: RunStore, steps: Steps | None) -> str:
    return f"""
        SELECT {_METRIC_COLUMNS} FROM metrics AS m LEFT JOIN processes AS p USING (process)
        WHERE {within(steps, "m.step")}"""


_ORDERS: Final = {
    "sessions": "start_ns, session",
    "lanes": "lane, start_ns, depth, state",
    "steps": "step",
}
"""Sorting millions of wide rows takes more memory than an export may have: the other tables come as
the store keeps them."""
TABLES: Final[dict[str, Callable[[Scratch, RunStore, Steps | None], str]]] = {
    "sessions": _sessions,
    "phases": _phases,
    "spans": _spans,
    "events": _events,
    "lanes": _lanes,
    "steps": _steps,
    "metrics": _metrics,
}
"""Each prepares what it needs and gives its query."""


def check_tables(names: Iterable[str]) -> list[str]:
    """See that there are such tables; give them in their order, each once.

    Raises:
        CommandError: There is no such table.
    """
    chosen = set(names)
    unknown = sorted(chosen - TABLES.keys())
    if unknown or not chosen:
        known = ", ".join(TABLES)
        raise CommandError(f"there is no table {', '.join(unknown) or 'named'}; one of {known}", 2)
    return [name for name in TABLES if name in chosen]


class TableQuery(NamedTuple):
    """The rows of a table, and by which of its columns they are sorted, if they are."""

    select: str
    order: str | None


def table_query(
    name: str, scratch: Scratch, store: RunStore, steps: Steps | None = None
) -> TableQuery:
    """Prepare a table and give the query for its rows; the run is the first column."""
    query = TABLES[name](scratch, store, steps)
    run = quote(store.path.resolve().name.removesuffix(".rsl"))
    select = f"SELECT CAST({run} AS VARCHAR) AS run, * FROM ({query}) AS told"
    return TableQuery(select, _ORDERS.get(name))
