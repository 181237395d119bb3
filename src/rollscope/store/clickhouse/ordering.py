"""Ordering as DuckDB means it: by a column of the result, where it has one of that name.

ClickHouse can be told to read a name as the source's column first, in WHERE, GROUP BY and in what
is selected, as DuckDB does. It then reads ORDER BY in the same way, which DuckDB does not; and it
orders the last part of a UNION only. Places of columns leave no doubt, so they are written instead
of names.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

__all__ = ["order_by_results"]

_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)|'(?:[^'\\]|''|\\.)*'|"[^"]*"|`[^`]*`|\w+|.""",
    re.DOTALL | re.VERBOSE,
)
_SETS: Final = frozenset({"UNION", "INTERSECT", "EXCEPT"})
_AFTER_ORDER: Final = frozenset({"LIMIT", "OFFSET", "SETTINGS", "FORMAT", ";"})
_DIRECTIONS: Final = frozenset({"ASC", "DESC", "NULLS"})


class _Token(NamedTuple):
    """A piece of SQL outside of all parentheses."""

    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        return self.text.upper()

    @property
    def name(self) -> str:
        return self.text.strip('"`')


def order_by_results(sql: str) -> str:
    """Let the ORDER BY of a query mean columns of its result; those of subqueries stay."""
    tokens = list(_outer_tokens(sql))
    words = [token.word for token in tokens]
    if "ORDER" not in words:
        return sql
    order = len(words) - 1 - words[::-1].index("ORDER")
    if _SETS.intersection(words[:order]):
        start = tokens[order].start
        return f"SELECT * FROM ({sql[:start]}) {sql[start:]}"
    places = _places(tokens[:order])
    end = next((n for n in range(order, len(words)) if words[n] in _AFTER_ORDER), len(words))
    for item in reversed(_split(tokens[order + 2 : end])):
        place = places.get(item[0].name) if item else None
        if place is not None and (len(item) == 1 or item[1].word in _DIRECTIONS):
            sql = f"{sql[: item[0].start]}{place}{sql[item[0].end :]}"
    return sql


def _outer_tokens(sql: str) -> Iterator[_Token]:
    """Give the pieces outside of parentheses; a pair with all that is in it counts as one."""
    depth = opened = 0
    for match in _TOKEN.finditer(sql):
        text = match[0]
        if text == "(":
            opened = opened if depth else match.start()
            depth += 1
        elif text == ")":
            depth -= 1
            if not depth:
                yield _Token(sql[opened : match.end()], opened, match.end())
        elif not depth and match["skip"] is None:
            yield _Token(text, match.start(), match.end())


def _places(tokens: Sequence[_Token]) -> dict[str, int]:
    """Give the places of the columns that the query names itself, counted from one."""
    words = [token.word for token in tokens]
    if "SELECT" not in words:
        return {}
    select = len(words) - 1 - words[::-1].index("SELECT")
    end = words.index("FROM", select) if "FROM" in words[select:] else len(words)
    places: dict[str, int] = {}
    for place, item in enumerate(_split(tokens[select + 1 : end]), 1):
        if item and item[-1].text == "*":
            break  # nobody knows how many columns these are
        if len(item) > 2 and item[-2].word == "AS":
            places[item[-1].name] = place
    return places


def _split(tokens: Sequence[_Token]) -> list[list[_Token]]:
    items: list[list[_Token]] = [[]]
    for token in tokens:
        if token.text == ",":
            items.append([])
        else:
            items[-1].append(token)
    return items
