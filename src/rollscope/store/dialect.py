"""What DuckDB and ClickHouse spell differently; everything else is written once.

Queries are templates: Python functions that take a dialect and give SQL. Values never become part
of that SQL: they are bound by name, written `$name`.

A name that both the source and the result have is the source's in WHERE and GROUP BY and the
result's in ORDER BY, in both engines; in the ORDER BY of a subquery ClickHouse takes the source's.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from rollscope.errors import QueryError

__all__ = ["CLICKHOUSE", "DUCKDB", "HELD_DUCKDB", "Dialect", "bind_clickhouse", "clickhouse_text"]

Value = int | float | str | bool | list[int] | list[str]


class Dialect(Protocol):
    """How one engine spells what the other spells differently."""

    name: str
    has_sessions: bool
    """Whether sessions lie ready, so that reading all of them costs no more than reading some."""
    open_spans: str
    """Where spans that are open stand, among others, on the clocks of their processes."""

    def rank(self, value: str, percent: int) -> str:
        """Give the percentile of a column by nearest rank; null values do not count."""

    def arg_max(self, value: str, *order: str) -> str:
        """Give the value of the row that is last by the given columns, of those that have one."""

    def is_in(self, column: str, values: str) -> str:
        """Say that a column is one of the bound list."""

    def floor(self, value: str) -> str:
        """Round down to a whole number of 64 bits; null stays null."""

    def json_text(self, column: str, key: str) -> str:
        """Read one attribute as text, the key being bound."""

    def json_number(self, column: str, key: str) -> str:
        """Read one attribute as a number, the key being bound."""


_USUAL_RANKS: Final = (50, 90, 95, 99)


class _DuckDB:
    name = "duckdb"
    open_spans = "open_spans"

    def __init__(self, *, has_sessions: bool = False) -> None:
        self.has_sessions = has_sessions

    def rank(self, value: str, percent: int) -> str:
        if percent not in _USUAL_RANKS:
            return f"quantile_disc({value}, {percent / 100})"
        # Asked for together, all are found in one go, and the values are kept once.
        shares = ", ".join(str(usual / 100) for usual in _USUAL_RANKS)
        return f"quantile_disc({value}, [{shares}])[{_USUAL_RANKS.index(percent) + 1}]"

    def arg_max(self, value: str, *order: str) -> str:
        return f"arg_max({value}, row({', '.join(order)})) FILTER (WHERE {value} IS NOT NULL)"

    def is_in(self, column: str, values: str) -> str:
        return f"{column} IN (SELECT unnest({values}))"

    def floor(self, value: str) -> str:
        return f"CAST(floor({value}) AS BIGINT)"

    def json_text(self, column: str, key: str) -> str:
        # A pointer, since a path gives `*` and the empty name another meaning.
        pointer = f"'/' || replace(replace({key}, '~', '~0'), '/', '~1')"
        return f"json_extract_string({column}, {pointer})"

    def json_number(self, column: str, key: str) -> str:
        return f"TRY_CAST({self.json_text(column, key)} AS DOUBLE)"


class _ClickHouse:
    name = "clickhouse"
    has_sessions = False
    open_spans = "raw_spans"

    def rank(self, value: str, percent: int) -> str:
        # quantileExact takes the next higher rank where the rank is a whole number. A level that is
        # lower by less than any two ranks differ (up to 10 billion rows) takes the right one.
        level = max(percent / 100 - 1e-12, 0)
        return f"quantileExactOrNull({level!r})({value})"

    def arg_max(self, value: str, *order: str) -> str:
        return f"argMaxIf({value}, tuple({', '.join(order)}), {value} IS NOT NULL)"

    def is_in(self, column: str, values: str) -> str:
        return f"{column} IN {values}"

    def floor(self, value: str) -> str:
        return f"toInt64(floor({value}))"

    def json_text(self, column: str, key: str) -> str:
        # Written again by ClickHouse, a whole floating point number loses its fraction.
        kind, raw = f"JSONType({column}, {key})", f"JSONExtractRaw({column}, {key})"
        whole = f"{kind} = 'Double' AND NOT match({raw}, '[.en]')"
        return (
            f"multiIf({kind} = 'String', JSONExtractString({column}, {key}), {kind} = 'Null', "
            f"NULL, {whole}, concat({raw}, '.0'), {raw})"
        )

    def json_number(self, column: str, key: str) -> str:
        return f"toFloat64OrNull(trimBoth({self.json_text(column, key)}))"


DUCKDB: Final[Dialect] = _DuckDB()
HELD_DUCKDB: Final[Dialect] = _DuckDB(has_sessions=True)
CLICKHOUSE: Final[Dialect] = _ClickHouse()

_PARAMETER: Final = re.compile(r"\$([a-z_][a-z0-9_]*)")
_ESCAPES: Final = str.maketrans(
    {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r", "\b": r"\b", "\f": r"\f", "\0": r"\0"}
)


def bind_clickhouse(sql: str, values: Mapping[str, Value]) -> str:
    """Rewrite `$name` as ClickHouse wants its bound values: with their type.

    Raises:
        QueryError: A value is missing.
    """

    def placeholder(match: re.Match[str]) -> str:
        name = match[1]
        if name not in values:
            raise QueryError(f"the query names ${name}, but no value is given for it")
        return f"{{{name}:{_type_of(values[name])}}}"

    return _PARAMETER.sub(placeholder, sql)


def clickhouse_text(value: Value) -> str:
    """Write a value as ClickHouse reads that of a parameter, over HTTP and in process."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return value.translate(_ESCAPES)
        case list():
            return f"[{','.join(_item_text(item) for item in value)}]"
        case _:
            return repr(value)


def _item_text(item: int | str) -> str:
    if isinstance(item, int):
        return str(item)
    quoted = item.translate(_ESCAPES).replace("'", r"\'")
    return f"'{quoted}'"


def _type_of(value: Value) -> str:
    match value:
        case bool():
            return "Bool"
        case int():
            return "UInt64" if value >= 2**63 else "Int64"
        case float():
            return "Float64"
        case str():
            return "String"
        case []:
            return "Array(Nothing)"
        case _:
            return f"Array({_item_type(value)})"


def _item_type(items: Sequence[int | str]) -> str:
    if isinstance(items[0], str):
        return "String"
    return "Int64" if any(isinstance(item, int) and item < 0 for item in items) else "UInt64"
