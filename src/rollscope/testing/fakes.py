"""A clock that stands still until told, and ids that count."""

from itertools import count

__all__ = ["FakeClock", "SequentialIds"]


class FakeClock:
    """Both clocks of a process, moved by hand."""

    def __init__(
        self, mono_ns: int = 1_000_000_000, wall_ns: int = 1_700_000_000_000_000_000
    ) -> None:
        self._mono_ns = mono_ns
        self._wall_ns = wall_ns

    def mono_ns(self) -> int:
        """Read the monotonic clock."""
        return self._mono_ns

    def wall_ns(self) -> int:
        """Read the wall clock."""
        return self._wall_ns

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self._mono_ns += round(seconds * 1e9)
        self._wall_ns += round(seconds * 1e9)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back; no time passes."""
        self._wall_ns += round(seconds * 1e9)


class SequentialIds:
    """Ids that count up from 1, the same in every run of a test.

    Args:
        process: Number of the process, which keeps the ids of several fakes apart.
    """

    def __init__(self, process: int = 1) -> None:
        self._process = process
        self._traces = count(1)

    def process_id(self) -> bytes:
        """Give the number of the process."""
        return self._process.to_bytes(8)

    def first_span_id(self) -> int:
        """Begin at 1 in the first process, 2**40 further in each next one."""
        return ((self._process - 1) << 40) + 1

    def trace_id(self) -> bytes:
        """Count traces."""
        return self._process.to_bytes(8) + next(self._traces).to_bytes(8)
