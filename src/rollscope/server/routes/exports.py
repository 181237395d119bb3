"""Tables to take away: CSV, JSON or Parquet, with bounds on how much at once."""

import io
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rollscope.answers.run import Run, Which
from rollscope.server.failures import Failure
from rollscope.server.routes.context import given_parameters, read_whole, run_of
from rollscope.store.embedded import RunStore

__all__ = ["MOST_ROWS", "ROUTES"]

MOST_ROWS: Final = 500_000
_PARAMETERS: Final = ("what", "format", "step", "since_ns", "until_ns")
_TABLES: Final = (
    "events",
    "facts",
    "metrics",
    "phases",
    "sessions",
    "spans",
    "stacks",
    "states",
    "steps",
    "tasks",
)


async def _export(request: Request) -> Response:
    given = given_parameters(request, _PARAMETERS)
    what, kind = given.get("what", ""), given.get("format", "csv")
    _choose("what", what, _TABLES)
    _choose("format", kind, _WRITERS)
    media_type, write = _WRITERS[kind]
    run = await run_of(request)
    content = await run.ask(partial(_make, what=what, which=_which(given), write=write))
    # Not the run's name, which may hold what a header may not.
    headers = {"Content-Disposition": f'attachment; filename="{what}.{kind}"'}
    return Response(content, headers=headers, media_type=media_type)


def _choose(name: str, given: str, allowed: "tuple[str, ...] | dict[str, Any]") -> None:
    if given not in allowed:
        raise Failure(
            400,
            f"The parameter {name!r} is {given[:40]!r}.",
            f"Give one of: {', '.join(allowed)}.",
        )


def _which(given: dict[str, str]) -> Which:
    which: Which = {}
    if "step" in given:
        first, _, last = given["step"].partition("-")
        low = read_whole({"step": first}, "step", None)
        which["step"] = (low, read_whole({"step": last}, "step", low))
    if "since_ns" in given:
        which["since_ns"] = read_whole(given, "since_ns", None)
    if "until_ns" in given:
        which["until_ns"] = read_whole(given, "until_ns", None)
    return which


def _make(store: RunStore, what: str, which: Which, write: Callable[[pa.Table], bytes]) -> bytes:
    table = Run(store).rows(what, limit=MOST_ROWS + 1, **which)
    if table.num_rows > MOST_ROWS:
        raise Failure(
            413,
            f"That is more than {MOST_ROWS:,} rows.",
            "Ask for fewer steps or less time, or read the run with `rollscope.open`.",
        )
    return write(table)


def _csv(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pyarrow.csv.write_csv(_readable(table), out)
    return out.getvalue()


def _json(table: pa.Table) -> bytes:
    return msgspec.json.encode(_readable(table).to_pylist())


def _parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out, compression="zstd")
    return out.getvalue()


def _readable(table: pa.Table) -> pa.Table:
    """Write ids as the digits that commands show and take."""
    for place, field in enumerate(table.schema):
        column = table[field.name]
        if pa.types.is_uint64(field.type):
            shown = [None if one is None else f"{one:016x}" for one in column.to_pylist()]
        elif pa.types.is_fixed_size_binary(field.type) or pa.types.is_binary(field.type):
            shown = [None if one is None else one.hex() for one in column.to_pylist()]
        elif pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, column.cast(pa.string()))
            continue
        else:
            continue
        table = table.set_column(place, field.name, pa.array(shown, pa.string()))
    return table


_WRITERS: Final[dict[str, tuple[str, Callable[[pa.Table], bytes]]]] = {
    "csv": ("text/csv; charset=utf-8", _csv),
    "json": ("application/json", _json),
    "parquet": ("application/vnd.apache.parquet", _parquet),
}

ROUTES: Final = (Route("/run/{run}/export", _export),)
