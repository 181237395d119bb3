"""One log while it is followed: whether it is still the same file, and which batches have to wait.

Reading frames through damage and torn ends is left to `batches`; `intake` gives each log its turn.
"""

import time
import zlib
from pathlib import Path
from typing import Final, Self

import msgspec

from rollscope.model.batch import Batch, decode_batch, encode_batch
from rollscope.store.batches import BatchFollower

__all__ = ["FollowedLog", "LogState"]

_HEAD_BYTES: Final = 256
_PATIENCE_S: Final = 1.0
"""How long rows wait to hear of their parents."""


class LogState(msgspec.Struct, kw_only=True):
    """How far one log has been taken in."""

    offset: int = 0
    head: int = 0
    """CRC-32 of its first bytes, by which a log that was replaced is told apart."""
    head_bytes: int = 0
    process: bytes | None = None
    damaged_bytes: int = 0
    problems: list[str] = []
    is_marked: bool = False
    """Whether its process says when all that is open has been announced."""
    pending: list[bytes] = []
    """Batches that wait for such a mark, as they stand in frames."""


class FollowedLog:
    """A log, and how far it has been taken in."""

    def __init__(self, path: Path, state: LogState) -> None:
        self.state = state
        self.follower = BatchFollower(path, state.offset)
        self.follower.problems = list(state.problems)
        self.follower.damaged_bytes = state.damaged_bytes
        self.reached_ns = 0
        """The time of the latest batch that was read."""
        self.pending = [decode_batch(body) for body in state.pending]
        self._pending_since = time.monotonic()
        self._is_checked = False
        """Whether this reader has made sure that it is still the file that was taken in."""

    @classmethod
    def begin(cls, path: Path) -> Self:
        """Follow a log that is new.

        Raises:
            OSError: It cannot be read.
        """
        log = cls(path, LogState())
        log._note_head()
        return log

    def to_state(self) -> LogState:
        """Give what has to be stored."""
        return msgspec.structs.replace(
            self.state,
            offset=self.follower.offset,
            damaged_bytes=self.follower.damaged_bytes,
            problems=self.follower.problems,
            pending=[encode_batch(batch) for batch in self.pending],
        )

    # --- the file --------------------------------------------------------------------------------

    def checked(self, size: int) -> Self:
        """Give this log, or one that begins anew if its file was replaced.

        Args:
            size: How many bytes the file has.

        Raises:
            OSError: It cannot be read.
        """
        if self._is_checked and size == self.follower.offset:
            return self
        path = self.follower.path
        with path.open("rb") as file:
            head = file.read(self.state.head_bytes)
        if zlib.crc32(head) == self.state.head and size >= self.follower.offset:
            self._note_head()
            return self
        fresh = self.begin(path)
        fresh.follower.problems = self.follower.problems
        fresh.follower.tell(
            f"{path} was replaced after {self.follower.offset} bytes of it had been taken in; what "
            "was taken in is kept, and the new file is read from its beginning"
        )
        return fresh

    def _note_head(self) -> None:
        """Remember how the log begins, as far as it was taken in: a torn end may be cut off."""
        with self.follower.path.open("rb") as file:
            head = file.read(min(_HEAD_BYTES, self.follower.offset))
        self.state.head, self.state.head_bytes = zlib.crc32(head), len(head)
        self._is_checked = True

    # --- batches ---------------------------------------------------------------------------------

    def take(self, batches: list[Batch]) -> list[Batch]:
        """Take batches that were read, and give those that can be made final."""
        if self.state.head_bytes < _HEAD_BYTES:
            self._note_head()
        own = self._own(batches)
        if own:
            self.reached_ns = own[-1].clock.wall_at(own[-1].mono_ns)
        return self._hold_back(own)

    def _own(self, batches: list[Batch]) -> list[Batch]:
        if self.state.process is None:
            self.state.process = batches[0].process
        own = [batch for batch in batches if batch.process == self.state.process]
        if len(own) < len(batches):
            self.follower.tell_foreign()
        return own

    def _hold_back(self, batches: list[Batch]) -> list[Batch]:
        """Add batches, and give those that can be made final.

        A process writes ends as they come and announces what is open a little later. Rows in
        between wait, or a span could be given out before anybody has heard of its parent.
        """
        waiting = self.pending + batches
        ready = 0
        for place, batch in enumerate(waiting, 1):
            self.state.is_marked |= batch.drained
            has_list = batch.heartbeat is not None and batch.heartbeat.open_ids is not None
            is_mark = batch.drained or has_list or batch.end is not None
            if is_mark or (batch.spans is None and ready == place - 1):
                ready = place
        if not self.state.is_marked:
            ready = len(waiting)
        if ready:
            self._pending_since = time.monotonic()
        self.pending = waiting[ready:]
        return waiting[:ready]

    @property
    def has_waited_long(self) -> bool:
        """Whether what waits for a mark has done so long enough."""
        return time.monotonic() - self._pending_since > _PATIENCE_S

    def give_up_waiting(self) -> list[Batch]:
        """Give what has waited in vain: its process is gone, or did not get to its mark."""
        batches, self.pending = self.pending, []
        return batches
