"""The block that `trace_scope` times."""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, Self

from rollscope.instrument.guard import pass_over
from rollscope.instrument.spans import NOOP
from rollscope.integrations.areal import state
from rollscope.integrations.areal.profiler import Profiling

if TYPE_CHECKING:
    from types import TracebackType

    from rollscope.instrument.spans import Span
    from rollscope.integrations.areal.perf import PerfTracer

__all__ = ["Scope"]

_NO_STEP: Final = object()
"""Stands for the step around of a scope that names none itself."""


class Scope:
    """Times a block, with `with` or `async with`."""

    __slots__ = (
        "_args",
        "_category",
        "_name",
        "_profiling",
        "_span",
        "_start_ns",
        "_step_before",
        "_tracer",
        "_under",
        "profiler_options",
    )

    def __init__(self, tracer: PerfTracer, name: str, category: str, args: dict[str, Any]) -> None:
        self._tracer, self._name, self._category, self._args = tracer, name, category, args
        self.profiler_options: dict[str, Any] | None = None
        """Set where torch's profiler is to run."""
        self._profiling: Profiling | None = None
        self._under: Span | None = None
        self._span: Span = NOOP
        self._step_before: Any = _NO_STEP

    def __enter__(self) -> Self:
        """Start the clock."""
        try:
            self._begin()
        except Exception as error:
            pass_over("beginning a scope", error)
        self._start_ns = perf_counter_ns()
        return self

    def _begin(self) -> None:
        args, tracer = self._args, self._tracer
        if args:
            step = args.get("global_step")
            if step is not None:
                self._enter_step(step)
        span = tracer.native_span(self._name, self._category, args)
        if self.profiler_options is not None:
            self._profiling = Profiling(self.profiler_options)
        self._span = span.__enter__()

    def _enter_step(self, step: Any) -> None:  # noqa: ANN401  (whatever was given)
        self._step_before = state.step.get()
        state.step.set(step)
        steps, recorder = self._tracer.steps, state.recorder()
        if steps is None or recorder is None or not str(self._name).startswith("train."):
            return
        around = steps.begin(recorder, step)
        current = recorder.current.get()
        if around is not None and not current:
            self._under = current
            recorder.current.set(around)

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Stop the clock and record; an exception passes on."""
        end_ns = perf_counter_ns()
        try:
            self._span.__exit__(error_type, error, traceback)
            self._end(end_ns, error_type)
        except Exception as fault:
            pass_over("ending a scope", fault)

    def _end(self, end_ns: int, error_type: type[BaseException] | None) -> None:
        tracer, args = self._tracer, self._args
        if self._profiling is not None and self._profiling.stop():
            tracer.keep_profile(self._profiling, self._start_ns)
        if self._under is not None:
            recorder = state.recorder()
            if recorder is not None:
                recorder.current.set(self._under)
        step = state.step.get()
        if self._step_before is not _NO_STEP:
            state.step.set(self._step_before)
        exception = None if error_type is None else error_type.__name__
        place = tracer.thread_id()
        row = (self._name, self._start_ns, end_ns, place, self._category, args, exception, step)
        if tracer.enabled:
            tracer.keep(("X", row))

    async def __aenter__(self) -> Self:
        """Do as `__enter__`."""
        return self.__enter__()

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Do as `__exit__`."""
        self.__exit__(error_type, error, traceback)
