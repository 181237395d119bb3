"""Bringing a run into ClickHouse, again and again, with the same rows in the end.

Sealed segments go in once each. The fresh tail, spans that are open, and what is known of the
processes go in every time and replace what they were. A feed that is killed leaves rows that the
next one sends again, under the same identity; nothing depends on where it stopped.
"""

import hashlib
import threading
import time
from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollscope.errors import SettingError
from rollscope.store.clickhouse.tables import FED, ROW_TABLES, RUNS, check_schema, local_table
from rollscope.store.clickhouse.transport import Transport
from rollscope.store.embedded import RunStore
from rollscope.store.processes import drop_table, process_table
from rollscope.store.schema import TABLES
from rollscope.store.segments import Segment, read_segment

__all__ = ["BATCH_ROWS", "Fed", "Feeder", "feed", "follow", "forget"]

BATCH_ROWS: Final = 500_000
"""About 100 MB before compression: few parts for ClickHouse to merge, and no burden on memory."""
_ENDED: Final = 1 << 63
"""The version of rows that are final: above any time, so that no open span outlives its end."""


class Fed(msgspec.Struct, frozen=True):
    """What a feed sent."""

    segments: int = 0
    rows: int = 0


class _Known(msgspec.Struct):
    """What the server remembers of a run."""

    first_ns: int
    version: int
    segments: set[str]


class Feeder:
    """Feeds one run to one server, as often as it is asked to."""

    def __init__(
        self,
        store: RunStore,
        transport: Transport,
        run: str,
        *,
        fresh: bool = True,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        """Make ready to feed.

        Args:
            store: The run.
            transport: The way to the server, whose tables exist.
            run: What the run is called there; any text, the same every time.
            fresh: Whether rows go in before they are sealed. They are then seen at once, and sent a
                second time with their segment.
            batch_rows: How many rows go into one insert.

        Raises:
            SettingError: The name is empty.
            StoreError: The tables were made by a newer Rollscope.
        """
        if not run:
            raise SettingError("a run needs a name to be fed under")
        self._store = store
        self._transport = transport
        self._run = run
        self._is_fresh = fresh
        self._batch_rows = batch_rows
        self._sent_tail: tuple[int, dict[str, int]] = (-1, {})
        """How much of the tail is in, of the tail that follows the manifest of that number."""
        check_schema(transport)

    def feed(self) -> Fed:
        """Send what the store has and the server has not; give what was sent.

        Raises:
            StoreError: The server cannot be reached, or refuses.
        """
        known = self._ask_known()
        sealer = self._store.sealer
        rows = 0
        missing = [s for s in sealer.manifest.segments if s.file not in known.segments]
        for segment in missing:
            rows += self._send_segment(segment, known)
        if self._is_fresh:
            rows += self._send_tail()
            open_rows = sealer.intake.open_rows(self._store.now_ns, self._store.clocks)
            rows += self._send("spans", open_rows, known.version)
        rows += self._send_processes(known)
        return Fed(segments=len(missing), rows=rows)

    def _ask_known(self) -> _Known:
        database, values = self._transport.database, {"run": self._run}
        found = self._transport.query(
            f"SELECT first_ns, row_version FROM {database}.{RUNS} FINAL WHERE run = $run", values
        ).to_pylist()
        segments = self._transport.query(
            f"SELECT segment FROM {database}.{FED} FINAL WHERE run = $run", values
        )
        now = time.time_ns()
        if not found:
            return _Known(first_ns=now, version=now, segments=set())
        # Higher than the last one's, though that may have had a clock ahead of ours.
        version = max(now, found[0]["row_version"] + 1)
        return _Known(found[0]["first_ns"], version, set(segments["segment"].to_pylist()))

    def _send_segment(self, segment: Segment, known: _Known) -> int:
        shelf = self._store.sealer.shelf
        assert shelf is not None  # noqa: S101  (segments lie on a shelf)
        rows = read_segment(shelf.folder, segment)
        # A run that was forgotten and is fed anew has another beginning, and so other tokens.
        token = f"{self._run}\0{known.first_ns}\0{segment.file}"
        sent = self._send(segment.table, rows, _ENDED, token=token)
        note = {"segment": [segment.file], "rows": pa.array([segment.rows], pa.uint64())}
        self._note(FED, note, known.version)
        return sent

    def _send_tail(self) -> int:
        sealer = self._store.sealer
        number, sent = self._sent_tail
        if number != sealer.manifest.number:
            sent = {}
        total = 0
        counts: dict[str, int] = {}
        for name in TABLES:
            rows = sealer.tail_table(name)
            total += self._send(name, rows.slice(sent.get(name, 0)), _ENDED)
            counts[name] = rows.num_rows
        self._sent_tail = (sealer.manifest.number, counts)
        return total

    def _send_processes(self, known: _Known) -> int:
        store = self._store
        intake = store.sealer.intake
        processes = process_table(intake, store.now_ns, store.clocks)
        total = self._send("processes", processes, known.version)
        total += self._send("drops", drop_table(intake), known.version)
        note = {"first_ns": [known.first_ns], "now_ns": [store.now_ns]}
        self._note(RUNS, note, known.version)
        return total

    def _note(self, table: str, columns: Mapping[str, object], version: int) -> None:
        row = {"run": [self._run], **columns, "row_version": pa.array([version], pa.uint64())}
        self._transport.insert(table, pa.table(row))

    def _send(self, name: str, rows: pa.Table, version: int, *, token: str = "") -> int:
        """Send rows in batches, each with a token of its own if there is one for all."""
        for start in range(0, rows.num_rows, self._batch_rows):
            batch = rows.slice(start, self._batch_rows).unify_dictionaries().combine_chunks()
            key = f"{token}\0{start}\0{batch.num_rows}" if token else ""
            digest = hashlib.sha256(key.encode()).hexdigest() if key else ""
            self._transport.insert(name, _marked(batch, self._run, version), token=digest)
        return int(rows.num_rows)


def _marked(batch: pa.Table, run: str, version: int) -> pa.Table:
    """Add the run and the version to each row."""
    size = batch.num_rows
    names = pa.DictionaryArray.from_arrays(np.zeros(size, np.int32), pa.array([run], pa.string()))
    versions = pa.array(np.full(size, version, np.uint64))
    if version == _ENDED and "status" in batch.column_names:
        # A span given up for lost may still turn out to have ended.
        is_lost = pc.equal(batch["status"].cast(pa.string()), "lost")
        versions = pc.if_else(is_lost, pa.scalar(_ENDED - 1, pa.uint64()), versions)
    return batch.add_column(0, "run", names).append_column("row_version", versions)


def feed(
    store: RunStore,
    transport: Transport,
    run: str,
    *,
    fresh: bool = True,
    batch_rows: int = BATCH_ROWS,
) -> Fed:
    """Send a run, or what was added to it, once; `Feeder` says what the arguments mean."""
    return Feeder(store, transport, run, fresh=fresh, batch_rows=batch_rows).feed()


def follow(feeder: Feeder, store: RunStore, stop: threading.Event, *, every_s: float = 5.0) -> None:
    """Feed a run as it grows, until told to stop; ends with a last feed."""
    while not stop.wait(every_s):
        store.refresh()
        feeder.feed()
    store.refresh()
    feeder.feed()


def forget(transport: Transport, run: str, *, cluster: str = "") -> None:
    """Delete everything that the server knows of a run; it may be fed anew afterwards."""
    for table in (*ROW_TABLES, FED, RUNS):
        place = local_table(transport.database, table, cluster)
        transport.command(f"DELETE FROM {place} WHERE run = $run", {"run": run})
