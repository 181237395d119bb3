"""SQL that reads rows as they were recorded: from segments, and from what is in memory."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rollscope.store.schema import TABLES
from rollscope.store.segments import Segment

__all__ = ["memory_tables", "quote", "raw_sql", "sealed_sql"]


def memory_tables(name: str) -> list[str]:
    """Give the tables in memory that hold rows of a table which are in no segment."""
    return [f"tail_{name}", *(["open_spans"] if name == "spans" else [])]


def raw_sql(
    folder: Path,
    name: str,
    segments: Sequence[Segment],
    in_memory: Iterable[str],
    columns: Sequence[str] | None = None,
) -> str:
    """Read a table; what is empty is left out, for every part costs every query.

    Args:
        folder: Where segments lie.
        name: The table.
        segments: Those of its segments that are to be read.
        in_memory: The tables in memory that have rows.
        columns: What to read of it; everything if not given.
    """
    columns = columns or TABLES[name].names
    tails = memory_tables(name)
    shown = [tail for tail in tails if tail in in_memory]
    if not segments and not shown:
        shown = tails[:1]
    parts = [sealed_sql(folder, segments, columns)] if segments else []
    listed = ", ".join(f'"{column}"' for column in columns)
    parts += [f"SELECT {listed} FROM {tail}" for tail in shown]
    return " UNION ALL ".join(parts)


def sealed_sql(folder: Path, segments: Iterable[Segment], columns: Sequence[str]) -> str:
    """Read segments; those that have the same columns together."""
    alike: dict[frozenset[str], list[str]] = {}
    for segment in segments:
        files = alike.setdefault(frozenset(segment.columns), [])
        files.append(quote(str(folder / segment.file)))
    return " UNION ALL ".join(
        f"SELECT {_present(columns, known)} FROM read_parquet([{', '.join(files)}])"
        for known, files in alike.items()
    )


def _present(columns: Sequence[str], known: frozenset[str]) -> str:
    """List columns, null for those that a segment does not have."""
    return ", ".join(f'"{one}"' if one in known else f'NULL AS "{one}"' for one in columns)


def quote(text: str) -> str:
    """Write text as SQL does."""
    return "'" + text.replace("'", "''") + "'"
