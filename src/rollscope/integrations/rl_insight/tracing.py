"""States on lanes, operations, and spans that others have timed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from rollscope.instrument.guard import guarded
from rollscope.instrument.sanitise import clean_text
from rollscope.instrument.spans import NOOP, Span
from rollscope.instrument.tracer import decorate
from rollscope.integrations.rl_insight import state
from rollscope.integrations.rl_insight.finished import record_finished
from rollscope.integrations.rl_insight.sessions import is_session_lane
from rollscope.integrations.wholes import whole

__all__ = ["trace_op", "trace_span", "trace_state"]

F = TypeVar("F", bound=Callable[..., Any])

_SEGMENT: Final = "monitor.trace_segment"
_SOURCE: Final = "monitor.trace_source"
_RESERVED: Final = (_SEGMENT, "state_name", "state_lane_id")
_CONTENT: Final = ("content", "reasoning", "tool_args")
"""What is said to and by models: kept with payloads only."""
_LANE_BYTES: Final = 512
_TOKENS: Final = {"prompt_tokens": "tokens_in", "completion_tokens": "tokens_out"}


def trace_state(state_name: str, state_lane_id: object = None, **labels: Any) -> Span:
    """Show a state on a lane for the length of a block; `with` and `async with` both work.

    Every entry is recorded, also where states of one lane overlap.

    Args:
        state_name: What is done.
        state_lane_id: The lane; this process if not given.
        **labels: Anything else worth knowing.
    """
    recorder = state.recorder()
    active = state.current
    if recorder is None or active is None:
        return NOOP
    labels.pop(_SEGMENT, None)
    labels.update(active.labels)
    if type(state_lane_id) is str:
        lane = state_lane_id
    else:
        lane = str(os.getpid()) if state_lane_id is None else clean_text(state_lane_id, _LANE_BYTES)
    return recorder.types.new_state(state_name, lane, labels)


def trace_op(
    name: str | None = None,
    *,
    extra_labels: Callable[[Any], Mapping[str, Any]] | None = None,
    **static_labels: Any,
) -> Callable[[F], F]:
    """Make each call of a function a span; serves coroutines and generators too.

    Args:
        name: The span's name; the function's qualified name if not given.
        extra_labels: Called with the first positional argument, gives more labels.
        **static_labels: On every span.
    """

    def attrs(*args: Any, **_: Any) -> dict[str, Any]:
        labels = dict(static_labels)
        if extra_labels is not None and args:
            try:
                labels.update(extra_labels(args[0]))
            except Exception as error:  # the host's code; its call must go on
                text = f"extra_labels of trace_op failed, and is left out: {error!r}"
                warnings.warn(text, RuntimeWarning, stacklevel=4)
        active = state.current
        return labels if active is None else {**labels, **active.labels}

    # With a name or without, it gives a decorator; `@trace_op` alone gets the function itself.
    return decorate(state.recorder, name, "misc", attrs)  # type: ignore[return-value]


def trace_span(
    *, name: str, start_time_ns: int, end_time_ns: int, attributes: Mapping[str, Any]
) -> None:
    """Record a span that is over.

    One that names the session of an agent loop goes to that session; a `state_interval` to its
    lane; any other below the current span.

    Args:
        name: What was done.
        start_time_ns: Since the epoch.
        end_time_ns: Since the epoch; if it is before the start, the span is kept and flagged.
        attributes: Anything else worth knowing.
    """
    recorder = state.recorder()
    active = state.current
    if recorder is None or active is None:
        return
    with guarded("trace_span"):
        attrs = {**{str(key): value for key, value in attributes.items()}, **active.labels}
        lane = attrs.get("state_lane_id")
        if is_session_lane(lane) or attrs.get(_SOURCE):
            _record_of_session(name, start_time_ns, end_time_ns, attrs)
        elif attrs.get(_SEGMENT) == "state_interval":
            span = recorder.types.new_state(
                str(attrs.get("state_name") or name), str(lane or os.getpid()), _without(attrs)
            )
            record_finished(recorder, span, start_time_ns, end_time_ns)
        else:
            span = recorder.new_span(name, "misc", _without(attrs))
            record_finished(recorder, span, start_time_ns, end_time_ns)


def _record_of_session(name: str, start_ns: int, end_ns: int, attrs: dict[str, Any]) -> None:
    recorder, active = state.recorder(), state.current
    if recorder is None or active is None:
        return
    if not recorder.settings.payloads:
        attrs = {key: value for key, value in attrs.items() if key not in _CONTENT}
    attrs = {_TOKENS.get(key, key): value for key, value in attrs.items() if value != ""}
    found = active.sessions.find(str(attrs.get("state_lane_id", "")))
    kept = {key: value for key, value in attrs.items() if key != "state_lane_id"}
    is_turn = name == "gateway_generation" or name.startswith("turn_")
    if is_turn:
        span = recorder.new_phase("generate", kept | {"source_name": name})
    else:
        span = recorder.new_span(name, "misc", kept)
    place = None
    if found is None:
        key, group = attrs.get("sample"), attrs.get("uid")
        place = (
            whole(attrs.get("global_steps")),
            None if key is None else str(key),
            None if group is None else str(group),
            whole(attrs.get("session")),
        )
    record_finished(recorder, span, start_ns, end_ns, found, place)


def _without(attrs: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attrs.items() if key not in _RESERVED}
