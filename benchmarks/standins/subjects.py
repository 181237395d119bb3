"""What is measured of each stand-in, and of the native calls."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import thread_time_ns
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from overhead.measure import Result, Scale, measure

import rollscope as rs

__all__ = ["SUBJECTS", "Subject"]

Block = Callable[[int], AbstractContextManager[Any]]


class Subject(NamedTuple):
    """Something to measure."""

    run: Callable[[Scale], Result]
    title: str
    beside: str | None = None
    """The native subject that it is compared with."""
    is_limited: bool = True
    """Whether there is a limit to what it may cost."""


def blocks(scale: Scale, block: Block, finish: Callable[[], object]) -> Result:
    """Measure a `with` over nothing."""

    def burst(count: int) -> int:
        began = thread_time_ns()
        for number in range(count):
            with block(number):
                pass
        return thread_time_ns() - began

    return measure(scale, burst, finish)


def calls(scale: Scale, call: Callable[[int], object], finish: Callable[[], object]) -> Result:
    """Measure a call."""

    def burst(count: int) -> int:
        began = thread_time_ns()
        for number in range(count):
            call(number)
        return thread_time_ns() - began

    return measure(scale, burst, finish)


@contextmanager
def native() -> Iterator[None]:
    """Record into a run that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        rs.init(run="bench", dir=folder)
        try:
            yield
        finally:
            rs.shutdown()


@contextmanager
def areal(*, enabled: bool = True) -> Iterator[Any]:
    """Give AReaL's stand-in."""
    from rollscope.integrations import areal as module

    with tempfile.TemporaryDirectory() as folder:
        config: dict[str, Any] = {"experiment_name": "e", "trial_name": "t", "fileroot": folder}
        if enabled:
            config |= {"enabled": True, "session_tracer": {"enabled": True}}
        module.configure(config, rank=0)
        try:
            yield module
        finally:
            module.reset()


@contextmanager
def xtuner(**fields: Any) -> Iterator[Any]:
    """Give XTuner's stand-in."""
    from rollscope.integrations import xtuner as module

    with tempfile.TemporaryDirectory() as folder:
        config = {"enabled": True, "viewer_enabled": False, "output_dir": folder, **fields}
        module.configure_trace(config)
        try:
            yield module
        finally:
            module.close_trace()


@contextmanager
def rl_insight() -> Iterator[Any]:
    """Give RL-Insight's stand-in."""
    from rollscope.integrations import rl_insight as module

    with tempfile.TemporaryDirectory() as folder:
        own = {"dir": folder, "run": "bench"}
        module.init("p", "e", {"server": {"backend": "local"}, "rollscope": own})
        try:
            yield module
        finally:
            module.finish()


def native_span(scale: Scale) -> Result:
    """Measure a native span with two attributes."""
    with native():
        return blocks(
            scale, lambda i: rs.span("pack", category="comm", bytes=i, host="h1"), rs.flush
        )


def native_off(scale: Scale) -> Result:
    """Measure it when nothing is recorded."""
    return blocks(scale, lambda i: rs.span("pack", category="comm", bytes=i, host="h1"), int)


def native_state(scale: Scale) -> Result:
    """Measure a native state with two attributes."""
    with native():
        return blocks(scale, lambda i: rs.state("g", lane="r0", bytes=i, host="h1"), rs.flush)


def native_session(scale: Scale) -> Result:
    """Measure a native task with one session that has one phase and a verdict."""

    def call(number: int) -> None:
        with rs.task(str(number)), rs.session(sample=0) as session:
            with rs.phase("generate"):
                pass
            session.finish("accepted")

    with native():
        return calls(scale.shorten(4), call, rs.flush)


def areal_scope(scale: Scale) -> Result:
    """Measure `trace_scope`."""
    with areal() as module:
        return blocks(
            scale,
            lambda i: module.trace_scope("pack", category="comm", args={"bytes": i, "host": "h1"}),
            lambda: module.save(force=True) or rs.flush(),
        )


def areal_off(scale: Scale) -> Result:
    """Measure `trace_scope` with tracing off."""
    with areal(enabled=False) as module:
        return blocks(
            scale,
            lambda i: module.trace_scope("pack", category="comm", args={"bytes": i, "host": "h1"}),
            int,
        )


def areal_session(scale: Scale) -> Result:
    """Measure a session with one phase, from its registration to its verdict."""
    with areal() as module:

        def call(number: int) -> None:
            module.set_session_id(module.register_session(number))
            with module.trace_session_phase("generate"):
                pass
            module.trace_session_event("mark_finalized", task_id=number, status="accepted")

        return calls(scale.shorten(4), call, lambda: module.save(force=True) or rs.flush())


def xtuner_span(scale: Scale) -> Result:
    """Measure `trace_span` by name."""
    with xtuner(classic="otlp") as module:
        return blocks(
            scale,
            lambda i: module.trace_span("pack", {"bytes": i, "host": "h1"}),
            module.flush_trace,
        )


def xtuner_bare(scale: Scale) -> Result:
    """Measure `trace_span` by name, without the file of old."""
    with xtuner(classic="none") as module:
        return blocks(
            scale,
            lambda i: module.trace_span("pack", {"bytes": i, "host": "h1"}),
            module.flush_trace,
        )


def xtuner_off(scale: Scale) -> Result:
    """Measure `trace_span` with tracing off."""
    from rollscope.integrations import xtuner as module

    return blocks(scale, lambda i: module.trace_span("pack", {"bytes": i, "host": "h1"}), int)


def xtuner_rollout(scale: Scale) -> Result:
    """Measure `trace_span` of a rollout, which is a session with a phase."""
    with xtuner(classic="producer") as module:

        def call(number: int) -> None:
            state = SimpleNamespace(uid=number, status="init", extra_fields={})
            with module.trace_span(state, "xtuner.rollout_worker.generate"):
                state.status = "archived"

        return calls(scale.shorten(4), call, module.flush_trace)


def rl_insight_state(scale: Scale) -> Result:
    """Measure `trace_state`."""
    with rl_insight() as module:
        return blocks(
            scale,
            lambda i: module.trace_state("g", state_lane_id="r0", bytes=i, host="h1"),
            rs.flush,
        )


def rl_insight_off(scale: Scale) -> Result:
    """Measure `trace_state` before `init`."""
    from rollscope.integrations import rl_insight as module

    return blocks(
        scale, lambda i: module.trace_state("g", state_lane_id="r0", bytes=i, host="h1"), int
    )


SUBJECTS: Final = {
    "native_span": Subject(native_span, "rollscope span"),
    "areal_scope": Subject(areal_scope, "areal trace_scope", "native_span"),
    "xtuner_span": Subject(xtuner_span, "xtuner trace_span, OTLP lines", "native_span"),
    "xtuner_bare": Subject(xtuner_bare, "xtuner trace_span, no file of old", "native_span"),
    "native_state": Subject(native_state, "rollscope state"),
    "rl_insight_state": Subject(rl_insight_state, "rl_insight trace_state", "native_state"),
    "native_session": Subject(native_session, "rollscope task, session, phase"),
    "areal_session": Subject(
        areal_session, "areal task, session, phase", "native_session", is_limited=False
    ),
    "xtuner_rollout": Subject(
        xtuner_rollout, "xtuner task, session, phase", "native_session", is_limited=False
    ),
    "native_off": Subject(native_off, "rollscope span, off"),
    "areal_off": Subject(areal_off, "areal trace_scope, off", "native_off"),
    "xtuner_off": Subject(xtuner_off, "xtuner trace_span, off", "native_off"),
    "rl_insight_off": Subject(rl_insight_off, "rl_insight trace_state, off", "native_off"),
}
