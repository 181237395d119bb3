"""Other recorders, each with the closest it has to a span with two attributes and a parent."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import thread_time_ns
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING
from unittest.mock import MagicMock, patch

from overhead.measure import Result, Scale, measure

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

__all__ = ["areal", "opentelemetry", "viztracer"]

_NOT_INSTALLED = "not installed (make bench)"
_MOST_STAND_INS = 30


def opentelemetry(scale: Scale) -> Result:
    """Measure OpenTelemetry's SDK with its batch processor and an exporter that does nothing.

    Encoding and sending are left out: what is measured is the least that any exporter costs.
    """
    try:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import (
            BatchSpanProcessor,
            SpanExporter,
            SpanExportResult,
        )
    except ImportError:
        return Result(problem=_NOT_INSTALLED)

    scale = scale.shorten(5)
    exported = 0

    class CountingExporter(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            nonlocal exported
            exported += len(spans)
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    # The queue holds several bursts, so that nothing is dropped.
    processor = BatchSpanProcessor(CountingExporter(), max_queue_size=10 * scale.burst)
    provider.add_span_processor(processor)
    start_span = provider.get_tracer("bench").start_as_current_span

    def burst(count: int) -> int:
        with start_span("weights.sync"):
            began = thread_time_ns()
            for i in range(count):
                with start_span("weights.pack", attributes={"bytes": i, "host": "h1"}):
                    pass
            return thread_time_ns() - began

    result = measure(scale, burst, provider.force_flush)
    provider.shutdown()
    result.figures["dropped"] = [scale.bursts * (scale.burst + 1) - exported]
    return result


def viztracer(scale: Scale) -> Result:
    """Measure VizTracer's `log_event`, which knows neither attributes nor parents."""
    try:
        from viztracer import VizTracer  # type: ignore[import-untyped]
    except ImportError:
        return Result(problem=_NOT_INSTALLED)

    scale = scale.shorten(2)
    # Not started: that would trace each function call too. Raw dumps are its cheapest way out.
    tracer = VizTracer(tracer_entries=2 * scale.burst, verbose=0, file_info=False, dump_raw=True)

    def burst(count: int) -> int:
        began = thread_time_ns()
        for _ in range(count):
            with tracer.log_event("weights.pack"):
                pass
        return thread_time_ns() - began

    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "trace.json")

        def finish() -> None:
            tracer.save(str(file))
            tracer.clear()

        result = measure(scale, burst, finish)
        kept = file.read_bytes().count(b"weights.pack")
    if kept != scale.burst:
        return Result(problem=f"kept {kept} of {scale.burst} events")
    return result


def areal(scale: Scale, checkout: Path | None) -> Result:
    """Measure AReaL's `perf_tracer`, from a checkout of AReaL 1.0.

    Args:
        scale: As for all.
        checkout: Root of the checkout.
    """
    if checkout is None:
        return Result(problem="not given (--areal PATH)")
    try:
        tracer = _load_alone(checkout / "areal" / "utils" / "perf_tracer.py")
        return _measure_areal(scale.shorten(2), tracer)
    except Exception as error:  # anything may be different in another version
        return Result(problem=f"does not work with this checkout: {type(error).__name__}: {error}")


def _load_alone(file: Path) -> ModuleType:
    """Load a module without what it imports and is not installed, such as torch and AReaL itself.

    Recording a span uses nothing of it: the module's own code is all that is measured.
    """
    stand_ins: dict[str, MagicMock] = {}
    for _ in range(_MOST_STAND_INS):
        spec = importlib.util.spec_from_file_location("areal_perf_tracer", file)
        if spec is None or spec.loader is None:
            break
        module = importlib.util.module_from_spec(spec)
        try:
            with patch.dict(sys.modules, {**stand_ins, spec.name: module}):
                spec.loader.exec_module(module)
        except ModuleNotFoundError as missing:
            stand_ins[str(missing.name)] = MagicMock()
            continue
        return module
    raise ImportError(f"{file} cannot be loaded")


def _measure_areal(scale: Scale, tracer: ModuleType) -> Result:
    with tempfile.TemporaryDirectory() as directory:
        config = SimpleNamespace(
            enabled=True,
            experiment_name="bench",
            trial_name="bench",
            fileroot=directory,
            save_interval=1,
            profile_steps=None,
            session_tracer=None,
        )
        # Said again, because a stand-in may have had a say in it; its answer is slow to read.
        tracer.configure(config, rank=0, role="actor").set_enabled(True)
        trace_scope, category = tracer.trace_scope, tracer.Category.COMM

        def burst(count: int) -> int:
            with trace_scope("weights.sync", category=category):
                began = thread_time_ns()
                for i in range(count):
                    with trace_scope(
                        "weights.pack", category=category, args={"bytes": i, "host": "h1"}
                    ):
                        pass
                return thread_time_ns() - began

        result = measure(scale, burst, lambda: tracer.save(force=True))
        size, kept = _count_events(Path(directory))
    if kept != scale.bursts * scale.burst:
        return Result(problem=f"kept {kept} of {scale.bursts * scale.burst} events")
    result.figures["disk_bytes"] = [size / kept]
    return result


def _count_events(directory: Path) -> tuple[int, int]:
    """Give the size of what AReaL wrote and how many of the measured events are in it."""
    contents = [file.read_bytes() for file in directory.rglob("*.jsonl")]
    return sum(map(len, contents)), sum(text.count(b"weights.pack") for text in contents)
