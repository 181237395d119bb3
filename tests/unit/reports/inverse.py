"""What the page does with a report, done in Python: the inverse of how answers are written."""

from collections.abc import Sequence
from typing import Any

__all__ = ["Expander"]

_HOLE = object()


class Expander:
    """Gives answers as they were."""

    def __init__(self, lines: Sequence[dict[str, Any]] = ()) -> None:
        self._lines = lines

    def expand(self, node: Any) -> Any:
        """Give any part of an answer."""
        if isinstance(node, list):
            return self._list(node, [])
        return self._fields(node) if isinstance(node, dict) else node

    def _fields(self, node: dict[str, Any]) -> dict[str, Any]:
        numbers = self._numbers(node)
        return {
            key: self._list(item, numbers) if isinstance(item, list) else self.expand(item)
            for key, item in node.items()
        }

    def _numbers(self, columns: dict[str, Any]) -> list[int]:
        for key in ("session_id", "sessions"):
            ids = columns.get(key)
            if isinstance(ids, list) and ids[0] == 7:
                return self._list(ids[1], [])
        return []

    def _known(self, number: int, field: str) -> Any:
        line = self._lines[number]
        return line[field] if field in line else line["row"][field]

    def _list(self, node: list[Any], numbers: list[int]) -> list[Any]:
        tag, *rest = node
        if tag == 1:
            return self._table(rest[0], rest[1])
        if tag in (2, 3):
            base, unit, *values = rest
            sums = [sum(values[: at + 1]) for at in range(len(values))] if tag == 2 else values
            return [base + unit * one for one in sums]
        if tag == 4:
            return [rest[0][place] for place in rest[1:]]
        if tag == 5:
            return [rest[1]] * rest[0]
        if tag == 6:
            given = iter(self._list(rest[2], []))
            gap = None if rest[0] == 1 else _HOLE
            return [
                gap if turn % 2 == 0 else next(given)
                for turn, count in enumerate(rest[1])
                for _ in range(count)
            ]
        if tag == 7:
            return [self._known(number, "span_id") for number in self._list(rest[0], [])]
        if tag == 8:
            return [self._known(number, rest[0]) for number in numbers]
        return [self.expand(one) for one in rest]

    def _table(self, length: int, columns: dict[str, Any]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [{} for _ in range(length)]
        numbers = self._numbers(columns)
        for key, column in columns.items():
            for row, value in zip(rows, self._list(column, numbers), strict=True):
                if value is not _HOLE:
                    row[key] = value
        return rows
