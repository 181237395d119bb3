"""What is learned of spans after their records were made, on its way from the buffers to frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollscope.instrument.buffers import HOSTED
from rollscope.instrument.parcel import Importance
from rollscope.instrument.sanitise import clean_attrs
from rollscope.instrument.taking import SLICE_ROWS, pieces, take_latest
from rollscope.model.batch import Fact

if TYPE_CHECKING:
    from rollscope.instrument.buffers import Buffers, Host
    from rollscope.instrument.clock import Clock
    from rollscope.instrument.outbox import Outbox
    from rollscope.instrument.packer import Packer

__all__ = ["LateFacts"]


class LateFacts:
    """Packs the late facts of one process, in the writer's thread."""

    def __init__(
        self, buffers: Buffers, packer: Packer, outbox: Outbox, clock: Clock, max_bytes: int
    ) -> None:
        self._buffers = buffers
        self._packer = packer
        self._outbox = outbox
        self._clock = clock
        self._max_bytes = max_bytes

    def pack(self) -> None:
        """Pack what users have said, and what a runner has learned of its sessions."""
        taken = take_latest("fact", self._buffers.facts, self._outbox.count_drop)
        for at in range(0, len(taken), SLICE_ROWS):
            try:
                self._put(
                    [
                        Fact(trace_id, span_id, mono_ns, clean_attrs(values, self._max_bytes))
                        for trace_id, span_id, mono_ns, values in taken[at : at + SLICE_ROWS]
                    ]
                )
            except MemoryError:
                self._buffers.count_unrecorded("fact", min(SLICE_ROWS, len(taken) - at))
        host = self._buffers.host
        if host is not None:
            late = take_latest("fact", self._buffers.late, self._outbox.count_drop, HOSTED)
            for piece in pieces(late, SLICE_ROWS * HOSTED):
                self._pack_learned(piece, host)

    def _pack_learned(self, piece: list[Any], host: Host) -> None:
        try:
            facts = host.learn(piece, self._clock.mono_ns())
        except Exception:
            self._outbox.count_drop({"fact": len(piece) // HOSTED}, "not_encodable")
            raise
        self._put(facts)

    def _put(self, facts: list[Fact]) -> None:
        batch = self._packer.batch()
        batch.facts = facts
        self._packer.put(batch, Importance.OWNER, {"fact": len(facts)})
