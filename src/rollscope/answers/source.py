"""Where answers get their rows from: an engine with the views of one run."""

from collections.abc import Collection, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
import pyarrow as pa

from rollscope.store.dialect import Dialect, Value
from rollscope.store.lengths import Measured

__all__ = ["Source", "fetch"]

T = TypeVar("T")


class Source(Protocol):
    """One run in one engine."""

    @property
    def dialect(self) -> Dialect:
        """How the engine spells its SQL."""

    @property
    def now_ns(self) -> int:
        """The time up to which open spans count."""

    def query(self, sql: str, **values: Value) -> pa.Table:
        """Run a query over the views, values bound by name."""

    def rows_since(self, name: str, columns: Sequence[str], since_ns: int) -> str:
        """Give the SQL that reads what of a table may have ended since, on its processes' clocks.

        For quick answers: a view moves times, which a query pays for before it has begun.
        """

    def lengths(self, names: Collection[str], since_ns: int) -> Measured:
        """Measure how long spans of some names took that started since, and are not lost."""


def fetch(source: Source, row: type[T], sql: str, **values: Value) -> list[T]:
    """Run a query and give its rows as structs; columns must be named like the fields."""
    rows: list[dict[str, Any]] = source.query(sql, **values).to_pylist()
    return msgspec.convert(rows, list[row], strict=False)  # type: ignore[valid-type]
