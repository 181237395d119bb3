"""A backend of verl's `Tracking`: metrics of a step, and the step itself by its `timing_s/…`.

verl tells of a step when it is over, and of its stages only how long they took. So the step ends
when it is told of, and its stages are placed one behind the other in the order they were told in;
they are marked `placed`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument import default
from rollscope.instrument.guard import guarded
from rollscope.instrument.sanitise import clean_text
from rollscope.integrations.aftermath import gauge_in_step, is_in_step, record_past_span
from rollscope.integrations.verl.running import begin

if TYPE_CHECKING:
    from rollscope.instrument.recorder import Recorder

__all__ = ["TrackingBackend"]

_TIMING: Final = "timing_s/"
_NO_STAGES: Final = frozenset(
    (
        "compute_score",
        "generate_sequences",
        "reshard",
        "start_profile",
        "step",
        "stop_profile",
        "tool_calls",
    )
)
"""What workers tell of their part in a stage, and what is done between steps."""
_NAMES: Final = {"gen": "batch.wait", "update_actor": "trainer.update"}
"""Names that say what a stage is to the trainer: while workers generate, it waits for them."""
_CATEGORIES: Final = {
    "gen": "sync",
    "update_weights": "sync",
    "save_checkpoint": "io",
    "dump_rollout_generations": "io",
}
_NAME_BYTES: Final = 200
_LONGEST_S: Final = 1e7
_STEPS: Final = range(-(2**63), 2**63)


class TrackingBackend:
    """What `Tracking` calls: `log(data, step)`, and `finish()` at the end."""

    def __init__(
        self,
        project_name: object = None,
        experiment_name: object = None,
        config: object = None,
    ) -> None:
        """Begin to record into the run `project-experiment`, unless something is recorded.

        Args:
            project_name: The first part of the run's name.
            experiment_name: The second part.
            config: Taken as `Tracking` gives it; not used.
        """
        self._is_owner = begin(project_name, experiment_name, "trainer")

    def log(self, data: Mapping[str, Any], step: Any) -> None:  # noqa: ANN401  (whatever is told)
        """Record the numbers of a step; with `timing_s/step` among them, the step too."""
        recorder = default._tracer._recorder
        if recorder is None:
            return
        with guarded("logging a step of verl"):
            numbers = _numbers(data)
            copy_context().run(_record, recorder, numbers, _whole(step))

    def finish(self) -> None:
        """Write everything; stop recording if it was begun here."""
        with guarded("finishing for verl"):
            if self._is_owner:
                default.shutdown()
            else:
                default.flush()


def _record(recorder: Recorder, numbers: dict[str, float], step: int | None) -> None:
    taken_s = numbers.get(f"{_TIMING}step")
    is_timed = taken_s is not None and 0 <= taken_s <= _LONGEST_S
    if taken_s is None or not is_timed or step is None or is_in_step(recorder, step):
        gauge_in_step(recorder, numbers, step)
        return
    span = recorder.types.new_step(step, None, {"timed_by": f"{_TIMING}step"})
    span.__enter__()
    end = recorder.clock.mono_ns()
    span.start_ns = end - int(taken_s * 1e9)
    _place_stages(recorder, numbers, span.start_ns, end)
    gauge_in_step(recorder, numbers, None)
    span.__exit__(None, None, None)


def _place_stages(recorder: Recorder, numbers: dict[str, float], start: int, end: int) -> None:
    at = start
    for name, taken_s in numbers.items():
        stage = name.removeprefix(_TIMING)
        if stage == name or "/" in stage or stage in _NO_STAGES:
            continue
        if not 0 <= taken_s <= _LONGEST_S or at + int(taken_s * 1e9) > end:
            continue  # it cannot have been one of these, one behind the other
        until = at + int(taken_s * 1e9)
        shown, category = _NAMES.get(stage, stage), _CATEGORIES.get(stage, "compute")
        facts = {"placed": True} if shown == stage else {"placed": True, "source_name": stage}
        record_past_span(recorder, shown, category, at, until, **facts)
        at = until


def _numbers(data: Mapping[str, Any]) -> dict[str, float]:
    """Give what is a number, or can be made one, as tensors of one element can."""
    numbers: dict[str, float] = {}
    for name, value in data.items():
        number = _number(value)
        if number is not None and math.isfinite(number):
            numbers[clean_text(name, _NAME_BYTES)] = number
    return numbers


def _number(value: Any) -> float | None:  # noqa: ANN401
    if value is None or isinstance(value, (str, bytes)):
        return None
    try:
        return float(value)
    except Exception:  # its conversion is the host's code
        return None


def _whole(step: Any) -> int | None:  # noqa: ANN401
    if isinstance(step, bool) or step is None:
        return None
    try:
        number = int(step)
    except Exception:  # a step that is none
        return None
    return number if number in _STEPS else None
