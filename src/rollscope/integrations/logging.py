"""Log records that know where they come from, and warnings as events of their session.

`install()` gives every log record `rs_run`, `rs_step`, `rs_task`, `rs_session` and `rs_phase`, so
that a format such as `"%(rs_session)s %(message)s"` can show them. Outside of a session they are
`-`, and a format never fails.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument import default
from rollscope.instrument.guard import pass_over
from rollscope.instrument.sanitise import clean_text
from rollscope.instrument.spans import Session, lineage
from rollscope.model.kinds import KIND_CODES, Kind
from rollscope.model.refs import span_hex

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.instrument.spans import Span

    Factory = Callable[..., logging.LogRecord]

__all__ = ["FIELDS", "install", "uninstall"]

FIELDS: Final = ("rs_run", "rs_step", "rs_task", "rs_session", "rs_phase")
"""What a log record gets; `rollscope show` takes the session as it stands there."""

_NOWHERE: Final = dict.fromkeys(FIELDS, "-")
_PHASE: Final = KIND_CODES[Kind.PHASE]
_OWN: Final = "rollscope"
_COUNT: Final = "log_records"
_MESSAGE_BYTES: Final = 1_000
_installed: _Factory | None = None


class _Factory:
    """Makes log records as the factory before it did, and adds to them."""

    __slots__ = ("before", "is_on", "level", "most")

    def __init__(self, before: Factory, level: int | None, most: int) -> None:
        self.before, self.level, self.most = before, level, most
        self.is_on = True

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self.before(*args, **kwargs)
        if not self.is_on:
            return record
        record.__dict__.update(_NOWHERE)
        tracer = default._tracer
        if tracer._recorder is None:
            return record
        record.__dict__["rs_run"] = tracer.run
        span = tracer._current.get()
        if span:
            try:
                _place(record, span)
                if self.level is not None and record.levelno >= self.level:
                    self._keep(record, span)
            except Exception as error:
                pass_over("telling a log record where it is", error)
        return record

    def _keep(self, record: logging.LogRecord, span: Span) -> None:
        """Make an event of a record; count those that are more than a session should have."""
        if record.name.split(".", 1)[0] == _OWN:
            return  # what we tell ourselves may be about events
        holder = _holder(span)
        seen = holder.attrs.get(_COUNT, 0)
        seen = seen + 1 if type(seen) is int else 1
        holder.attrs[_COUNT] = seen
        if seen > self.most:
            return
        try:
            said = record.getMessage()
        except Exception:  # its arguments are the host's, and logging tells of them
            said = record.msg if isinstance(record.msg, str) else f"<{type(record.msg).__name__}>"
        attrs = {
            "level": record.levelname,
            "logger": record.name,
            "message": clean_text(said, _MESSAGE_BYTES),
            "place": f"{record.filename}:{record.lineno}",
        }
        if record.exc_info and record.exc_info[0] is not None:
            attrs["error_type"] = record.exc_info[0].__name__
        default.event("log", **attrs)


def install(*, events: bool | int = False, most: int = 100) -> None:
    """Give log records their place; again, with other arguments, changes those.

    Args:
        events: Make an event of each record of this level or above, if it comes from inside of a
            span; True stands for warnings.
        most: Events that one session may have. Its attribute `log_records` counts on.
    """
    global _installed
    level = (logging.WARNING if events else None) if isinstance(events, bool) else events
    if _installed is None:
        _installed = _Factory(logging.getLogRecordFactory(), level, most)
        logging.setLogRecordFactory(_installed)
    else:
        _installed.level, _installed.most = level, most


def uninstall() -> None:
    """Leave log records as they were. Formats that name our fields fail from then on."""
    global _installed
    ours, _installed = _installed, None
    if ours is None:
        return
    ours.is_on = False  # another factory may have been put around it
    if logging.getLogRecordFactory() is ours:
        logging.setLogRecordFactory(ours.before)


def _place(record: logging.LogRecord, span: Span) -> None:
    scope, fields = span.scope, record.__dict__
    if scope.step is not None:
        fields["rs_step"] = scope.step
    if scope.task_key is not None:
        fields["rs_task"] = clean_text(scope.task_key, _MESSAGE_BYTES)
    if scope.session_id is not None:
        fields["rs_session"] = span_hex(scope.session_id)
    for outer in lineage(span):
        if getattr(outer, "what", None) == _PHASE:
            fields["rs_phase"] = clean_text(outer.name, _MESSAGE_BYTES)
            return


def _holder(span: Span) -> Span:
    """Find what counts the records: the session, else the outermost span that is known here."""
    for outer in lineage(span):
        span = outer
        if isinstance(outer, Session):
            break
    return span
