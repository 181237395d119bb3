"""Following a run and sealing what is final, beside any number of readers that do the same."""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from rollscope.store.clocklinks import ClockLinks, keep_links
from rollscope.store.clocks import ClockBounds, bound_clocks, find_links
from rollscope.store.collecting import no_cycles
from rollscope.store.hostclocks import RunClocks, estimate_clocks
from rollscope.store.intake import Intake, IntakeState
from rollscope.store.manifest import Manifest, Shelf
from rollscope.store.schema import SEGMENT_SCHEMA, TABLES, empty_table
from rollscope.store.sealing import Sealing
from rollscope.store.segments import Segment, is_sound

__all__ = ["Progress", "Sealer", "find_shelf"]

SEGMENT_DIR: Final = "segments"
SEAL_ROWS: Final = 524_288
"""Rows of a full segment."""
_SEAL_AFTER_S: Final = 60.0
"""How long fewer rows wait in memory while a run is followed."""
_WORTH_SEALING: Final = 20_000
_MOST_UNSEALED: Final = 8 * SEAL_ROWS
"""Where following stops if segments cannot be written: memory is not for keeping runs."""
_RETRY_S: Final = 30.0
_MUCH_BYTES: Final = 64 * 1024 * 1024
"""Of logs, from which on speed counts for more than memory given back at once."""
_CLOCKS_EVERY_S: Final = 5.0

Progress = Callable[[int, int], None]
"""Told how many bytes of the logs have been taken in, and how many there are."""


def find_shelf(run: Path) -> Shelf | None:
    """Find where the segments of a run can be kept: with the run, else in the user's own cache.

    Segments that are with the run are used where they cannot be added to.
    """
    own = Shelf(run / SEGMENT_DIR)
    if run.is_dir() and (_can_write(own.folder) or own.newest()):
        return own
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "rollscope")
    name = hashlib.sha256(os.fsencode(run.resolve())).hexdigest()[:32]
    return Shelf(cache / name) if _can_write(cache / name) else None


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


class Sealer:
    """A run as far as it has been read: sealed segments, and a tail in memory."""

    def __init__(self, run: Path, shelf: Shelf | None) -> None:
        self.run = run
        self.shelf = shelf
        self.problems: list[str] = []
        self.manifest = Manifest(number=0)
        self.intake = Intake(run)
        self.tail: dict[str, list[pa.Table]] = {}
        """Rows that are in memory only."""
        self.frozen: dict[str, list[pa.Table]] = {}
        """Rows that are being sealed."""
        self._joined: dict[str, tuple[list[pa.Table], pa.Table]] = {}
        """What `tail_table` gave last for both, and for which rows."""
        self._sealing: Sealing | None = None
        self.clock_bounds: ClockBounds = {}
        self.clock_links: ClockLinks = {}
        """Kept where a receiver reads the clocks; without, bounds say it all."""
        self._last_seal = time.monotonic()
        self._retry_at = 0.0
        self._clocks_at = 0.0
        self._load()

    def _load(self) -> None:
        """Start from the newest manifest, or from the beginning of the logs."""
        self.tail = {name: [] for name in TABLES}
        self.frozen = {name: [] for name in TABLES}
        self._joined.clear()
        state = IntakeState()
        if self.shelf is not None:
            loaded = self.shelf.load()
            self._tell(*loaded.problems)
            self.manifest, state = loaded.manifest, loaded.state
            if self.shelf.folder.parent != self.run and self.intake.is_foreign(state):
                # In the cache a run is known by its path, and another may have taken its place.
                self.manifest = Manifest(number=self.manifest.number)
                state = IntakeState()
            damaged = [s for s in self.manifest.segments if not is_sound(self.shelf.folder, s)]
            if damaged and self.shelf.newest() > self.manifest.number:
                self._load()  # not damaged: another reader has put others in their place
                return
            if damaged:
                state = self._give_up(damaged, state)
            elif self.manifest.schema < SEGMENT_SCHEMA:
                state = self._migrate(state)
        self.intake = Intake(self.run, state)
        self.clock_bounds = {
            later: dict(befores) for later, befores in self.manifest.clock_bounds.items()
        }
        self.clock_links = {
            later: dict(befores) for later, befores in self.manifest.clock_links.items()
        }

    def give_up_damaged(self) -> None:
        """Look at every segment whole, set aside what is damaged, and go on without it."""
        if self.shelf is None:
            return
        folder = self.shelf.folder
        damaged = [s for s in self.manifest.segments if not is_sound(folder, s, deep=True)]
        for segment in damaged:
            self.shelf.set_aside(segment)
        self._load()

    def _migrate(self, state: IntakeState) -> IntakeState:
        """Seal a run of an older version again; without its logs it is read as it is."""
        if not self.intake.covers(state):
            self._tell(
                "an older version sealed the run, and its logs are gone; it is read as it is"
            )
            return state
        self._tell("an older version sealed the run; it is read again from its logs")
        self.manifest.segments = []
        return IntakeState()

    def _give_up(self, damaged: list[Segment], state: IntakeState) -> IntakeState:
        """Set damaged segments aside, and read the run anew if its logs are still whole."""
        assert self.shelf is not None  # noqa: S101  (there are no segments without one)
        for segment in damaged:
            aside = self.shelf.set_aside(segment)
            self._tell(f"the segment {segment.file} is damaged and was set aside as {aside.name}")
        if self.intake.covers(state):
            self._tell("the run is read again from its logs, which are whole")
            self.manifest.segments = []
            self.manifest.removed_rows = 0
            return IntakeState()
        rows = sum(segment.rows for segment in damaged if segment.table == "spans")
        self._tell(f"{rows} spans of it are gone, since the logs they came from were removed")
        files = {segment.file for segment in damaged}
        self.manifest.segments = [s for s in self.manifest.segments if s.file not in files]
        return state

    def _tell(self, *problems: str) -> None:
        for problem in problems:
            if problem not in self.problems:
                self.problems.append(problem)

    @property
    def unsealed_rows(self) -> int:
        """How many spans are in memory and not in a segment."""
        return sum(table.num_rows for table in (*self.frozen["spans"], *self.tail["spans"]))

    def poll(self, progress: Progress | None = None, *, max_s: float | None = None) -> bool:
        """Take in what was added to the logs; say whether there was anything.

        Args:
            progress: Told how far that has come.
            max_s: Stop after about so long; `intake.is_behind` says then that there is more.
        """
        done, total = self.intake.total_bytes()
        if max_s is not None or total - done < _MUCH_BYTES:
            return self._poll(progress, self._seal_now_or_beside, SEAL_ROWS // 2, max_s)
        self.finish()
        with _quick_memory():
            return self._poll(progress, self.seal, SEAL_ROWS)

    def _seal_now_or_beside(self) -> bool:
        """Seal without keeping anybody waiting, unless there is too much in memory for that."""
        if self._sealing is not None and sum(t.num_rows for t in self.tail["spans"]) >= SEAL_ROWS:
            self.finish()
        self._seal_beside()
        return self._sealing is not None

    def _poll(
        self,
        progress: Progress | None,
        seal: Callable[[], bool],
        full_rows: int,
        max_s: float | None = None,
    ) -> bool:
        if self._sealing is not None and self._sealing.is_done:
            self.finish()
        if (
            self.shelf is not None
            and self._sealing is None
            and self.shelf.newest() > self.manifest.number
        ):
            self._load()
        found = False
        if self.unsealed_rows > _MOST_UNSEALED and not self.seal():
            return False
        intake: Intake | None = None
        while intake is not self.intake:  # a reader that seals first has ours start from its work
            intake = self.intake
            for taken in intake.poll(max_s):
                found = True
                for name, tables in taken.tables.items():
                    self.tail[name] += tables
                if progress is not None:
                    progress(*intake.total_bytes())
                is_full = self.unsealed_rows >= full_rows
                is_stuck = is_full and not seal() and self.unsealed_rows > _MOST_UNSEALED
                if is_stuck or self.intake is not intake:
                    break
        is_small = self.unsealed_rows < _WORTH_SEALING
        if found and (is_small or time.monotonic() - self._clocks_at > _CLOCKS_EVERY_S):
            self._bound_clocks()
        is_due = time.monotonic() - self._last_seal > _SEAL_AFTER_S
        if is_due and self._sealing is None and self.unsealed_rows >= _WORTH_SEALING:
            seal()
        return found

    def _bound_clocks(self) -> None:
        """Learn of the hosts' clocks from what is in memory: causes and effects, side by side."""
        self._clocks_at = time.monotonic()
        spans = [*self.frozen["spans"], *self.tail["spans"], *self.intake.open_causes()]
        host_of = self.intake.host_of
        corrections = self.clocks().read if self.intake.receivers else {}
        for links in find_links(spans, self.tail["facts"], host_of):
            bound_clocks(self.clock_bounds, links, host_of)
            if self.intake.receivers and len(links.later):
                keep_links(self.clock_links, links, host_of, corrections)

    def clocks(self) -> RunClocks:
        """Give how the times of processes have to be moved."""
        return estimate_clocks(
            self.intake.ledgers.values(),
            self.intake.tracks,
            self.intake.receivers,
            hosts=self.intake.hosts(),
            bounds=self.clock_bounds,
            links=self.clock_links,
        )

    def seal(self) -> bool:
        """Write the tail as segments; False if that was not possible now.

        If another reader has sealed meanwhile, its work is taken over and ours thrown away.
        """
        self.finish()
        sealing = self._begin()
        if sealing is None:
            return False
        sealing.run()
        return self._conclude(sealing)

    def _seal_beside(self) -> None:
        """Seal in the background, while the run is followed on."""
        if self._sealing is None:
            self._sealing = self._begin()
            if self._sealing is not None:
                self._sealing.start()

    def finish(self) -> None:
        """Wait for what is being sealed in the background."""
        if self._sealing is not None:
            self._sealing.wait()
            self._conclude(self._sealing)

    def _begin(self) -> Sealing | None:
        if self.shelf is None or time.monotonic() < self._retry_at:
            return None
        self._bound_clocks()
        following = msgspec.structs.replace(
            self.manifest,
            number=self.manifest.number + 1,
            schema=SEGMENT_SCHEMA,
            clock_bounds=self.clock_bounds,
            clock_links=self.clock_links,
        )
        self.frozen, self.tail = self.tail, {name: [] for name in TABLES}
        # Encoded at once, since what it holds goes on changing.
        state = msgspec.msgpack.encode(self.intake.to_state())
        return Sealing(self.shelf, following, self.frozen, state)

    def _conclude(self, sealing: Sealing) -> bool:
        assert self.shelf is not None  # noqa: S101
        self._sealing = None
        frozen, self.frozen = self.frozen, {name: [] for name in TABLES}
        self._joined.clear()
        if sealing.error is not None:
            self.tail = {name: frozen[name] + self.tail[name] for name in TABLES}
            self._retry_at = time.monotonic() + _RETRY_S
            why = sealing.error.strerror or sealing.error
            self._tell(f"segments cannot be written to {self.shelf.folder}: {why}")
            return False
        self._last_seal = time.monotonic()
        if not sealing.was_first:
            self._load()
            return True
        self.manifest = sealing.manifest
        self.shelf.sweep()
        return True

    def replace(self, segments: list[Segment], *, removed_rows: int = 0) -> bool:
        """Publish another set of segments for the same rows; False if another was faster."""
        assert self.shelf is not None  # noqa: S101
        following = msgspec.structs.replace(
            self.manifest,
            number=self.manifest.number + 1,
            schema=min((segment.schema for segment in segments), default=SEGMENT_SCHEMA),
            segments=segments,
            removed_rows=self.manifest.removed_rows + removed_rows,
        )
        if not self.shelf.publish(following, self.sealed_state()):
            return False
        self.manifest = following
        return True

    def sealed_state(self) -> IntakeState:
        """Give the state that belongs to the manifest, which knows nothing of the tail."""
        assert self.shelf is not None  # noqa: S101
        return self.shelf.load().state

    def tail_table(self, name: str) -> pa.Table:
        """Give the rows of a table that are not sealed yet."""
        for rows in (self.frozen, self.tail):
            if len(rows[name]) > 1:
                rows[name] = [pa.concat_tables(rows[name]).unify_dictionaries()]
        tables = [*self.frozen[name], *self.tail[name]]
        if len(tables) < 2:
            return tables[0] if tables else empty_table(name)
        # Asked for several times at each look, and to make one set of words of two takes long.
        known, joined = self._joined.get(name, (None, None))
        if known is None or known[0] is not tables[0] or known[1] is not tables[1]:
            joined = pa.concat_tables(tables).unify_dictionaries()
            self._joined[name] = tables, joined
        return joined


@contextmanager
def _quick_memory() -> Iterator[None]:
    """Spare memory's costs: Arrow keeps what it frees, and nobody looks for cycles in rows."""
    before = pa.default_memory_pool()
    with suppress(NotImplementedError):  # not in every build
        pa.set_memory_pool(pa.jemalloc_memory_pool())
    try:
        with no_cycles():
            yield
    finally:
        pa.set_memory_pool(before)
