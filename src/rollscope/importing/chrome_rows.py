"""Rows from the events of a Chrome trace that others wrote."""

import re
from bisect import bisect_right
from typing import Any, Final, NamedTuple

from rollscope.importing.chrome_events import ChromeEvent
from rollscope.importing.chrome_survey import TraceFile
from rollscope.importing.chrome_tracks import Track
from rollscope.importing.chrome_writers import Writer
from rollscope.importing.values import stable_bytes, stable_id
from rollscope.instrument.sanitise import clean_text
from rollscope.model.kinds import EVENT_CODE, KIND_CODES, SPAN_CODES, STATUS_CODES, Kind, Status
from rollscope.otlp.aliases import whole_number
from rollscope.otlp.rows import Row, fit_attrs

__all__ = ["Made", "make_row"]

_OK: Final = STATUS_CODES[Status.OK]
_OPEN: Final = STATUS_CODES[Status.OPEN]
_ERROR: Final = STATUS_CODES[Status.ERROR]
_STEP: Final = KIND_CODES[Kind.STEP]
_MISC: Final = SPAN_CODES["misc"]
_STEP_NAMES: Final = ("rollscope.step", "global_step", "global_steps", "step", "train_step")
_MOST_ATTRS: Final = 128
_CATEGORIES: Final = {
    "cpu_op": SPAN_CODES["compute"],
    "kernel": SPAN_CODES["compute"],
    "gpu_memcpy": SPAN_CODES["io"],
    "gpu_memset": SPAN_CODES["io"],
    **SPAN_CODES,
}
"""What torch's profiler calls what its spans spend their time on, beside our own words."""
_CLASS: Final = re.compile(r"<class '(.{1,256})'>")
_COLLECTIVES: Final = ("nccl", "c10d::")
_PROFILER_STEP: Final = "ProfilerStep#"


class Made(NamedTuple):
    """A row, and what tells it from every other."""

    row: Row
    content_id: int
    """Equal for two events only if they say the same."""


def make_row(track: Track, event: ChromeEvent, end_ns: int | None, *, parent_id: int = 0) -> Made:
    """Make the row of a span or an instant.

    Args:
        track: Where it stands.
        event: The event, or the one that begins the span; it has a time.
        end_ns: When it ends; the start for an instant, None for what has no end.
        parent_id: What it is part of, if that is known.
    """
    start_ns = event.start_ns or 0
    is_instant = event.phase in "iIRnTp"
    content_id = stable_id(
        track.domain.name,
        repr((track.tid, event.name, event.phase, start_ns, event.length_ns, event.args)),
    )
    attrs = _attrs(track, event)
    step = _take_step(attrs)
    if step is None and track.file.steps:
        step = _step_at(track.file, start_ns)
    what = EVENT_CODE if is_instant else _what(event)
    reason = ""
    name, own_id, trace_id = event.name or "unnamed", content_id, track.trace_id
    if track.file.writer == Writer.RAY:
        trace_id, task_id = _ray_task(event, trace_id)
        if "attempt_number" in attrs:
            attrs["attempt"] = attrs.pop("attempt_number")
        reason = _ray_failure(attrs)
        is_task = event.category.startswith("task::")
        own_id = task_id if is_task and task_id else own_id
        parent_id = 0 if is_task else task_id or parent_id
    elif what == _STEP:
        step, attrs["source_name"] = int(name.removeprefix(_PROFILER_STEP)), name
        name = str(Kind.STEP)
    if end_ns is not None and end_ns < start_ns:
        attrs["clock_suspect"], attrs["source_end_ns"], end_ns = True, end_ns, start_ns
    status = _OPEN if end_ns is None else (_ERROR if reason else _OK)
    fields = {} if is_instant else {"lane": track.lane}
    if reason:
        fields["reason"] = reason
    scope = (trace_id, step, None, None, None, None)
    packed = fit_attrs(attrs)
    end_ns = end_ns or 0
    row = Row(what, status, name, scope, own_id, parent_id, start_ns, end_ns, packed, fields)
    return Made(row, content_id)


def _attrs(track: Track, event: ChromeEvent) -> dict[str, Any]:
    attrs = dict(event.args)
    if len(attrs) > _MOST_ATTRS:
        attrs = dict(list(attrs.items())[:_MOST_ATTRS])
        attrs["source_args"] = len(event.args)
    attrs.update(event.extras)
    attrs["tid"] = track.tid
    if track.thread:
        attrs["thread"] = track.thread
    if event.category and event.category not in SPAN_CODES:
        attrs["source_category"] = event.category
    if event.is_odd:
        attrs["source_not_finite"] = True
    if event.phase == "X" and event.length_ns is None:
        attrs["length_missing"] = True
    if track.domain.account.clock == "unanchored":
        attrs["clock"] = "unanchored"
    return attrs


def _what(event: ChromeEvent) -> int:
    if event.name.startswith(_PROFILER_STEP) and event.name[13:].isdecimal():
        is_step = not event.category.startswith("gpu_") and len(event.name) < 31
        return _STEP if is_step else _MISC
    if event.name.startswith(_COLLECTIVES):
        return SPAN_CODES["comm"]
    return _CATEGORIES.get(event.category, _MISC)


def _take_step(attrs: dict[str, Any]) -> int | None:
    for name in _STEP_NAMES:
        if name in attrs:
            step = whole_number(attrs[name])
            if step is not None:
                del attrs[name]
                return step
    return None


def _step_at(file: TraceFile, time_ns: int) -> int | None:
    """Give the step of the profiler that a time falls into."""
    at = bisect_right(file.steps, time_ns, key=lambda step: step[0]) - 1
    return file.steps[at][2] if at >= 0 and time_ns < file.steps[at][1] else None


def _ray_task(event: ChromeEvent, trace_id: bytes) -> tuple[bytes, int]:
    """Give the trace and the id of the Ray task that an event is of; 0 if it is of none."""
    task = event.args.get("task_id")
    if not isinstance(task, str) or not task:
        return trace_id, 0
    attempt = event.args.get("attempt_number")
    return stable_bytes(16, "ray", task), stable_id("ray", task, attempt)


def _ray_failure(attrs: dict[str, Any]) -> str:
    """Say what went wrong in an event of Ray, if something did; attributes get our names."""
    kind, message = attrs.get("type"), attrs.get("value")
    if "traceback" not in attrs or not isinstance(kind, str):
        return ""
    found = _CLASS.fullmatch(kind)
    attrs["error.type"] = found[1] if found is not None else kind
    attrs["error.message"] = message
    attrs.pop("type")
    attrs.pop("value", None)
    return clean_text(f"{attrs['error.type']}: {message}", 1024)
