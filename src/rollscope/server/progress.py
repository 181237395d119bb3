"""How far a run has come, and what has changed in it, as live pages are told."""

import time
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from rollscope.store.embedded import RunStore
from rollscope.store.schema import TABLES

__all__ = ["Headway", "RunProgress", "first_seq"]

_EPOCH_S: Final = 1_700_000_000
_BOOTS_PER_S: Final = 64
_COUNTS_PER_BOOT: Final = 2**16


class RunProgress(msgspec.Struct, frozen=True, kw_only=True):
    """What the stream of events says of a run."""

    run: str
    seq: int
    now_ns: int
    is_alive: bool
    last_ns: int
    """When any of its processes was last heard of."""
    changed: list[str] = []
    """Tables with new rows; also `open` for spans that began or ended, `steps`, `life`."""


def first_seq() -> int:
    """Give the number to count from: higher than any that an earlier server came to.

    Seconds take the upper bits, so that a page that was left open over a restart names a number
    that this server never gave, and JavaScript still keeps the whole number.
    """
    return int((time.time() - _EPOCH_S) * _BOOTS_PER_S) * _COUNTS_PER_BOOT


class Headway:
    """Watches a store for changes; used by the thread that owns the store."""

    def __init__(self, run: str, store: RunStore, seq: int) -> None:
        self._run = run
        self._store = store
        self._rows = self._count()
        self._open = self._open_ids()
        self.progress = self._look(seq, [])

    def look(self) -> RunProgress:
        """Say how far the run has come; the number goes up if there is anything new to see."""
        before, was_open = self._rows, self._open
        self._rows, self._open = self._count(), self._open_ids()
        changed = [name for name in TABLES if self._rows[name] != before[name]]
        if self._open != was_open:
            changed.append("open")
        if "spans" in changed and self._has_steps(before["spans"]):
            changed.append("steps")
        seq = self.progress.seq + bool(changed)
        found = self._look(seq, changed)
        if found.is_alive != self.progress.is_alive:
            found.changed.append("life")
        self.progress = found
        return found

    def _look(self, seq: int, changed: list[str]) -> RunProgress:
        ledgers = self._store.sealer.intake.ledgers.values()
        return RunProgress(
            run=self._run,
            seq=seq,
            now_ns=self._store.now_ns,
            is_alive=not self._store.sealer.intake.is_over(),
            last_ns=max((ledger.state.last_seen_ns for ledger in ledgers), default=0),
            changed=changed,
        )

    def _count(self) -> dict[str, int]:
        sealer = self._store.sealer
        rows = dict.fromkeys(TABLES, 0)
        for segment in sealer.manifest.segments:
            rows[segment.table] += segment.rows
        for kept in (sealer.frozen, sealer.tail):
            for name, tables in kept.items():
                rows[name] += sum(table.num_rows for table in tables)
        return rows

    def _open_ids(self) -> frozenset[int]:
        ledgers = self._store.sealer.intake.ledgers.values()
        return frozenset(span_id for ledger in ledgers for span_id in ledger.open)

    def _has_steps(self, before: int) -> bool:
        """Say whether steps are among the newest rows; where that cannot be told, say yes."""
        tail = self._store.sealer.tail_table("spans")
        new = self._rows["spans"] - before
        if not 0 < new <= tail.num_rows:
            return True
        kinds = tail["kind"].slice(tail.num_rows - new).cast(pa.string())
        return bool(pc.any(pc.equal(kinds, "step")).as_py())
