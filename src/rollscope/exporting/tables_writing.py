"""Tables copied into Parquet and CSV files by the database, never whole in memory."""

from pathlib import Path
from typing import Final

from rollscope._version import __version__
from rollscope.exporting.output import written_whole
from rollscope.exporting.picking import Steps
from rollscope.exporting.scratch import Scratch
from rollscope.exporting.tables import table_query
from rollscope.store.embedded import RunStore
from rollscope.store.rawsql import quote

__all__ = ["TABLES_SCHEMA", "write_table"]

TABLES_SCHEMA: Final = 1
"""Raised when a column changes its meaning; a new column alone does not raise it."""
_PARQUET: Final = "FORMAT parquet, USE_TMP_FILE false, COMPRESSION zstd, ROW_GROUP_SIZE 65536"
_CSV: Final = (
    """FORMAT csv, USE_TMP_FILE false, HEADER, DELIMITER ',', QUOTE '"', ESCAPE '"', NULLSTR ''"""
)
_RISKY: Final = "^[=+@-]"
"""What makes a spreadsheet take text for a formula."""


def write_table(
    name: str,
    path: Path,
    scratch: Scratch,
    store: RunStore,
    *,
    steps: Steps | None = None,
    as_csv: bool = False,
    is_spreadsheet_safe: bool = False,
) -> int:
    """Write one table to a file, which is there whole or not at all; give the number of rows.

    Args:
        name: One of `tables.TABLES`.
        path: The file.
        scratch: Beside the run; each table may be made once in it.
        store: The run.
        steps: Only what belongs to these.
        as_csv: CSV, not Parquet.
        is_spreadsheet_safe: Whether cells of text that a spreadsheet would take for a formula get
            an apostrophe in front.
    """
    select, order = table_query(name, scratch, store, steps)
    if is_spreadsheet_safe:
        select = _made_safe(scratch, select)
    query = select if order is None else f"SELECT * FROM ({select}) AS rows ORDER BY {order}"
    how = _CSV if as_csv else _parquet(store)
    with written_whole(path) as part:
        return scratch.copy(query, part, how)


def _parquet(store: RunStore) -> str:
    facts = {
        "rollscope.schema": str(TABLES_SCHEMA),
        "rollscope.version": __version__,
        "run": store.path.resolve().name.removesuffix(".rsl"),
    }
    told = ", ".join(f"{quote(key)}: {quote(value)}" for key, value in facts.items())
    return f"{_PARQUET}, KV_METADATA {{{told}}}"


def _made_safe(scratch: Scratch, query: str) -> str:
    columns = []
    for name, kind in scratch.columns(query):
        if kind == "VARCHAR":
            risky = f"regexp_matches(\"{name}\", '{_RISKY}')"
            columns.append(
                f"""CASE WHEN {risky} THEN '''' || "{name}" ELSE "{name}" END "{name}" """
            )
        else:
            columns.append(f'"{name}"')
    return f"SELECT {', '.join(columns)} FROM ({query}) AS told"
