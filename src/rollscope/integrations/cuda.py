"""Spans with the time on the GPU, not only the time it took to hand the work over.

`with cuda.span("forward"):` is a span of the calling thread, and beside it a state on the lane of
the device from the moment the GPU began the work to the moment it was done. The GPU is never waited
for: events are looked at when later spans end, and at `flush`. Without CUDA it is a plain span.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from rollscope.instrument import default
from rollscope.instrument.guard import guarded, pass_over
from rollscope.instrument.pastends import record_past

if TYPE_CHECKING:
    from types import TracebackType

    from rollscope.instrument.recorder import Recorder

__all__ = ["DeviceSpan", "flush", "span"]

_MOST_PENDING: Final = 4096
"""Regions that the GPU has not finished; beyond them new ones are not timed on it, and counted."""
_ANCHOR_NS: Final = 5_000_000_000
"""How long an anchor is good for: events count milliseconds since it in single precision."""

Torch = Any
"""The module, which is never imported here."""


class _Region(NamedTuple):
    name: str
    attrs: dict[str, Any]
    start: Any
    end: Any
    device: int


class _Anchor(NamedTuple):
    """An event of the device, and when it was by the recorder's monotonic clock."""

    event: Any
    at_ns: int


class _Devices:
    """What the GPUs of this process have been given and have not been seen to finish."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: deque[_Region] = deque()
        self._anchors: dict[int, _Anchor] = {}
        self.untimed = 0

    def add(self, region: _Region) -> None:
        """Take a region whose end was handed over."""
        if len(self._pending) >= _MOST_PENDING:
            self.untimed += 1
            return
        self._pending.append(region)

    def anchor(self, torch: Torch, recorder: Recorder, device: int) -> None:
        """See that the device has an anchor; the first one costs a wait for the GPU."""
        if device not in self._anchors:
            self._anchors[device] = _new_anchor(torch, recorder, device)

    def settle(self, torch: Torch, recorder: Recorder) -> None:
        """Record what the GPUs have finished; nothing is waited for."""
        if not self._lock.acquire(blocking=False):
            return  # another thread is at it
        try:
            while self._pending and self._pending[0].end.query():
                region = self._pending.popleft()
                self._renew(torch, recorder, region, self._record(recorder, region))
        finally:
            self._lock.release()

    def _record(self, recorder: Recorder, region: _Region) -> int:
        """Record a region, and say when it ended."""
        anchor = self._anchors[region.device]
        start_ns = anchor.at_ns + round(anchor.event.elapsed_time(region.start) * 1e6)
        end_ns: int = max(
            anchor.at_ns + round(anchor.event.elapsed_time(region.end) * 1e6), start_ns
        )
        state = recorder.types.new_state(region.name, f"cuda:{region.device}", region.attrs)
        record_past(recorder, state, start_ns, end_ns)
        return end_ns

    def _renew(self, torch: Torch, recorder: Recorder, region: _Region, end_ns: int) -> None:
        """Take a new anchor where the old one has aged: afresh if that needs no waiting.

        While the device has work, the end that was just seen serves: the clocks drift apart by
        less than it takes to notice until there is a pause.
        """
        device = region.device
        if end_ns - self._anchors[device].at_ns > _ANCHOR_NS:
            is_idle = torch.cuda.current_stream(device).query()
            self._anchors[device] = (
                _new_anchor(torch, recorder, device) if is_idle else _Anchor(region.end, end_ns)
            )


_devices = _Devices()


def _new_anchor(torch: Torch, recorder: Recorder, device: int) -> _Anchor:
    with torch.cuda.device(device):
        event = torch.cuda.Event(enable_timing=True)
        before_ns = recorder.clock.mono_ns()
        event.record()
        event.synchronize()
        return _Anchor(event, (before_ns + recorder.clock.mono_ns()) // 2)


class DeviceSpan:
    """A span of a thread and of the device that it gives work to."""

    def __init__(self, name: str, category: str, attrs: dict[str, Any]) -> None:
        self._span = default.span(name, category=category, **attrs)
        self._name = name
        self._attrs = attrs
        self._torch: Any = None
        self._recorder: Recorder | None = None
        self._start: Any = None

    def __enter__(self) -> Self:
        self._span.__enter__()
        self._recorder = default._tracer._recorder
        torch = sys.modules.get("torch")
        if torch is not None and self._recorder is not None:
            try:
                if torch.cuda.is_available() and torch.cuda.is_initialized():
                    _devices.anchor(torch, self._recorder, torch.cuda.current_device())
                    self._start = torch.cuda.Event(enable_timing=True)
                    self._start.record()
                    self._torch = torch
            except Exception as error:  # torch is the host's
                pass_over("timing work on a GPU", error)
        return self

    def set(self, **attrs: Any) -> None:
        """Add facts, as to any span."""
        self._span.set(**attrs)

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self._span.__exit__(error_type, error, traceback)
        if self._torch is None or self._recorder is None:
            return
        with guarded("timing work on a GPU"):
            end = self._torch.cuda.Event(enable_timing=True)
            end.record()
            device = self._torch.cuda.current_device()
            _devices.add(_Region(self._name, self._attrs, self._start, end, device))
            _devices.settle(self._torch, self._recorder)


def span(name: str, *, category: str = "compute", **attrs: Any) -> DeviceSpan:
    """Time a block on the calling thread and on the current CUDA device.

    Args:
        name: What is done.
        category: As for `rollscope.span`.
        **attrs: Anything else worth knowing.
    """
    return DeviceSpan(name, category, attrs)


@guarded("timing work on a GPU")
def flush() -> None:
    """Wait for the GPU and record everything that it was given, as at the end of a program."""
    torch, recorder = sys.modules.get("torch"), default._tracer._recorder
    if torch is not None and recorder is not None and _devices._pending:
        torch.cuda.synchronize()
        _devices.settle(torch, recorder)
