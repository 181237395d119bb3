"""Which traces are sent if not all are: a share of them, and all in which something failed."""

from typing import Final

from rollscope.model.kinds import Status
from rollscope.otlp.export.spans import ExportRow

__all__ = ["Sampler"]

_FAILED: Final = frozenset({Status.ERROR, Status.CANCELLED, Status.LOST, "failed", "timeout"})
_SPACE: Final = 1 << 64


class Sampler:
    """Decides by the trace id alone, as others do, so that all agree on which traces to keep."""

    def __init__(self, share: float) -> None:
        self.keeps_all = share >= 1.0
        self._bound = round(share * _SPACE)
        self.failed: set[bytes] = set()
        """Traces that are kept because of what happened in them."""

    def keeps(self, row: ExportRow) -> bool:
        """Say whether a span is sent."""
        if self.keeps_all:
            return True
        if row.status in _FAILED or row.outcome in _FAILED:
            self.failed.add(row.trace_id)
        low = int.from_bytes(row.trace_id[8:])
        return low < self._bound or row.trace_id in self.failed
