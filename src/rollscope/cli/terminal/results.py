"""Tables that a query gave, as text: a table, CSV or JSON."""

import csv
import sys
from collections.abc import Sequence
from decimal import Decimal
from io import StringIO
from typing import Any

import pyarrow as pa

from rollscope.cli.terminal.output import print_json
from rollscope.screens.tables import Column, Screen, clean, show_table
from rollscope.store.prompt import Answer

__all__ = ["print_answer"]


def print_answer(answer: Answer, shape: str) -> None:
    """Print the rows of an answer as `table`, `csv` or `json`."""
    if shape == "json":
        print_json(_objects(answer.table))
    elif shape == "csv":
        _print_csv(answer.table)
    else:
        _print_table(answer)
    if answer.is_cut:
        rows = answer.table.num_rows
        print(f"rollscope: only the first {rows:,} rows; --rows gives more", file=sys.stderr)


def _names(table: pa.Table) -> list[str]:
    """Give the columns; a second one of the same name is numbered, so that none is lost."""
    names: list[str] = []
    for name in table.column_names:
        same, number = name, 1
        while same in names:
            number += 1
            same = f"{name}_{number}"
        names.append(same)
    return names


def _objects(table: pa.Table) -> list[dict[str, Any]]:
    columns = [column.to_pylist() for column in table.columns]
    names = _names(table)
    return [
        {name: _json_value(value) for name, value in zip(names, row, strict=True)}
        for row in zip(*columns, strict=True)
    ]


def _json_value(value: Any) -> Any:  # noqa: ANN401  (whatever a column holds)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    is_plain = value is None or isinstance(value, bool | int | float | str)
    return value if is_plain else str(value)


def _text(value: Any) -> str:  # noqa: ANN401  (whatever a column holds)
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.hex()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _print_csv(table: pa.Table) -> None:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.column_names)
    exact = [[_exact(value) for value in column.to_pylist()] for column in table.columns]
    writer.writerows(zip(*exact, strict=True))
    screen = Screen.of()
    text = out.getvalue()
    if screen.width is not None:  # a terminal obeys what a file keeps
        text = "\n".join(clean(line) for line in text.split("\n"))
    sys.stdout.write(screen.fit(text))


def _exact(value: Any) -> Any:  # noqa: ANN401  (whatever a column holds)
    return value.hex() if isinstance(value, bytes) else value


def _print_table(answer: Answer) -> None:
    table, screen = answer.table, Screen.of()
    columns = [
        Column(clean(field.name), "right" if _is_number(field.type) else "left", can_shrink=True)
        for field in table.schema
    ]
    values = [[_text(value) for value in column.to_pylist()] for column in table.columns]
    rows = list(zip(*values, strict=True))
    if table.column_names == ["explain_key", "explain_value"]:
        sys.stdout.write("".join(screen.fit(f"{value}\n") for _, value in rows))
        return
    sys.stdout.write(_fitting(columns, rows, screen))
    sys.stdout.write(f"({table.num_rows:,} row{'' if table.num_rows == 1 else 's'})\n")


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _fitting(columns: list[Column], rows: Sequence[Sequence[str]], screen: Screen) -> str:
    """Give a table, or, where not even that fits, one block of lines a row."""
    needed = sum(max(min(len(c.head), 8), 4) + 2 for c in columns)
    if screen.width is None or needed <= screen.width or not rows:
        return (
            show_table(columns, rows, screen)
            or show_table(
                [Column(c.head) for c in columns], [[""] * len(columns)], screen
            ).splitlines(keepends=True)[0]
        )
    pair = (Column(""), Column("", can_shrink=True))
    blocks = [
        f"-- row {number}\n"
        + show_table(pair, [(c.head, v) for c, v in zip(columns, row, strict=True) if v], screen)
        for number, row in enumerate(rows, 1)
    ]
    return "".join(blocks)
