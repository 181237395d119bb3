"""The module-level API: the default tracer, which `init` sets and `shutdown` clears.

Each function looks at the default tracer first and returns at once when nothing is recorded.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from rollscope.config import resolve
from rollscope.instrument.calls import COUNT, GAUGE, OBSERVE
from rollscope.instrument.spans import NOOP, Session, Span
from rollscope.instrument.tracer import Tracer, decorate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

    from rollscope.instrument.propagation import Attachment
    from rollscope.instrument.sinks import Sink
    from rollscope.instrument.stacks import SpanStack
    from rollscope.model.refs import SpanRef

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound="Callable[..., Any]")

_tracer = Tracer.disabled()
_lock = threading.RLock()


def _renew_lock() -> None:
    """Begin anew in a forked child, where the thread that held the lock may not exist."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


def init(
    *,
    run: str | None = None,
    dir: str | os.PathLike[str] | None = None,
    role: str | None = None,
    rank: int | None = None,
    sink: str | Sink | None = None,
    tags: Mapping[str, str] | None = None,
    payloads: bool | None = None,
    redact: Callable[[str, Any], Any] | str | None = None,
    viewer: bool | int | str | None = None,
    **settings: Any,
) -> Tracer:
    """Start to record; everything is optional and has a `ROLLSCOPE_*` variable too.

    A second call ends the first run and starts another. With `ROLLSCOPE=off` nothing is recorded
    and every call stays a near-free no-op.

    Args:
        run: Name of the run; processes with the same name and directory share it.
        dir: Directory that holds the runs.
        role: What this process does: trainer, rollout, reward, …
        rank: Rank of this process within its role.
        sink: `"file"`, `"none"`, `"ray"`, the address of a server such as `"http://head:7077"`, or
            an object with `open`, `write` and `close`.
        tags: Labels kept with the run.
        payloads: Keep what is given to `payload`.
        redact: Called with the name and value of each payload before it is kept, in a thread
            of its own; gives what is kept instead, None for nothing.
        viewer: Start the live page in a process of its own: `True`, a port, or `"stay"`.
        **settings: The settings of `rollscope.config`, for those who need them.

    Raises:
        SettingError: A setting is unknown or has a value that is not allowed.
    """
    global _tracer
    fakes = {name: settings.pop(name) for name in ("clock", "ids") if name in settings}
    settings |= {
        "run": run,
        "dir": dir,
        "role": role,
        "rank": rank,
        "sink": sink,
        "tags": tags,
        "payloads": payloads,
        "redact": redact,
        "viewer": viewer,
    }
    resolve(settings, os.environ)  # a mistake must not end what is being recorded
    with _lock:
        shutdown()
        _tracer = Tracer(**settings, **fakes)
        return _tracer


def shutdown(timeout_s: float = 5.0) -> bool:
    """Write everything and stop recording; false if the sink did not take all in time."""
    global _tracer
    with _lock:
        ending, _tracer = _tracer, Tracer.disabled()
        return ending.shutdown(timeout_s)


def flush(timeout_s: float = 5.0) -> bool:
    """Wait until everything recorded so far is with the sink; false if it is not in time."""
    return _tracer.flush(timeout_s)


def enabled() -> bool:
    """Say whether anything is recorded."""
    return _tracer._recorder is not None


def step(number: int, /, *, version: int | None = None, **attrs: Any) -> Span:
    """Time one trainer step.

    Args:
        number: The step's number.
        version: The policy version it starts with.
        **attrs: Anything else worth knowing.
    """
    recorder = _tracer._recorder
    return NOOP if recorder is None else recorder.types.new_step(number, version, attrs)


def task(key: str, /, *, group: str | None = None, step: int | None = None, **attrs: Any) -> Span:
    """Time one data item (prompt) being rolled out; it opens a trace of its own.

    Args:
        key: What names the item across steps, such as `"gsm8k/8421"`.
        group: Name of the group whose samples are compared with each other.
        step: The step it is dispatched for; that of the enclosing `step` if not given.
        **attrs: Anything else worth knowing.
    """
    recorder = _tracer._recorder
    return NOOP if recorder is None else recorder.types.new_task(key, group, step, attrs)


def session(
    *,
    sample: int = 0,
    version: int | None = None,
    group: str | None = None,
    step: int | None = None,
    **attrs: Any,
) -> Session:
    """Time one sample of a task; end it with `finish("accepted", reward=1.0)` or the like.

    Args:
        sample: Number of the sample within its task.
        version: The policy version it starts with.
        group: As for `task`.
        step: As for `task`.
        **attrs: Anything else worth knowing.
    """
    recorder = _tracer._recorder
    if recorder is None:
        return NOOP
    return recorder.types.new_session(sample, version, group, step, attrs)


def phase(name: str, /, **attrs: Any) -> Span:
    """Time a named stage of a session: generate, reward, toolcall, env, or any other name.

    Phases may overlap and nest; nothing is merged away.
    """
    recorder = _tracer._recorder
    return NOOP if recorder is None else recorder.new_phase(name, attrs)


def span(name: str, /, category: str = "misc", **attrs: Any) -> Span:
    """Time any other region.

    Args:
        name: What is done.
        category: compute, comm, io, sync, scheduler, instr or misc.
        **attrs: Anything else worth knowing.
    """
    recorder = _tracer._recorder
    return NOOP if recorder is None else recorder.new_span(name, category, attrs)


def state(name: str, /, *, lane: str, **attrs: Any) -> Span:
    """Time an interval on a lane, such as what `trainer_0` or `replica_3` is doing."""
    recorder = _tracer._recorder
    return NOOP if recorder is None else recorder.types.new_state(name, lane, attrs)


@overload
def trace(name: F, /) -> F: ...
@overload
def trace(
    name: str | None = None,
    /,
    *,
    category: str = "misc",
    attrs: Callable[..., dict[str, Any]] | None = None,
) -> Callable[[F], F]: ...
def trace(
    name: F | str | None = None,
    /,
    *,
    category: str = "misc",
    attrs: Callable[..., dict[str, Any]] | None = None,
) -> F | Callable[[F], F]:
    """Make each call of a function a span; serves coroutines and generators too.

    Args:
        name: The span's name; the function's qualified name if not given.
        category: As for `span`.
        attrs: Called with the function's arguments, gives the span's attributes.
    """
    return decorate(lambda: _tracer._recorder, name, category, attrs)


def event(name: str, /, **attrs: Any) -> None:
    """Record an instant."""
    recorder = _tracer._recorder
    if recorder is not None:
        recorder.types.add_event(name, attrs)


def annotate(target: Span | SpanRef | str | None, /, **facts: Any) -> None:
    """Record what became known about a span late, such as a reward or the consuming step.

    Args:
        target: A span, its `ref`, or that as text; None is taken for "not recorded".
        **facts: What became known, such as `reward=0.7, consumed_step=44`.
    """
    _tracer.annotate(target, **facts)


def payload(name: str, value: Any, /) -> None:  # noqa: ANN401  (any payload goes)
    """Keep trajectory text (messages, tokens) with the current span, if payloads are on.

    It is written apart from timing, as JSON, cut at `payload_max_bytes`. The outermost list or map
    is copied now; what is inside must not be changed afterwards.
    """
    _tracer.payload(name, value)


def count(name: str, value: float = 1, /, **labels: Any) -> None:
    """Add to a counter."""
    recorder = _tracer._recorder
    if recorder is not None:
        try:
            recorder.add_call((COUNT, name, value, labels))
        except MemoryError:
            recorder.buffers.count_unrecorded("metric")


def gauge(name: str, value: float, /, **labels: Any) -> None:
    """Set a gauge."""
    recorder = _tracer._recorder
    if recorder is not None:
        try:
            recorder.add_call((GAUGE, name, value, labels))
        except MemoryError:
            recorder.buffers.count_unrecorded("metric")


def observe(name: str, value: float, /, **labels: Any) -> None:
    """Add a value to a histogram."""
    recorder = _tracer._recorder
    if recorder is not None:
        try:
            recorder.add_call((OBSERVE, name, value, labels))
        except MemoryError:
            recorder.buffers.count_unrecorded("metric")


def current() -> Span:
    """Give the current span; where there is none, one that is false and ignores everything."""
    return _tracer.current()


def inject(carrier: MutableMapping[str, str] | None = None) -> dict[str, str]:
    """Write the current context as W3C headers into a carrier, or a new one, and give it."""
    return _tracer.inject(carrier)


def attach(carrier: Mapping[str, object]) -> Attachment:
    """Go on under the span that a carrier names: for good, or for a `with` block.

    Args:
        carrier: Headers as `inject` writes them, in any case; an environment works too.
    """
    return _tracer.attach(carrier)


def carry(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function that runs under the current span in another thread or process.

    For `threading.Thread`, executors, `run_in_executor`, process pools and spawned processes, which
    do not carry context by themselves. In another process it also starts to record.
    """
    return _tracer.carry(function)


def child_env(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Give an environment in which a subprocess that calls `init` joins this run and this span.

    Args:
        env: What to add to; the environment of this process if not given.
    """
    return _tracer.child_env(env)


def stacks() -> list[SpanStack]:
    """Say where every open span hangs now: chains of awaits, or of calls, with file and line."""
    return _tracer.stacks()
