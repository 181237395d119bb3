"""What DuckDB and ClickHouse spell differently; everything else is written once.

Queries are templates: Python functions that take a dialect and give SQL. Values never become part
of that SQL: they are bound by name, written `$name`.
"""

import re
from collections.abc import Mapping
from typing import Final, Protocol

__all__ = ["CLICKHOUSE", "DUCKDB", "Dialect", "bind_clickhouse"]

Value = int | float | str | bool | list[int] | list[str]


class Dialect(Protocol):
    """How one engine spells what the other spells differently."""

    name: str

    def rank(self, value: str, percent: int) -> str:
        """Give the percentile of a column by nearest rank; null values do not count."""

    def arg_max(self, value: str, *order: str) -> str:
        """Give the value of the row that is last by the given columns, of those that have one."""

    def is_in(self, column: str, values: str) -> str:
        """Say that a column is one of the bound list."""

    def text_of(self, number: str) -> str:
        """Write a number as text."""

    def json_text(self, column: str, key: str) -> str:
        """Read one attribute as text, the key being bound."""

    def json_number(self, column: str, key: str) -> str:
        """Read one attribute as a number, the key being bound."""


class _DuckDB:
    name = "duckdb"

    def rank(self, value: str, percent: int) -> str:
        return f"quantile_disc({value}, {percent / 100})"

    def arg_max(self, value: str, *order: str) -> str:
        return f"arg_max({value}, row({', '.join(order)})) FILTER (WHERE {value} IS NOT NULL)"

    def is_in(self, column: str, values: str) -> str:
        return f"{column} IN (SELECT unnest({values}))"

    def text_of(self, number: str) -> str:
        return f"CAST({number} AS VARCHAR)"

    def json_text(self, column: str, key: str) -> str:
        return f"json_extract_string({column}, '$.' || json_quote({key}))"

    def json_number(self, column: str, key: str) -> str:
        return f"TRY_CAST({self.json_text(column, key)} AS DOUBLE)"


class _ClickHouse:
    name = "clickhouse"

    def rank(self, value: str, percent: int) -> str:
        # quantileExact takes the next higher rank where the rank is a whole number.
        kept = f"groupArray({value})"  # leaves nulls out
        place = f"greatest(intDiv({percent} * count({value}) + 99, 100), 1)"
        return f"if(count({value}) = 0, NULL, arraySort({kept})[{place}])"

    def arg_max(self, value: str, *order: str) -> str:
        return f"argMaxIf({value}, tuple({', '.join(order)}), {value} IS NOT NULL)"

    def is_in(self, column: str, values: str) -> str:
        return f"has({values}, {column})"

    def text_of(self, number: str) -> str:
        return f"toString({number})"

    def json_text(self, column: str, key: str) -> str:
        return f"JSONExtract({column}, {key}, 'Nullable(String)')"

    def json_number(self, column: str, key: str) -> str:
        return f"JSONExtract({column}, {key}, 'Nullable(Float64)')"


DUCKDB: Final[Dialect] = _DuckDB()
CLICKHOUSE: Final[Dialect] = _ClickHouse()

_PARAMETER: Final = re.compile(r"\$([a-z_]+)")


def bind_clickhouse(sql: str, values: Mapping[str, Value]) -> str:
    """Rewrite `$name` as ClickHouse wants its bound values: with their type."""
    return _PARAMETER.sub(lambda match: f"{{{match[1]}:{_type_of(values[match[1]])}}}", sql)


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
        case list():
            return "Array(String)" if value and isinstance(value[0], str) else "Array(UInt64)"
