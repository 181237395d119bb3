"""Spans as ranges of torch's profiler, and of NVTX: what a GPU does under which of our names.

`install()` has each step, span, phase and state open a `torch.profiler.record_function` while
torch's profiler runs, and a range of NVTX if asked for. torch is used once the program has loaded
it itself. Tasks and sessions get no ranges: hundreds of them overlap on one thread.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any, Final, Self

from rollscope.errors import MissingExtra
from rollscope.instrument import default
from rollscope.instrument.guard import guarded, pass_over
from rollscope.instrument.sanitise import clean_text
from rollscope.model.kinds import KIND_CODES, Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rollscope.instrument.binding import SpanTypes
    from rollscope.instrument.spans import Span

    Ranges = list[Callable[[], object]]
    """What ends the ranges of one span."""

__all__ = ["install", "uninstall"]

_STEP: Final = KIND_CODES[Kind.STEP]
_NAME_BYTES: Final = 200


def install(*, nvtx: bool = False) -> None:
    """Have spans open ranges, those of the recorder that runs and of those to come.

    Args:
        nvtx: Open ranges of NVTX too, for `nsys`; they are opened whether or not anybody looks.

    Raises:
        MissingExtra: torch is not installed.
    """
    if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
        raise MissingExtra("torch is not installed: pip install torch")
    _wear(_Wrapping(nvtx).dress)


def uninstall() -> None:
    """Have spans open no more ranges. Those that are open are ended with their spans."""
    _wear(None)


def _wear(dress: Callable[[SpanTypes], SpanTypes] | None) -> None:
    from rollscope.instrument.recorder import Recorder

    Recorder.dress = None if dress is None else staticmethod(dress)
    active = default._tracer._recorder
    if active is not None:
        active.wear()


class _Wrapping:
    """Makes spans that open ranges out of those of a recorder."""

    def __init__(self, nvtx: bool) -> None:
        self._nvtx = nvtx
        self._kinds: dict[type[Span], type[Span]] = {}
        self._open: dict[int, Ranges] = {}
        """By span id: spans have no room for more than they hold."""

    def dress(self, types: SpanTypes) -> SpanTypes:
        """Give the constructors of a recorder so that what they make opens ranges."""
        return types._replace(
            new_span=self._wrap(types.new_span),
            new_phase=self._wrap(types.new_phase),
            new_state=self._wrap(types.new_state),
            new_step=self._wrap(types.new_step),
        )

    def _wrap(self, new: Callable[..., Span]) -> Callable[..., Span]:
        def new_ranged(*args: Any) -> Span:
            span = new(*args)
            kind = type(span)
            span.__class__ = self._kinds.get(kind) or self._add_kind(kind)
            return span

        return new_ranged

    def _add_kind(self, kind: type[Span]) -> type[Span]:
        opened = self._open

        class Ranged(kind):  # type: ignore[misc,valid-type]  # of a recorder
            __slots__ = ()

            def __enter__(self) -> Self:
                was = self.id
                super().__enter__()
                torch = sys.modules.get("torch")
                if torch is not None and self.id != was:
                    try:
                        if ranges := begin(torch, self):
                            opened[self.id] = ranges
                    except Exception as error:  # torch is the host's
                        pass_over("opening a range of torch", error)
                return self

            def __exit__(
                self,
                error_type: type[BaseException] | None,
                error: BaseException | None,
                traceback: TracebackType | None,
                /,
            ) -> None:
                if self.id in opened:
                    with guarded("ending a range of torch"):
                        for end in reversed(opened.pop(self.id)):
                            end()
                super().__exit__(error_type, error, traceback)

        begin = self._begin
        self._kinds[kind] = Ranged
        return Ranged

    def _begin(self, torch: Any, span: Span) -> Ranges:  # noqa: ANN401  (torch, never imported)
        ranges: Ranges = []
        if self._nvtx:
            # Not push and pop: spans of tasks on one event loop end in any order.
            nvtx = torch.cuda.nvtx
            handle = nvtx.range_start(_shown(span))
            ranges.append(lambda: nvtx.range_end(handle))
        if _is_profiling(torch):
            region = torch.profiler.record_function(_shown(span))
            region.__enter__()
            ranges.append(lambda: region.__exit__(None, None, None))
        return ranges


def _is_profiling(torch: Any) -> bool:  # noqa: ANN401
    """Say whether the profiler runs: a region costs microseconds, also if nobody looks."""
    ask = getattr(getattr(torch, "autograd", None), "_profiler_enabled", None)
    return hasattr(torch, "profiler") and (ask is None or bool(ask()))


def _shown(span: Span) -> str:
    name = clean_text(span.name, _NAME_BYTES)
    return f"{name} {span.scope.step}" if span.what == _STEP else name
