"""The callback: a trainer's steps and evaluations as spans, what it logs as metrics."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from rollscope.errors import MissingExtra
from rollscope.instrument import default
from rollscope.instrument.guard import guarded
from rollscope.instrument.sanitise import clean_text, plain_number
from rollscope.integrations.aftermath import finite, gauge_in_step, record_past_span
from rollscope.integrations.trl.profiling import trace_profiling, untrace_profiling

if TYPE_CHECKING:
    from rollscope.instrument.spans import Span

__all__ = ["RollscopeCallback"]

_UNFIT: Final = re.compile(r"[^A-Za-z0-9._+=@-]+")
_NAME_BYTES: Final = 200
_LONGEST_S: Final = 1e7
_kinds: dict[type, type] = {}
"""The class that is a `TrainerCallback` too, of each class of ours."""


class RollscopeCallback:
    """A `transformers.TrainerCallback` for `callbacks=[RollscopeCallback()]`.

    Args:
        **settings: As for `rollscope.init`, which is called when training begins unless something
            is recorded already. The run is named after the trainer's `run_name`, else after its
            `output_dir`. Recording that began here ends with the training.

    Raises:
        MissingExtra: transformers is not installed.
    """

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        """Make one that is a `TrainerCallback`, whose class is not loaded before."""
        kind = _kinds.get(cls)
        if kind is None:
            kind = type(cls.__name__, (cls, _base()), {"__module__": cls.__module__})
            _kinds[cls] = _kinds[kind] = kind
        made: Self = object.__new__(kind)
        return made

    def __init__(self, **settings: Any) -> None:
        """Keep the settings; nothing is recorded yet."""
        self._settings = settings
        self._is_owner = False
        self._open: list[Span] = []
        """The step, and what is open inside of it."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Begin to record."""
        with guarded("beginning to record for TRL"):
            if not default.enabled():
                default.init(**{**_settings_of(args), **self._settings})
                self._is_owner = default.enabled()
            trace_profiling()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Write everything; stop recording if it was begun here."""
        with guarded("finishing for TRL"):
            self._end_step()
            untrace_profiling()
            if self._is_owner:
                self._is_owner = False
                default.shutdown()
            else:
                default.flush()

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Begin a step."""
        if default.enabled():
            with guarded("beginning a step of TRL"):
                self._end_step()  # one that an error has left
                self._enter(default.step((_steps_done(state) or 0) + 1))

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Begin the step of the optimizer itself."""
        if self._open:
            self._enter(default.span("optimizer.step", category="compute"))

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """End it."""
        if len(self._open) > 1:
            self._open.pop().__exit__(None, None, None)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """End the step."""
        with guarded("ending a step of TRL"):
            self._end_step()

    def on_log(
        self,
        args: Any,  # noqa: ANN401
        state: Any,  # noqa: ANN401
        control: Any,  # noqa: ANN401
        logs: Any = None,  # noqa: ANN401
        **kwargs: Any,
    ) -> None:
        """Set a gauge of the step for each number that is logged, in the main process only."""
        recorder = default._tracer._recorder
        is_main = getattr(state, "is_world_process_zero", True)
        if recorder is None or not is_main or not isinstance(logs, Mapping):
            return
        with guarded("logging for TRL"):
            gauge_in_step(recorder, _numbers(logs), _steps_done(state))

    def on_evaluate(
        self,
        args: Any,  # noqa: ANN401
        state: Any,  # noqa: ANN401
        control: Any,  # noqa: ANN401
        metrics: Any = None,  # noqa: ANN401
        **kwargs: Any,
    ) -> None:
        """Record the evaluation that is over, by the time it says it took."""
        recorder = default._tracer._recorder
        if recorder is None or not isinstance(metrics, Mapping):
            return
        with guarded("recording an evaluation of TRL"):
            for name, taken_s in _numbers(metrics).items():
                if name.endswith("_runtime") and 0 <= taken_s <= _LONGEST_S:
                    end = recorder.clock.mono_ns()
                    start = end - int(taken_s * 1e9)
                    facts = {"metric": name, "after_step": _steps_done(state)}
                    record_past_span(recorder, "evaluate", "compute", start, end, **facts)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Note that a checkpoint was written."""
        default.event("checkpoint", after_step=_steps_done(state))

    def _enter(self, span: Span) -> None:
        self._open.append(span)
        span.__enter__()

    def _end_step(self) -> None:
        while self._open:
            self._open.pop().__exit__(None, None, None)


def _base() -> type:
    try:
        module = importlib.import_module("transformers")
        return module.TrainerCallback  # type: ignore[no-any-return]
    except (ImportError, AttributeError) as error:
        hint = "pip install transformers trl"
        raise MissingExtra(f"transformers cannot be imported ({error}): {hint}") from error


def _settings_of(args: object) -> dict[str, Any]:
    """Give what a trainer's arguments say about its run; variables of the environment win."""
    given = {"role": "trainer", "run": _run_name(args), "rank": getattr(args, "process_index", 0)}
    return {
        name: value
        for name, value in given.items()
        if value is not None and not os.environ.get(f"ROLLSCOPE_{name.upper()}")
    }


def _run_name(args: object) -> str | None:
    """Name the run alike in all processes of a training."""
    named = getattr(args, "run_name", None) or getattr(args, "output_dir", None)
    if not isinstance(named, (str, os.PathLike)):
        return None
    last = os.path.basename(os.fspath(named).rstrip("/"))
    return _UNFIT.sub("_", str(last)).lstrip(".-")[:128] or None


def _steps_done(state: object) -> int | None:
    number = plain_number(getattr(state, "global_step", None))
    return number if type(number) is int else None


def _numbers(logs: Mapping[Any, Any]) -> dict[str, float]:
    numbers = {clean_text(name, _NAME_BYTES): finite(value) for name, value in logs.items()}
    return {name: number for name, number in numbers.items() if number is not None}
