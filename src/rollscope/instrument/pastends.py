"""Ending a span at a moment that has passed, where its end was seen only later."""

from __future__ import annotations

from contextvars import copy_context
from typing import TYPE_CHECKING, Final

from rollscope.instrument.spans import LEFT
from rollscope.model.kinds import STATUS_CODES, Status

if TYPE_CHECKING:
    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Span

__all__ = ["end_at", "record_past"]

_OK: Final = STATUS_CODES[Status.OK]


def end_at(recorder: Recorder, span: Span, end_ns: int) -> bool:
    """Record the end of an open span, and leave what is current so.

    Args:
        recorder: What records it.
        span: Was entered, and is nobody's current span.
        end_ns: When it ended, by the recorder's monotonic clock; its start if that is later.

    Returns:
        Whether it was open.
    """
    if recorder.buffers.open.pop(span.id, None) is None:
        return False
    end = max(end_ns, span.start_ns)
    place = (span.what, span.name, span.scope, span.id, span.parent_id, span.start_ns)
    fields = getattr(span, "fields", None)
    recorder.buffers.rows.extend((*place, end, _OK, span.attrs, fields or None))
    span.parent, span._token = LEFT, None
    return True


def record_past(recorder: Recorder, span: Span, start_ns: int, end_ns: int) -> None:
    """Record a span that is over, below the current one.

    Args:
        recorder: What records it.
        span: Made, and not entered.
        start_ns: By the recorder's monotonic clock, as is the end.
        end_ns: When it ended.
    """
    copy_context().run(span.__enter__)  # so that it is current for nobody
    span.start_ns = start_ns
    end_at(recorder, span, end_ns)
