"""Payloads on their way from the buffer into frames, past the function that redacts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument.guard import guarded
from rollscope.instrument.parcel import Importance
from rollscope.instrument.redaction import Redaction
from rollscope.instrument.sanitise import clean_text
from rollscope.instrument.snapshot import snapshot_payload
from rollscope.instrument.waiting import wait_until
from rollscope.model.batch import Payload

if TYPE_CHECKING:
    from rollscope.config import Settings
    from rollscope.instrument.clock import Clock
    from rollscope.instrument.outbox import Outbox
    from rollscope.instrument.packer import Packer

    Given = tuple[bytes, int, int, str, Any]
    """trace id, span id, monotonic time, name, value."""

__all__ = ["Payloads"]

_REDACTION_SHARE: Final = 0.25
"""Part of the memory bound that payloads may take while they wait to be redacted."""
_FRAME_BYTES: Final = 4 * 1024 * 1024


class Payloads:
    """Packs the payloads of one process; in the writer's thread, but for what is said otherwise."""

    def __init__(self, packer: Packer, outbox: Outbox, settings: Settings, clock: Clock) -> None:
        self._packer = packer
        self._outbox = outbox
        self._max_bytes = settings.payload_max_bytes
        self._redaction: Redaction | None = None
        if settings.payloads and settings.redact is not None:
            limit_bytes = int(settings.buffer_mb * _REDACTION_SHARE * 2**20)
            self._redaction = Redaction(settings.redact, clock, outbox.count_drop, limit_bytes)

    def start(self) -> None:
        """Start redacting; in any thread."""
        if self._redaction is not None:
            self._redaction.start()

    def stop(self) -> None:
        """End redacting."""
        if self._redaction is not None:
            self._redaction.stop()

    def wait_redacted(self, timeout_s: float) -> bool:
        """Wait until nothing taken so far waits to be redacted; false if not in time.

        In any thread.
        """
        redaction = self._redaction
        if redaction is None:
            return True
        taken = redaction.handed_over
        return wait_until(lambda: redaction.is_through(taken), timeout_s)

    def is_redacted(self) -> bool:
        """Say whether none waits to be redacted, or has been and waits to be packed."""
        return self._redaction is None or self._redaction.is_idle

    def pack(self, taken: list[Given]) -> None:
        """Pack payloads, or have them redacted and pack those that are ready."""
        self._put(taken if self._redaction is None else self._redaction.exchange(taken))

    def pack_last(self, patience_s: float) -> None:
        """Pack what is being redacted as far as it is ready in time."""
        if self._redaction is not None:
            self._put(self._redaction.finish(patience_s))

    def _put(self, taken: list[Given]) -> None:
        pending: list[Payload] = []
        size = 0
        for trace_id, span_id, mono_ns, name, value in taken:
            try:
                text, cut = snapshot_payload(value, self._max_bytes)
            except Exception:
                self._outbox.count_drop({"payload": 1}, "not_encodable")
                with guarded("encoding a payload"):
                    raise
                continue
            pending.append(Payload(trace_id, span_id, mono_ns, clean_text(name, 256), text, cut))
            size += len(text)
            if size > _FRAME_BYTES:
                self._put_frame(pending)
                pending, size = [], 0
        if pending:
            self._put_frame(pending)

    def _put_frame(self, payloads: list[Payload]) -> None:
        batch = self._packer.payload_batch()
        batch.payloads = payloads
        self._packer.put(batch, Importance.ORDINARY, {"payload": len(payloads)})
