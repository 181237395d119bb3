"""Frames for the outbox: numbered, dated, and packed from batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollscope.errors import FrameError
from rollscope.instrument.guard import tell_once
from rollscope.instrument.parcel import Held, Importance, Parcel, count_held
from rollscope.instrument.sinks import Frame
from rollscope.model.batch import SCHEMA_VERSION, Batch, encode_batch
from rollscope.model.frames import pack_frame

if TYPE_CHECKING:
    from rollscope.instrument.clock import Clock, WallLine
    from rollscope.instrument.outbox import Outbox

__all__ = ["Packer"]


class Packer:
    """Makes the frames of one process."""

    def __init__(self, outbox: Outbox, clock: Clock, wall: WallLine, process: bytes) -> None:
        self._outbox = outbox
        self._clock = clock
        self._wall = wall
        self._process = process
        self._frames = 0
        self._payload_frames = 0

    @property
    def has_begun(self) -> bool:
        """Whether the log has a frame."""
        return self._frames > 0

    def batch(self) -> Batch:
        """Begin a frame of the log, to be put; a gap in their numbers means a loss."""
        self._frames += 1
        return self._dated(self._frames - 1)

    def payload_batch(self) -> Batch:
        """Begin a frame of payloads, which stand apart."""
        self._payload_frames += 1
        return self._dated(-self._payload_frames)

    def _dated(self, number: int) -> Batch:
        return Batch(
            schema=SCHEMA_VERSION,
            process=self._process,
            number=number,
            mono_ns=self._clock.mono_ns(),
            clock=self._wall.renew_if_due(),
        )

    def put(self, batch: Batch, importance: Importance, held: Held) -> None:
        """Pack a frame and send it off; one that is too large is counted as lost."""
        try:
            data = pack_frame(encode_batch(batch))
        except FrameError as error:
            self._outbox.count_drop(count_held(held), "too_large")
            tell_once("too_large", "Rollscope drops records that fit into no frame: %s", error)
            return
        self._outbox.put(Parcel(Frame(data, bool(batch.payloads)), importance, held))
