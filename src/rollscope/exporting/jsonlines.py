"""A run as JSON lines with our own names: the way to leave, and to come back.

What a span was recorded with and what was learned of it later stay apart: a session's line shows
what counts now and keeps under `recorded` what was different, and every late fact has a line.
`rollscope.importing.rollscope_lines` reads all of it back. Payloads and stacks are left out.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from rollscope._version import __version__
from rollscope.exporting.chrome import ByteSink
from rollscope.exporting.picking import Steps, within
from rollscope.exporting.scratch import Scratch
from rollscope.importing.rollscope_fields import LINES_SCHEMA

__all__ = ["WrittenLines", "write_lines"]

_ID: Final = frozenset({"process", "span_id", "event_id", "parent_id", "session_id"})
_RAW: Final = frozenset({"attrs", "facts", "labels", "buckets"})
_LATE: Final = ("outcome", "reason", "version_end")
"""What a late fact may overrule."""
_SPAN: Final = (
    "kind process trace_id span_id parent_id session_id name category start_ns end_ns status "
    "outcome reason step consumed_step version_start version_end task_key sample group lane reward "
    "attrs"
)
_EVENT: Final = "kind process trace_id event_id parent_id session_id name time_ns step attrs"
_FACT: Final = "kind process span_id time_ns facts"
_METRIC: Final = "kind process type name labels time_ns value count min max buckets step"
_PROCESS: Final = "kind process host pid role rank status started_ns last_seen_ns"
_encode: Final = msgspec.json.Encoder().encode
Progress = Callable[[int, int], None]


class WrittenLines(msgspec.Struct):
    """How many lines of each sort were written."""

    processes: int = 0
    spans: int = 0
    events: int = 0
    facts: int = 0
    metrics: int = 0


class _Part(NamedTuple):
    """Lines of one sort: their keys, and where their values come from."""

    name: str
    keys: str
    select: str
    order: str


def _parts(steps: Steps | None) -> list[_Part]:
    now = ", ".join(f"coalesce(f.{name}, s.{name}) AS {name}" for name in _LATE)
    then = ", ".join(f"s.{name} AS recorded_{name}" for name in _LATE)
    spans = f"""
        SELECT s.kind, s.process, s.trace_id, s.span_id, s.parent_id, s.session_id, s.name,
            s.category, s.start_ns, CASE WHEN s.status = 'open' THEN NULL
                ELSE s.start_ns + s.duration_ns END AS end_ns,
            s.status, {now}, s.step, f.consumed_step, s.version_start, s.task_key, s.sample,
            s.group_key AS "group", s.lane, coalesce(f.reward, s.reward) AS reward, s.attrs, {then}
        FROM spans AS s LEFT JOIN fact_sums AS f ON s.span_id = f.span_id
        WHERE {within(steps, "s.step")}"""
    events = f"SELECT 'event' AS kind, * FROM events WHERE {within(steps, 'step')}"
    facts, metrics = "TRUE", "TRUE"
    if steps is not None:
        facts = "span_id IN (SELECT span_id FROM export.spans)"
        metrics = """time_ns BETWEEN (SELECT min(start_ns) FROM export.spans)
            AND (SELECT max(coalesce(end_ns, start_ns)) FROM export.spans)"""
    return [
        _Part("processes", _PROCESS, "SELECT 'process' AS kind, * FROM processes", "process"),
        # All of a trace together, so that who reads it back finds parents near their children.
        _Part(
            "spans", " ".join((_SPAN, *(f"recorded_{name}" for name in _LATE))), spans,
            "process, trace_id, start_ns, end_ns DESC NULLS FIRST, span_id",
        ),
        _Part("events", _EVENT, events, "process, time_ns, event_id"),
        _Part("facts", _FACT, f"SELECT 'fact' AS kind, * FROM facts WHERE {facts}",
              "process, number"),
        _Part("metrics", _METRIC, f"SELECT 'metric' AS kind, * FROM metrics WHERE {metrics}",
              "process, time_ns, name, type, labels"),
    ]  # fmt: skip


def write_lines(
    scratch: Scratch,
    run: str,
    sink: ByteSink,
    *,
    steps: Steps | None = None,
    progress: Progress | None = None,
) -> WrittenLines:
    """Write a run.

    Args:
        scratch: Beside the run, and empty.
        run: What the run is called.
        sink: Gets the lines.
        steps: Only what belongs to these.
        progress: Told of lines as they are written.
    """
    parts, written = _parts(steps), WrittenLines()
    for part in parts:
        scratch.run(f"CREATE TABLE export.{part.name} AS {part.select}")
        count = scratch.ask(f"SELECT count(*) AS n FROM export.{part.name}")["n"][0].as_py()
        setattr(written, part.name, count)
    total, done = sum(msgspec.structs.astuple(written)), 0
    head = {"kind": "run", "run": run, "schema": LINES_SCHEMA, "writer": f"rollscope {__version__}"}
    sink.write(_encode(head) + b"\n")
    for part in parts:
        for lines, count in _lines(scratch, part):
            sink.write(lines)
            done += count
            if progress is not None:
                progress(done, total)
    return written


def _lines(scratch: Scratch, part: _Part) -> Iterator[tuple[bytes, int]]:
    keys = part.keys.split()
    columns = ", ".join(f'"{key}"' for key in keys)
    sql = f"SELECT {columns} FROM export.{part.name} ORDER BY {part.order}"
    ids = [at for at, key in enumerate(keys) if key in _ID]
    raws = [at for at, key in enumerate(keys) if key in _RAW]
    for batch in scratch.stream(sql):
        yield b"\n".join([*(_line(keys, row, ids, raws) for row in batch), b""]), len(batch)


def _line(keys: list[str], row: tuple[Any, ...], ids: list[int], raws: list[int]) -> bytes:
    values = list(row)
    for at in ids:
        if values[at] is not None:
            values[at] = f"{values[at]:016x}"
    for at in raws:
        if values[at] is not None:
            values[at] = msgspec.Raw(values[at].encode())
    line = {key: value for key, value in zip(keys, values, strict=True) if value is not None}
    if "trace_id" in line:
        line["trace_id"] = line["trace_id"].hex()
    if line["kind"] == "metric":
        line |= {key: _spelt(line[key]) for key in ("value", "min", "max") if key in line}
    elif "span_id" in line:
        _keep_recorded(line)
    return _encode(line)


def _keep_recorded(line: dict[str, Any]) -> None:
    """Put aside what was recorded and does not count any more."""
    recorded = {}
    for name in _LATE:
        then = line.pop(f"recorded_{name}", None)
        if then != line.get(name):
            recorded[name] = then
    if recorded:
        line["recorded"] = recorded


def _spelt(value: float) -> float | str:
    """Spell what JSON has no number for."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
