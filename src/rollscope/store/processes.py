"""The processes of a run as tables: who recorded, whether they live, what they dropped."""

from typing import Any, Final

import pyarrow as pa

from rollscope.config import Settings
from rollscope.model.batch import FROM_FILES
from rollscope.store.hostclocks import ProcessClock, RunClocks
from rollscope.store.intake import Intake
from rollscope.store.ledger import Ledger

__all__ = ["DROPS", "PROCESSES", "drop_table", "process_table"]

PROCESSES: Final = pa.schema(
    [
        ("process", pa.uint64()),
        ("host", pa.string()),
        ("pid", pa.int64()),
        ("role", pa.string()),
        ("rank", pa.int64()),
        ("title", pa.string()),
        ("parent", pa.uint64()),
        ("started_ns", pa.int64()),
        ("last_seen_ns", pa.int64()),
        ("status", pa.string()),
        ("heartbeat_ns", pa.int64()),
        ("offset_ns", pa.int64()),
        ("offset_error_ns", pa.int64()),
        ("offset_source", pa.string()),
        ("drift_ppm", pa.float64()),
        ("clock_readings", pa.int64()),
        ("moved_ns", pa.int64()),
        ("correction", pa.string()),
        ("spans", pa.int64()),
        ("open_spans", pa.int64()),
        ("lost_ends", pa.int64()),
        ("dropped", pa.int64()),
        ("missing_frames", pa.int64()),
        ("silent_ns", pa.int64()),
        ("python", pa.string()),
        ("version", pa.string()),
    ]
)
DROPS: Final = pa.schema([("process", pa.uint64()), ("what", pa.string()), ("count", pa.int64())])


def process_table(intake: Intake, now_ns: int, clocks: RunClocks) -> pa.Table:
    """Give every process of a run; `started_ns` and `last_seen_ns` are moved like all times."""
    rows = [
        _row(intake, ledger, now_ns, clocks.of(ledger.process))
        for ledger in intake.ledgers.values()
    ]
    rows.sort(key=lambda row: (row["started_ns"], row["process"]))
    return pa.Table.from_pylist(rows, schema=PROCESSES)


def _row(intake: Intake, ledger: Ledger, now_ns: int, clock: ProcessClock) -> dict[str, Any]:
    state, header = ledger.state, ledger.state.header
    started_ns = header.started_ns if header else state.first_seen_ns
    correction, last_ns = clock.correction, max(state.last_seen_ns, started_ns)
    offset_ns = clock.at(state.last_seen_ns)
    return {
        "process": ledger.process,
        "host": header.host if header else "",
        "pid": header.pid if header else 0,
        "role": header.role if header else "",
        "rank": header.rank if header else None,
        "title": _title(ledger),
        "parent": int.from_bytes(header.parent) if header and header.parent else None,
        "started_ns": started_ns + clock.at(started_ns),
        "last_seen_ns": state.last_seen_ns + offset_ns,
        "status": _status(intake, ledger, now_ns, offset_ns),
        "heartbeat_ns": int((header.heartbeat_s if header else 1.0) * 1e9),
        "offset_ns": offset_ns,
        "offset_error_ns": clock.error_ns,
        "offset_source": clock.source,
        "drift_ppm": clock.drift_ppm,
        "clock_readings": clock.readings,
        "moved_ns": 0 if correction is None else correction.most(started_ns, last_ns),
        "correction": "" if correction is None else correction.text,
        "spans": state.spans,
        "open_spans": len(ledger.open),
        "lost_ends": state.lost,
        "dropped": sum(state.drops.values()),
        "missing_frames": ledger.missing_frames,
        "silent_ns": sum(end - start for start, end in state.silences),
        "python": header.python if header else "",
        "version": header.version if header else "",
    }


def _title(ledger: Ledger) -> str:
    header = ledger.state.header
    if header is None:
        return f"process {ledger.state.process.hex()}"
    if header.rank is not None:
        return f"{header.role} {header.rank}"
    place = f"{header.host}:{header.pid}"
    role = "" if header.role == Settings.role.default else header.role
    known_as = header.actor_name or header.actor or role
    return f"{known_as} ({place})" if known_as else place


def _status(intake: Intake, ledger: Ledger, now_ns: int, offset_ns: int) -> str:
    if ledger.state.end is not None:
        return "imported" if ledger.state.end in FROM_FILES else "ended"
    return "alive" if intake.is_alive(ledger, now_ns, offset_ns) else "dead"


def drop_table(intake: Intake) -> pa.Table:
    """Give what each process had to drop, by what and why."""
    rows = [
        {"process": ledger.process, "what": what, "count": count}
        for ledger in intake.ledgers.values()
        for what, count in ledger.state.drops.items()
    ]
    return pa.Table.from_pylist(rows, schema=DROPS)
