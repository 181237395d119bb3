"""Stands for `verl.utils.rollout_trace`: agent loops as sessions, what they call as phases."""

from __future__ import annotations

import functools
import inspect
import threading
from contextlib import contextmanager, suppress
from contextvars import ContextVar, Token, copy_context
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from rollscope.instrument import default
from rollscope.instrument.guard import guarded
from rollscope.integrations.verl.operations import facts_of_call, facts_of_result, new_operation
from rollscope.integrations.verl.running import begin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Session, Span

__all__ = ["RolloutTraceConfig", "rollout_trace_attr", "rollout_trace_op"]

F = TypeVar("F", bound="Callable[..., Any]")
V = TypeVar("V")

_BACKEND: Final = "rollscope"
_is_traced: ContextVar[bool] = ContextVar("rollscope-verl-traced", default=True)


class RolloutTraceConfig:
    """The one configuration of a process, as verl asks for it."""

    _instance: RolloutTraceConfig | None = None

    backend: str | None = None
    client: object = None
    token2text: bool = False
    project_name: str | None = None
    experiment_name: str | None = None
    max_samples_per_step_per_worker: int | None = None
    _initialized: bool = False

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Give the one there is."""
        if not isinstance(cls._instance, cls):
            cls._instance = super().__new__(cls)
        return cls._instance

    @classmethod
    def get_instance(cls) -> Self:
        """Give the one there is."""
        return cls()

    @classmethod
    def init(
        cls,
        project_name: str | None = None,
        experiment_name: str | None = None,
        backend: str | None = None,
        token2text: bool = False,
        max_samples_per_step_per_worker: int | None = None,
    ) -> None:
        """Begin to record, once per process, whichever backend is named.

        Args:
            project_name: The first part of the run's name.
            experiment_name: The second part.
            backend: Taken, and not used: everything goes into the run.
            token2text: Taken, and not used.
            max_samples_per_step_per_worker: How many samples verl wants to have traced.
        """
        config = cls.get_instance()
        if config._initialized:
            return
        config.backend, config.token2text = _BACKEND, token2text
        config.project_name, config.experiment_name = project_name, experiment_name
        config.max_samples_per_step_per_worker = max_samples_per_step_per_worker
        config._initialized = True
        begin(project_name, experiment_name, "rollout")

    @classmethod
    def get_backend(cls) -> str | None:
        """Give the name of the backend; None before `init`."""
        return cls.get_instance().backend

    @classmethod
    def get_client(cls) -> object:
        """Give None: there is no client."""
        return cls.get_instance().client

    @classmethod
    def enable_token2text(cls) -> bool:
        """Say what `init` was given."""
        return cls.get_instance().token2text

    @classmethod
    def reset(cls) -> None:
        """Let `init` be called again."""
        cls._instance = None


@contextmanager
def rollout_trace_attr(
    sample_index: Any = None,  # noqa: ANN401  (whatever names a sample)
    step: Any = None,  # noqa: ANN401
    rollout_n: Any = None,  # noqa: ANN401
    name: str = "rollout_trace",
    validate: bool = False,
    trace: bool = True,
) -> Iterator[None]:
    """Make the block one session: sample `rollout_n` of the task `sample_index`.

    Args:
        sample_index: The data item; without it there is no session.
        step: The step it is dispatched for.
        rollout_n: Which of its samples.
        name: What it is called.
        validate: Whether it is for validation, whose items are tasks of their own.
        trace: Whether to trace what is inside at all.
    """
    recorder = default._tracer._recorder
    if recorder is None:
        yield
    elif not trace:
        token = _is_traced.set(False)
        try:
            yield
        finally:
            _undo(_is_traced, token)
    elif sample_index is None:
        yield
    else:
        key = f"validate/{sample_index}" if validate else str(sample_index)
        session = _new_session(recorder, step, rollout_n, name, validate)
        with _tasks.session(recorder, (key, session.own_scope[0]), session):
            yield


def rollout_trace_op(func: F) -> F:
    """Make each call of a method a phase (`generate`, `toolcall`, `reward`) or a span."""

    def operation(owner: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Span | None:
        recorder = default._tracer._recorder
        if recorder is None or not _is_traced.get():
            return None
        attrs: dict[str, Any] = {}
        with guarded("reading a call of verl"):
            attrs = facts_of_call(func, owner, args, kwargs)
        return new_operation(recorder, func, attrs)

    def take(span: Span, result: object) -> None:
        with guarded("reading a result of verl"):
            facts_of_result(span, result)

    @functools.wraps(func)
    async def later(self: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        span = operation(self, args, kwargs)
        if span is None:
            return await func(self, *args, **kwargs)
        with span:
            result = await func(self, *args, **kwargs)
            take(span, result)
            return result

    @functools.wraps(func)
    def now(self: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        span = operation(self, args, kwargs)
        if span is None:
            return func(self, *args, **kwargs)
        with span:
            result = func(self, *args, **kwargs)
            take(span, result)
            return result

    return later if inspect.iscoroutinefunction(func) else now  # type: ignore[return-value]


def _new_session(
    recorder: Recorder, step: object, rollout_n: object, name: str, validate: bool
) -> Session:
    attrs: dict[str, Any] = {"source_name": name}
    if validate:
        attrs["validate"] = True
    sample = _whole(rollout_n)
    if sample is None and rollout_n is not None:
        attrs["rollout_n"] = str(rollout_n)
    return recorder.types.new_session(sample or 0, None, None, _whole(step), attrs)


def _undo(variable: ContextVar[V], token: Token[V]) -> None:
    """Set a variable back; not where the block is left in another context than it was entered."""
    with suppress(ValueError):
        variable.reset(token)


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = int(str(value))
    except ValueError:
        return None
    return number if -(2**63) <= number < 2**63 else None


class _Tasks:
    """The tasks that have open sessions: samples of one item and step share theirs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[Any, ...], tuple[Span, int]] = {}

    @contextmanager
    def session(self, recorder: Recorder, key: tuple[Any, ...], session: Session) -> Iterator[None]:
        """Have a session open in its task for a block."""
        whole_key = (recorder.process, *key)
        task = self._join(recorder, whole_key)
        token = recorder.current.set(task)
        try:
            with session:
                yield
        finally:
            _undo(recorder.current, token)
            self._leave(whole_key)

    def _join(self, recorder: Recorder, key: tuple[Any, ...]) -> Span:
        with self._lock:
            task, count = self._open.get(key, (None, 0))
            if task is None:
                _, name, step = key
                task = recorder.types.new_task(name, None, step, {})
                copy_context().run(task.__enter__)
            self._open[key] = (task, count + 1)
            return task

    def _leave(self, key: tuple[Any, ...]) -> None:
        with self._lock:
            task, count = self._open.pop(key)
            if count > 1:
                self._open[key] = (task, count - 1)
            else:
                copy_context().run(task.__exit__, None, None, None)


_tasks = _Tasks()
